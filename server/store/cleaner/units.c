/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filter units come and go with the keys that are asked for (--filter-units; flashindex/unit_queues.h). Lookups count how
 * often each segment's filter was asked in vain. The cleaner looks at these counts from time to time, drops units of
 * segments that nobody asked of late, and reads units of the others from their footers, one at a time between other work.
 * It alone opens and closes segments, so that none goes while a unit of it is read.
 */
#include <inttypes.h>

#include "base/log.h"
#include "flashindex/units.h"
#include "server/store/cleaner/cleaner_internal.h"

#define LOOK_MS 100u /* between two looks at all segments */
#define READ_BYTES_PER_S (16u << 20)
#define READ_LEAST_MS 5u /* between two reads, however short they are */

static uint64_t gets_so_far(void)
{
	return ctr_total(CTR_cmd_get);
}

/* Filters have become larger or smaller by so many bytes: -m pays for them. tables_account sets the sum anew when
   segments come or go. */
static void account(struct store *store, uint64_t before)
{
	atomic_fetch_add_explicit(&store->index_bytes, filter_bytes_now(store) - before, memory_order_relaxed);
}

static void publish_resident(struct store *store)
{
	struct unit_queues_figures figures;

	unit_queues_get_figures(store->cleaner->units.queues, &figures);
	atomic_store_explicit(&store->cleaner->units.resident, figures.units, memory_order_relaxed);
}

static void drop(struct store *store, uint32_t segment)
{
	fidx_unit_drop(store->index, segment);
	ctr_add(CTR_filter_units_dropped, 1);
}

static void shed(struct store *store)
{
	uint64_t before = filter_bytes_now(store);
	uint32_t segment;

	while (unit_queues_shed(store->cleaner->units.queues, &segment, gets_so_far()))
		drop(store, segment);
	account(store, before);
	publish_resident(store);
}

void units_opened(struct store *store, uint32_t segment)
{
	struct units *units = &store->cleaner->units;
	unsigned bits = atomic_load(&store->filter_bits), each = fidx_unit_bits(store->index);
	struct fidx_units filter;

	if (!units->queues)
		return;
	if (unit_queues_has(units->queues,
			    segment)) /* its last unit had gone, and load_filters.c read the filter anew */
		unit_queues_remove(units->queues, segment);
	if (!fidx_units_of(store->index, segment, &filter))
		return;
	unit_queues_add(units->queues, segment,
			&(struct unit_entry){ .stored = filter.stored,
					      .resident = filter.resident,
					      .bytes = filter.length,
					      .share = each ? filter.length * bits / each : 0,
					      .pass = filter.pass },
			gets_so_far());
	shed(store);
}

void units_closed(struct store *store, uint32_t segment)
{
	struct units *units = &store->cleaner->units;

	if (!units->queues || !unit_queues_has(units->queues, segment))
		return;
	unit_queues_remove(units->queues, segment);
	shed(store);
}

void units_init(struct store *store)
{
	struct units *units = &store->cleaner->units;
	struct seg_info info;

	if (!store->index || store->config.filter_units < FIDX_UNITS_LEAST)
		return;
	seg_get_info(store->segments, &info);
	units->asked = mem_zalloc(info.segments * sizeof(*units->asked));
	if (!units->asked || unit_queues_create(&units->queues, info.segments, info.segments) != FS_OK) {
		log_warn("flash: no memory for the queues of filter units: filters stay as they are");
		return;
	}
	store->fixed_bytes += unit_queues_own_bytes(units->queues);
	units->segments = info.segments;
	units->looked_at = gets_so_far();
	for (uint32_t s = 0; s < info.segments; s++)
		if (fidx_segment_is_open(store->index, s))
			units_opened(store, s);
}

void units_fini(struct store *store)
{
	unit_queues_destroy(store->cleaner->units.queues);
	mem_free(store->cleaner->units.asked);
	store->cleaner->units.queues = NULL;
}

uint64_t units_resident(const struct store *store)
{
	return atomic_load_explicit(&store->cleaner->units.resident, memory_order_relaxed);
}

/* Reads the segment's next unit. False: it can't be read, or isn't a unit of the segment. */
static bool load(struct store *store, uint32_t segment)
{
	struct fidx_units filter;
	unsigned next = fidx_units_of(store->index, segment, &filter) ? filter.resident : 0;
	uint64_t length = unit_queues_unit_bytes(store->cleaner->units.queues, segment);
	void *bytes = mem_alloc(length);

	if (!bytes)
		return false;
	if (seg_read_filter_part(store->segments, segment, next * length, bytes, length) != FS_OK) {
		mem_free(bytes);
		return false;
	}
	return fidx_unit_add(store->index, segment, bytes, length) == FS_OK;
}

/* The segment was asked. True: a unit was read for it, or could not be. */
static bool want(struct store *store, uint32_t segment)
{
	struct units *units = &store->cleaner->units;
	uint64_t before = filter_bytes_now(store);
	struct unit_victims victims;
	bool loaded;

	if (!unit_queues_want(units->queues, segment, gets_so_far(), &victims))
		return false;
	for (unsigned i = 0; i < victims.count; i++)
		drop(store, victims.segment[i]);
	loaded = load(store, segment);
	unit_queues_loaded(units->queues, segment, loaded);
	ctr_add(loaded ? CTR_filter_units_loaded : CTR_filter_units_failed, 1);
	account(store, before);
	publish_resident(store);
	return true;
}

/* Notes which segments were asked since the last look. Their gets are thought to lie evenly in between. */
static void look(struct store *store)
{
	struct units *units = &store->cleaner->units;
	uint64_t gets = gets_so_far(), since = gets - units->looked_at;

	for (uint32_t s = 0; s < units->segments; s++) {
		uint32_t times = unit_queues_has(units->queues, s) ? fidx_units_asked(store->index, s) : 0;

		units->asked[s] = times > 0;
		if (times > 0)
			unit_queues_note(units->queues, s, times, since / times, gets);
	}
	units->looked_at = gets;
}

void units_step(struct store *store)
{
	struct units *units = &store->cleaner->units;
	uint64_t now_us = clk_now_us(store->clock);

	if (!units->queues || now_us < units->due_us || seg_offline(store->segments) || load_filters_left(store) > 0)
		return;
	if (units->at == 0)
		look(store);
	while (units->at < units->segments) {
		uint32_t segment = units->at++;

		if (units->asked[segment] && unit_queues_has(units->queues, segment) && want(store, segment)) {
			units->due_us = clk_now_us(store->clock) + READ_LEAST_MS * 1000 +
					unit_queues_unit_bytes(units->queues, segment) * 1000000 / READ_BYTES_PER_S;
			return;
		}
	}
	units->at = 0;
	units->due_us = now_us + LOOK_MS * 1000;
}
