/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters that a kill has lost come back from the footers on flash, the newest segment's first. The cleaner reads one
 * between other work, so that its segment is neither reclaimed nor written meanwhile; a kill in between changes nothing,
 * as a segment without a filter is only read more often.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/restart.h"

#define READ_BYTES_PER_S (16u << 20)
#define READ_LEAST_MS 5u /* between two reads, however short they are */
#define IO_ERRORS_MOST 4u /* the budget of errors is for the reads that clients wait for */

/* The newest open segment that is older than `below` and lacks a filter; UINT32_MAX: there is none. Counts all of them
   into filters_left. */
static uint32_t find_segment(struct store *store, uint64_t below)
{
	struct seg_info info;
	uint32_t found = UINT32_MAX, left = 0;
	uint64_t newest = 0;

	seg_get_info(store->segments, &info);
	for (uint32_t s = 0; s < info.segments; s++) {
		uint64_t sequence = seg_sequence(store->segments, s);

		if (sequence == 0 || sequence >= below || !fidx_lacks_filter(store->index, s))
			continue;
		left++;
		if (sequence > newest) {
			newest = sequence;
			found = s;
		}
	}
	atomic_store_explicit(&store->cleaner->filters.left, left, memory_order_relaxed);
	return found;
}

void load_filters_init(struct store *store)
{
	struct load_filters *filters = &store->cleaner->filters;

	*filters = (struct load_filters){ .below = 0 };
	if (!store->index || !restart_is_warm(store) || store->config.filter_bits == 0)
		return;
	filters->below = UINT64_MAX;
	filters->began_us = clk_now_us(store->clock);
	(void)find_segment(store, filters->below);
}

uint32_t load_filters_left(const struct store *store)
{
	return atomic_load_explicit(&store->cleaner->filters.left, memory_order_relaxed);
}

uint64_t filter_bytes_now(const struct store *store)
{
	struct fidx_status status;

	fidx_get_status(store->index, &status);
	return status.filter_bytes;
}

/* Gives the segment the filter of its footer. A segment whose filter is damaged, or for which there is no memory, goes on
   without. */
static void load_filter(struct store *store, uint32_t segment)
{
	struct load_filters *filters = &store->cleaner->filters;
	uint64_t before = filter_bytes_now(store);
	size_t length;
	void *filter;
	int result = seg_read_filter(store->segments, segment, &filter, &length);

	filters->due_us = clk_now_us(store->clock) + READ_LEAST_MS * 1000 + length * 1000000 / READ_BYTES_PER_S;
	if (result != FS_OK) {
		filters->failed++;
		if (result == FS_EIO && ++filters->io_errors == IO_ERRORS_MOST)
			filters->gives_up = true;
		return;
	}
	if (!filter)
		return;
	/* The account of -m first: tables_account sets it anew when segments come or go. */
	atomic_fetch_add_explicit(&store->index_bytes, length, memory_order_relaxed);
	if (!memory_suffices(store, store_memory_limit(store))) {
		mem_free(filter);
		filters->gives_up = true; /* there is none for the others either */
	} else if (fidx_give_filter(store->index, segment, filter, length)) {
		filters->loaded++;
		/* Of a filter in units some alone are in memory. */
		atomic_fetch_add_explicit(&store->index_bytes, filter_bytes_now(store) - before - length,
					  memory_order_relaxed);
		units_opened(store, segment);
		return;
	}
	atomic_fetch_sub_explicit(&store->index_bytes, length, memory_order_relaxed);
	filters->failed++;
}

void load_filters_step(struct store *store)
{
	struct load_filters *filters = &store->cleaner->filters;
	uint64_t now_us = clk_now_us(store->clock);
	uint32_t segment;

	if (filters->below == 0 || now_us < filters->due_us || seg_offline(store->segments))
		return;
	segment = find_segment(store, filters->below);
	if (segment != UINT32_MAX && !filters->gives_up) {
		filters->below = seg_sequence(store->segments, segment);
		load_filter(store, segment);
		return;
	}
	filters->below = 0;
	atomic_store_explicit(&filters->left, 0, memory_order_relaxed);
	if (filters->gives_up)
		log_notice("flash: other segments go on without a filter: %s", filters->io_errors == IO_ERRORS_MOST
										       ? "too many could not be read"
										       : "-m has no room for it");
	if (filters->loaded || filters->failed)
		log_notice("flash: filters of %" PRIu32 " segments read back in %.3f s; %" PRIu32
			   " could not be read or had no room",
			   filters->loaded, (double)(now_us - filters->began_us) / 1e6, filters->failed);
}
