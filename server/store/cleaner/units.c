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
#define FAILURES_MOST \
	6u /* of reads in a row: then the segment gets no further units. The first waits for a second, and
			    each for twice as long as the one before, so that they hardly count in the budget of errors */

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

	if (!units->queues)
		return;
	units->segment[segment] = (struct units_of_segment){ 0 };
	if (!unit_queues_has(units->queues, segment))
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
	units->segment = mem_zalloc(info.segments * sizeof(*units->segment));
	if (!units->segment || unit_queues_create(&units->queues, info.segments, info.segments) != FS_OK) {
		log_warn("flash: no memory for the queues of filter units: filters stay as they are");
		return;
	}
	store->fixed_bytes += unit_queues_own_bytes(units->queues) + info.segments * sizeof(*units->segment);
	units->segments = info.segments;
	units->looked_at = gets_so_far();
	for (uint32_t s = 0; s < info.segments; s++)
		if (fidx_segment_is_open(store->index, s))
			units_opened(store, s);
}

void units_fini(struct store *store)
{
	unit_queues_destroy(store->cleaner->units.queues);
	mem_free(store->cleaner->units.segment);
	store->cleaner->units.queues = NULL;
}

uint64_t units_resident(const struct store *store)
{
	return atomic_load_explicit(&store->cleaner->units.resident, memory_order_relaxed);
}

/* Reads the segment's next unit. */
static enum unit_load load(struct store *store, uint32_t segment)
{
	struct fidx_units filter;
	unsigned next = fidx_units_of(store->index, segment, &filter) ? filter.resident : 0;
	uint64_t length = unit_queues_unit_bytes(store->cleaner->units.queues, segment);
	void *bytes = mem_alloc(length);
	int result = FS_ENOMEM;

	if (bytes) {
		result = seg_read_filter_part(store->segments, segment, next * length, bytes, length);
		if (result == FS_OK)
			result = fidx_unit_add(store->index, segment, bytes, length);
		else
			mem_free(bytes);
	}
	return result == FS_OK ? UNIT_LOADED : result == FS_ECORRUPT ? UNIT_DAMAGED : UNIT_LATER;
}

/* A read that failed may go well later, as a drive's errors need not last. */
static enum unit_load try_load(struct store *store, uint32_t segment)
{
	struct units_of_segment *own = &store->cleaner->units.segment[segment];
	enum unit_load result = load(store, segment);

	if (result != UNIT_LATER) {
		own->failures = 0;
		return result;
	}
	own->again_s = (uint32_t)(clk_now_ms(store->clock) / 1000) + (1u << own->failures);
	return ++own->failures < FAILURES_MOST ? UNIT_LATER : UNIT_DAMAGED;
}

/* The segment was asked. True: a unit was read for it, or could not be. */
static bool want(struct store *store, uint32_t segment)
{
	struct units *units = &store->cleaner->units;
	uint64_t before = filter_bytes_now(store);
	struct unit_victims victims;
	enum unit_load result;

	if (!unit_queues_want(units->queues, segment, gets_so_far(), &victims))
		return false;
	for (unsigned i = 0; i < victims.count; i++)
		drop(store, victims.segment[i]);
	result = try_load(store, segment);
	unit_queues_loaded(units->queues, segment, result);
	ctr_add(result == UNIT_LOADED ? CTR_filter_units_loaded : CTR_filter_units_failed, 1);
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

		units->segment[s].asked = times > 0;
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

		if (units->segment[segment].asked && now_us / 1000000 >= units->segment[segment].again_s &&
		    unit_queues_has(units->queues, segment) && want(store, segment)) {
			units->due_us = clk_now_us(store->clock) + READ_LEAST_MS * 1000 +
					unit_queues_unit_bytes(units->queues, segment) * 1000000 / READ_BYTES_PER_S;
			return;
		}
	}
	units->at = 0;
	units->due_us = now_us + LOOK_MS * 1000;
}
