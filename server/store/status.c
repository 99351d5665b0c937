/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures for stats and metrics: sums of counts that are kept anyway, never a walk. */
#include <math.h>

#include "server/store/store_internal.h"

static uint64_t positive(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

struct window_reading store_written(const struct store *store)
{
	return (struct window_reading){ .now_ms = clk_now_ms(store->clock),
					.flash_bytes = ctr_total(CTR_flash_bytes_written),
					.app_bytes = ctr_total(CTR_app_bytes_written) };
}

static void flash_status(struct store *store, struct store_status *out)
{
	const struct fidx_status *index = &out->index;

	out->flash = true;
	fidx_get_status(store->index, &out->index);
	seg_get_status(store->segments, &out->segments);
	seg_get_info(store->segments, &out->info);
	clf_get_status(store->classifier, &out->classifier);
	out->tag_bits = store->tag_bits;
	out->filter_bits = atomic_load(&store->filter_bits);
	out->staging_bytes = out->info.staging_bytes;
	out->curr_items += index->used + index->extents_used;
	out->curr_bytes += positive(index->live_bytes);
	out->innocent_drops = (double)atomic_load(&store->keeper.innocent_millionths) / 1e6;
	uint64_t objects = index->used + index->extents_used;
	if (objects)
		out->dram_bytes_per_flash_item =
			(double)(index->index_bytes + index->filter_bytes + index->other_bytes) / (double)objects;
}

void store_get_status(struct store *store, struct store_status *out)
{
	const struct window_reading written = store_written(store);

	*out = (struct store_status){ 0 };
	out->now_seconds = (clk_now_us(store->clock) - store->origin_us) / 1000000;
	out->memory_limit = store_memory_limit(store);
	out->memory_used = store_used_bytes(store);
	out->memory_resident = atomic_load(&store->resident_bytes);
	out->dram_items = store_dram_items(store);
	out->dram_bytes = positive(atomic_load(&store->item_bytes));
	out->dram_table_bytes = atomic_load(&store->table_bytes);
	out->dram_budget = store_item_budget(store);
	out->hash_buckets = out->dram_table_bytes / sizeof(struct item *);
	out->curr_items = out->dram_items;
	out->curr_bytes = out->dram_bytes;
	out->plan_bytes = atomic_load(&store->plan_bytes);
	out->reader_bytes = atomic_load(&store->reader_bytes);
	out->candidates = positive(atomic_load(&store->candidate_count));
	out->candidate_bytes = candidate_total(store);
	out->hot_bytes = store_hot_bytes(store);
	out->hot_threshold_bytes = store_hot_threshold(store);
	out->write_rate = (double)atomic_load(&store->keeper.write_rate);
	out->write_limit = store_write_limit(store);
	windows_read(&store->windows, &written, out->window);
	out->without_flash = store->without_flash[0] ? store->without_flash : NULL;
	if (store->index)
		flash_status(store, out);
}
