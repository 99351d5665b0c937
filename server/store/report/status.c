/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures for stats and metrics: sums of counts that the rooms keep, never a walk over objects. */
#include <math.h>

#include "server/store/cleaner/cleaner.h"
#include "server/store/cleaner/saved_items.h"
#include "server/store/state/losses.h"
#include "server/store/state/restart.h"

static uint64_t status_at_least_zero(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

static uint64_t status_frugal_bytes(const struct store *store)
{
	return store->frugal ? frugal_memory(store->frugal) + atomic_load(&store->bins_reads_bytes) : 0;
}

static void status_of_flash(struct store *store, struct store_status *out)
{
	const struct fidx_status *index = &out->index;

	out->flash = true;
	fidx_get_status(store->index, &out->index);
	out->filter_false_positive = fidx_filter_false_positive(store->index);
	seg_get_status(store->segments, &out->segments);
	seg_get_info(store->segments, &out->info);
	out->flash_asked_bytes = atomic_load(&store->flash_asked);
	if (out->flash_asked_bytes < out->info.flash_bytes)
		out->flash_asked_bytes = out->info.flash_bytes;
	clf_get_status(store->classifier, &out->classifier);
	out->tag_bits = store->tag_bits;
	out->filter_bits = atomic_load(&store->filter_bits);
	out->filters_left = load_filters_left(store);
	out->filter_units = (unsigned)units_resident(store);
	out->staging_bytes = out->info.staging_bytes;
	out->classifier_bytes = clf_memory_bytes(store->classifier);
	/* An object with a clean copy is one object. */
	out->curr_items += index->used + index->extents_used - copies_count(store);
	out->curr_bytes += status_at_least_zero(index->live_bytes) - copies_bytes(store);
	if (store->frugal) {
		frugal_get_status(store->frugal, &out->frugal);
		out->curr_items += out->frugal.objects;
		out->curr_bytes += out->frugal.bytes;
	}
	out->is_frugal = store->frugal != NULL;
	out->frugal_index_bytes = status_frugal_bytes(store);
	out->innocent_drops = (double)keeper_innocent_millionths(store) / 1e6;
	uint64_t objects = index->used + index->extents_used + out->frugal.objects;
	if (objects)
		out->dram_bytes_per_flash_item = (double)(index->index_bytes + index->filter_bytes +
							  index->other_bytes + out->frugal_index_bytes) /
						 (double)objects;
}

static void status_of_loader(const struct store *store, struct store_status *out)
{
	struct loader_figures loader;

	loader_get_figures(store, &loader);
	out->dram_start_word = saved_start_word(loader.start);
	out->dram_start_text = saved_start_text(loader.start);
	out->dram_loading = loader.loading;
	out->dram_loaded = loader.loaded;
	out->dram_load_skipped = loader.skipped;
	out->dram_load_left = loader.left;
}

static void status_of_journal(struct store *store, struct store_status *out)
{
	struct journal_status journal;

	journal_get_status(store->losses->journal, &journal);
	out->journal = true;
	out->journal_entries = journal.entries;
	out->journal_syncs = journal.syncs;
	out->journal_waiting = journal.waiting;
	out->journal_bytes = journal.bytes;
	out->journal_files = journal.files;
	out->journal_broken = journal.broken;
	out->rebuild_segments = store->rebuild_segments;
	out->rebuilt_segments = atomic_load(&store->rebuilt_segments);
}

void store_get_memory(struct store *store, struct store_memory *out)
{
	uint64_t region = store->region ? region_bytes(store->region) : 0;
	struct fidx_status index = { 0 };
	struct seg_info info = { 0 };

	*out = (struct store_memory){ .limit = store_memory_limit(store),
				      .items = status_at_least_zero(atomic_load(&store->item_bytes)),
				      .tables = atomic_load(&store->table_bytes),
				      .stripes = store->stripe_count * sizeof(struct stripe),
				      .plans = atomic_load(&store->plan_bytes),
				      .readers = atomic_load(&store->reader_bytes) + atomic_load(&store->loader_bytes),
				      .journal = atomic_load(&store->losses_bytes),
				      .promotion = atomic_load(&store->promotion_bytes),
				      .charged = atomic_load(&store->excess_bytes) };
	if (store->index) {
		fidx_get_status(store->index, &index);
		seg_get_info(store->segments, &info);
		out->index = index.index_bytes;
		out->filters = index.filter_bytes;
		out->index_other = index.other_bytes;
		out->frugal = status_frugal_bytes(store);
		out->segments = store_region_fixed_bytes(store);
		out->classifier = clf_memory_bytes(store->classifier);
		out->staging = info.staging_bytes;
		out->shared = region_shared(store->region);
		out->untouched = region_untouched(store->region) + clf_untouched_bytes(store->classifier);
	}
	out->heap = out->items + out->tables + out->stripes + out->index + out->filters + out->index_other +
		    out->frugal + out->segments + out->classifier + out->plans + out->staging + out->readers +
		    out->journal + out->promotion - region;
}

const char *store_hold_word(enum store_hold hold)
{
	static const char *const words[] = {
		[STORE_HOLD_NO_FLASH] = "no_flash",     [STORE_HOLD_OFFLINE] = "offline",
		[STORE_HOLD_REBUILD] = "rebuild",       [STORE_HOLD_LATE] = "late",
		[STORE_HOLD_MEMORY] = "memory",         [STORE_HOLD_LIMIT] = "limit",
		[STORE_HOLD_RATIO] = "ratio",           [STORE_HOLD_FILLING] = "filling",
		[STORE_HOLD_CANDIDATES] = "candidates", [STORE_HOLD_NOTHING] = "nothing",
	};

	must((size_t)hold < sizeof(words) / sizeof(words[0]));
	return words[hold];
}

/* Where no segment is free, all were flushed or have expired. */
static double status_fill_seconds(const struct store_status *status)
{
	const struct store_window *window = &status->window[STORE_WINDOW_5M];
	uint64_t segment = status->info.segment_bytes, all = status->info.flash_bytes;
	uint64_t empty = status->segments.free > 0 ? status->segments.free * segment : all;
	uint64_t left = status->segments.fill_left_bytes >= segment ? status->segments.fill_left_bytes : all;
	double bytes = (double)(left < empty ? left : empty);

	if (status->hold != STORE_HOLD_FILLING || window->flash_bytes == 0)
		return NAN;
	return bytes * window->seconds / (double)window->flash_bytes;
}

void store_get_status(struct store *store, struct store_status *out)
{
	const struct window_reading written = store_written(store);

	*out = (struct store_status){ 0 };
	out->now_seconds = (clk_now_us(store->clock) - store->opened_us) / 1000000;
	out->flash_seconds = (clk_now_us(store->clock) - store->origin_us) / 1000000;
	out->memory_limit = store_memory_limit(store);
	out->memory_used = store_used_bytes(store);
	out->memory_resident = atomic_load(&store->resident_bytes);
	out->dram_items = store_dram_items(store);
	out->dram_bytes = status_at_least_zero(atomic_load(&store->item_bytes));
	out->dram_table_bytes = atomic_load(&store->table_bytes);
	out->dram_budget = store_item_budget(store);
	out->hash_buckets = out->dram_table_bytes / sizeof(struct link_line) * LINE_LINKS;
	out->curr_items = out->dram_items;
	out->curr_bytes = out->dram_bytes;
	out->plan_bytes = atomic_load(&store->plan_bytes);
	out->reader_bytes = atomic_load(&store->reader_bytes);
	out->losses_bytes = atomic_load(&store->losses_bytes);
	out->candidates = status_at_least_zero(atomic_load(&store->candidate_count));
	out->candidate_bytes = candidate_total(store);
	out->hot_bytes = store_hot_bytes(store);
	out->copy_bytes = copies_bytes(store);
	out->copy_items = copies_count(store);
	out->copy_share = copies_share(store);
	out->promotion_bytes = atomic_load(&store->promotion_bytes);
	out->hot_threshold_bytes = store_hot_threshold(store);
	out->write_rate = (double)keeper_write_rate(store);
	out->write_limit = store_write_limit(store);
	out->write_ratio = store_write_ratio(store);
	windows_read(&store->windows, &written, out->window);
	out->without_flash = store->without_flash[0] ? store->without_flash : NULL;
	out->start_word = store_start_word(store->start);
	out->start_text = store->start_text;
	status_of_loader(store, out);
	if (store->index)
		status_of_flash(store, out);
	if (store->losses)
		status_of_journal(store, out);
	out->hold = cleaner_hold(store);
	out->fill_seconds = status_fill_seconds(out);
}

long store_get_samples(struct store *store, struct clf_labelled **out)
{
	*out = NULL;
	return store->classifier ? clf_get_samples(store->classifier, out) : 0;
}
