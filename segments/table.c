/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment table: states in FIFO order, positions, pins and reclaim.
 *
 * A pin raises the count first and then looks at the sequence; reclaim takes the sequence away first
 * and then looks at the count. Both are sequentially consistent, so at least one sees the other: either
 * the pin fails, or reclaim waits for it.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/events.h"
#include "base/metrics/counters.h"
#include "segments/segments_internal.h"

uint64_t seg_region_bytes(uint32_t segments, uint64_t segment_bytes, bool crossings)
{
	uint64_t map_bytes = crossings ? crossings_bytes(segment_bytes) : 0;

	return sizeof(struct seg_table) + segments * (sizeof(struct seg_entry) + map_bytes);
}

/* The first segment from this one on that isn't retired and has its blocks. Without the lock: the caller is the
   cleaner, which alone writes states. */
static bool next_usable(const struct segments *seg, uint32_t at, uint32_t *segment, enum seg_state *state)
{
	uint32_t allocated = seg_allocated(seg);

	for (uint32_t n = 0; n < seg->segments; n++, at = (at + 1) % seg->segments) {
		if (seg->live[at].state == SEG_RETIRED || at >= allocated)
			continue;
		*segment = at;
		*state = seg->live[at].state;
		return true;
	}
	return false;
}

bool seg_all_retired(const struct segments *seg)
{
	enum seg_state state;
	uint32_t segment;

	return !next_usable(seg, seg->cursor, &segment, &state);
}

int seg_next(struct segments *seg, uint32_t *segment, enum seg_state *state)
{
	if (next_usable(seg, seg->cursor, segment, state))
		return FS_OK;
	/* Nothing but this call tries the device then: no segment is left that a write could try. */
	return health_online(seg) && next_usable(seg, seg->cursor, segment, state) ? FS_OK : FS_EOFFLINE;
}

void seg_note_content(struct segments *seg, uint32_t segment, uint64_t newest_cas, uint32_t latest_expiry)
{
	struct seg_live *live = seg_live_at(seg, segment);

	must(live->state == SEG_LIVE);
	live->newest_cas = newest_cas;
	live->latest_expiry = latest_expiry;
}

static bool holds_nothing(const struct seg_live *live, uint64_t flush_cas, uint32_t now_seconds)
{
	bool expired = live->latest_expiry != 0 && live->latest_expiry <= now_seconds;
	bool flushed = live->newest_cas != 0 && live->newest_cas <= flush_cas;

	return live->state == SEG_FREE || (live->state == SEG_LIVE && (expired || flushed));
}

bool seg_next_hold_nothing(const struct segments *seg, unsigned n, uint64_t flush_cas, uint32_t now_seconds)
{
	uint32_t at = seg->cursor;
	enum seg_state state;

	while (n > 0 && next_usable(seg, at, &at, &state) && holds_nothing(&seg->live[at], flush_cas, now_seconds)) {
		at = (at + 1) % seg->segments;
		n--;
	}
	return n == 0;
}

bool seg_oldest(const struct segments *seg, uint32_t *segment)
{
	uint32_t at = seg->cursor;

	for (uint32_t n = 0; n < seg->segments; n++, at = (at + 1) % seg->segments) {
		if (seg->live[at].state != SEG_LIVE)
			continue;
		*segment = at;
		return true;
	}
	return false;
}

/* Does the state follow from the present one? */
static bool state_follows(enum seg_state from, enum seg_state to)
{
	switch (to) {
	case SEG_FREE:
		return from == SEG_RECLAIMING || from == SEG_RETIRED;
	case SEG_WRITING:
		return from == SEG_FREE;
	case SEG_LIVE:
		return from == SEG_WRITING;
	case SEG_RETIRED:
		return from == SEG_WRITING || from == SEG_FREE;
	case SEG_RECLAIMING:
		return from == SEG_LIVE;
	}
	return false;
}

/* seg->lock is held. */
static void change_state(struct segments *seg, struct seg_live *live, enum seg_state state)
{
	must(seg->magic == SEGMENTS_MAGIC && state_follows(live->state, state));
	live->state = state;
}

void seg_set_state(struct segments *seg, uint32_t number, enum seg_state state)
{
	struct seg_live *live = seg_live_at(seg, number);

	lock_acquire(&seg->lock);
	change_state(seg, live, state);
	if (state == SEG_LIVE || state == SEG_RETIRED)
		seg->cursor = (number + 1) % seg->segments;
	lock_release(&seg->lock);
}

void seg_set_use(struct segments *seg, uint32_t number, enum home_use use, enum seg_state state)
{
	struct seg_live *live = seg_live_at(seg, number);

	lock_acquire(&seg->lock);
	live->use = (uint8_t)use;
	if (live->state != state)
		change_state(seg, live, state);
	lock_release(&seg->lock);
}

uint32_t seg_revive(struct segments *seg)
{
	uint32_t revived = 0;

	lock_acquire(&seg->lock);
	for (uint32_t i = 0; i < seg->segments; i++) {
		struct seg_live *live = &seg->live[i];

		atomic_store_explicit(&live->read_errors, 0, memory_order_relaxed);
		if (live->state != SEG_RETIRED || live->use != HOME_IN_USE)
			continue;
		must(atomic_load(&live->sequence) == 0);
		change_state(seg, live, SEG_FREE);
		revived++;
	}
	lock_release(&seg->lock);
	return revived;
}

uint64_t seg_position(const struct segments *seg, uint32_t segment, uint64_t place, unsigned function)
{
	const struct seg_entry *entry = &seg->table->entry[segment];

	if (entry->grid.parts == 0)
		return entry->data_offset; /* the segment holds extents alone: no record is found there */
	return entry->data_offset + (uint64_t)layout_position(&entry->grid, place, function) * entry->granule;
}

/* The part of the data area in which a position lies. */
static uint32_t part_of(const struct layout_grid *grid, uint32_t position)
{
	uint32_t part = (uint32_t)((uint64_t)position * grid->parts / grid->positions);

	while (layout_part_start(grid, part + 1) <= position)
		part++;
	return part;
}

unsigned seg_function_at(const struct segments *seg, uint32_t segment, uint64_t place, uint64_t offset, unsigned from)
{
	const struct seg_entry *entry = &seg->table->entry[segment];
	const struct layout_grid *grid = &entry->grid;

	if (grid->parts == 0 || offset < entry->data_offset || (offset - entry->data_offset) % entry->granule ||
	    (offset - entry->data_offset) / entry->granule >= grid->positions)
		return SEG_MAX_FUNCTIONS;
	uint32_t position = (uint32_t)((offset - entry->data_offset) / entry->granule);
	uint32_t part = part_of(grid, position), start = layout_part_start(grid, part);
	uint64_t hash = layout_place_hash(grid, place);
	for (uint32_t function = layout_first_function(grid, hash, part); function < grid->functions;
	     function += grid->parts)
		if (function >= from &&
		    layout_within(hash, function, start, layout_part_start(grid, part + 1) - start) == position)
			return function;
	return SEG_MAX_FUNCTIONS;
}

uint64_t seg_read_length(const struct segments *seg, uint32_t segment, uint64_t offset)
{
	uint32_t length = seg->table->entry[segment].longest_999;
	const crossing_pair *map = seg_crossings(seg, segment);

	if (length < SEG_RECORD_HEADER)
		length = SEG_RECORD_HEADER;
	return map ? crossings_read_length(map, offset, length) : length;
}

void seg_note_record(struct segments *seg, uint32_t segment, uint64_t offset, uint64_t length)
{
	crossing_pair *map = seg_crossings(seg, segment);

	must(offset < seg->segment_bytes && length > 0);
	if (map)
		crossings_note(map, offset, length);
}

uint64_t seg_written_at_ms(const struct segments *seg, uint32_t segment)
{
	return seg->table->entry[segment].written_at_ms;
}

uint64_t seg_sequence(const struct segments *seg, uint32_t segment)
{
	return atomic_load_explicit(&seg_live_at(seg, segment)->sequence, memory_order_acquire);
}

bool seg_pin(struct segments *seg, uint32_t segment, uint64_t sequence)
{
	struct seg_live *live = seg_live_at(seg, segment);

	atomic_fetch_add(&live->pins, 1);
	if (sequence != 0 && atomic_load(&live->sequence) == sequence)
		return true;
	seg_unpin(seg, segment);
	return false;
}

void seg_pin_again(struct segments *seg, uint32_t segment)
{
	uint32_t before = atomic_fetch_add(&seg_live_at(seg, segment)->pins, 1);

	must(before > 0);
}

void seg_unpin(struct segments *seg, uint32_t segment)
{
	struct seg_live *live = seg_live_at(seg, segment);
	uint32_t before = atomic_fetch_sub(&live->pins, 1);

	must(before > 0);
	if (before > 1 || atomic_load(&live->sequence) != 0)
		return;
	/* With the lock, so that the signal can't fall between the waiter's look and its wait. */
	lock_acquire(&seg->pins_lock);
	pthread_cond_broadcast(&seg->pins_gone);
	lock_release(&seg->pins_lock);
}

void seg_reclaim_begin(struct segments *seg, uint32_t segment)
{
	must(seg_sequence(seg, segment) != 0);
	seg_set_state(seg, segment, SEG_RECLAIMING);
}

static bool wait_for_pins(struct segments *seg, struct seg_live *live, unsigned timeout_ms)
{
	struct timespec until = clk_monotonic_after(timeout_ms);
	bool gone;

	lock_acquire(&seg->pins_lock);
	while (!(gone = atomic_load(&live->pins) == 0))
		if (pthread_cond_timedwait(&seg->pins_gone, &seg->pins_lock.mutex, &until) == ETIMEDOUT)
			break;
	lock_release(&seg->pins_lock);
	return gone || atomic_load(&live->pins) == 0;
}

int seg_reclaim_end(struct segments *seg, uint32_t segment, unsigned timeout_ms)
{
	struct seg_live *live = seg_live_at(seg, segment);
	struct seg_entry *entry = &seg->table->entry[segment];

	must(live->state == SEG_RECLAIMING);
	atomic_store(&live->sequence, 0);
	if (!wait_for_pins(seg, live, timeout_ms))
		return FS_EBUSY;
	lock_acquire(&seg->lock);
	seg->residence_ms = seg->table->residence_ms = clk_now_ms(seg->clock) - entry->written_at_ms;
	atomic_store_explicit(&live->partial, false, memory_order_relaxed);
	atomic_store_explicit(&live->read_errors, 0, memory_order_relaxed);
	live->newest_cas = 0;
	live->latest_expiry = 0;
	change_state(seg, live, SEG_FREE);
	atomic_store(&entry->sequence, 0);
	lock_release(&seg->lock);
	ctr_add(CTR_segments_reclaimed, 1);
	if (events_on(EVENT_FLASH))
		events_emit(EVENT_FLASH, "type=segment_reclaimed segment=%u", segment);
	return FS_OK;
}

void seg_get_status(const struct segments *seg, struct seg_status *out)
{
	/* A lock is state of its own: to take one changes nothing that the caller sees. */
	struct segments *mutable = (struct segments *)(uintptr_t)seg;
	double fill = 0;

	uint32_t usable = atomic_load_explicit(&seg->usable, memory_order_relaxed);

	*out = (struct seg_status){ .total = usable };
	lock_acquire(&mutable->lock);
	for (uint32_t i = 0; i < seg->segments; i++) {
		const struct seg_entry *entry = &seg->table->entry[i];
		enum seg_state state = seg->live[i].state;
		uint64_t areas;

		out->free += state == SEG_FREE && i < usable;
		out->retired += state == SEG_RETIRED && seg->live[i].use == HOME_IN_USE;
		out->bad += seg->live[i].use == HOME_BAD;
		if (state != SEG_LIVE && state != SEG_RECLAIMING)
			continue;
		areas = entry->extents_bytes + entry->data_bytes;
		out->live++;
		out->records_live += entry->objects;
		out->record_bytes_live += entry->record_bytes;
		fill += areas ? (double)entry->record_bytes / (double)areas : 0;
	}
	out->fill = out->live ? fill / out->live : 0;
	out->newest_sequence = seg->newest_sequence;
	out->residence_ms = seg->residence_ms;
	lock_release(&mutable->lock);
	lock_acquire(&mutable->health.lock);
	out->offline = health_offline(seg);
	if (out->offline)
		memcpy(out->offline_reason, seg->health.reason, sizeof(out->offline_reason));
	memcpy(out->away_reason, seg->health.away, sizeof(out->away_reason));
	lock_release(&mutable->health.lock);
	out->busy_ms = seg_busy_ms(seg);
	out->allocated_bytes = seg_allocated_bytes(seg);
	fill_status(seg, out);
	out->allocate_error = atomic_load(&seg->allocate_error);
}
