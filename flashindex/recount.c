/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The recount after a warm start: tables and extents, whether of a killed process's region or of a state file, are
 * judged and counted anew while the index is used, a run of buckets at a time, in the order of their numbers. No count
 * is taken on trust.
 *
 *   table   | counted: in the counts of segments and sums | uncounted: in none | -> the boundary (table.counted) moves up
 *
 * A run is judged, counted and added to the counts with its stripe held, and the boundary moves over it before the stripe
 * is released. A change of a slot is accounted with its stripe held too, if the slot lies below the boundary; else the
 * recount will find what the change has left. So each slot is counted once, and no count falls below zero. Extents have
 * such a boundary by groups, under the stripes of groups.
 *
 * Until its run is counted, a slot or extent may be anything, and all users of it are right all the same:
 *
 *   of a closed segment             it counts as empty, as in any other index. The recount empties it before the segment
 *                                   can be opened again, as no segment is opened meanwhile
 *   segment, table or function      a lookup passes over it (judge_slot), the hand finds it free or changes its CLOCK; the
 *   out of range                    recount empties it
 *   extent beyond its segment       a lookup passes over it (pair_find); the recount empties it
 *   extent in both tables           a lookup looks in both, a clear empties both; the move is finished first
 *
 * One thread, the cleaner, recounts. It neither inserts nor opens, closes or drops meanwhile. Region and state file have
 * nothing about a recount: the next attach begins another one, and fidx_save comes after it.
 */
#include "flashindex/flashindex.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/fault.h"
#include "flashindex/extents_internal.h"

#define RUN_BUCKETS 1024 /* counted under one hold of a stripe: some 50 us */
#define TABLE_CLOSED FIDX_TABLES /* slots of a closed segment: they are dropped */
#define TABLE_UNKNOWN (FIDX_TABLES + 1u) /* there is no such segment */

/* By a slot's segment field: what is known of the segment, and what was counted. */
struct slot_count {
	uint32_t slots, ghosts;
	uint32_t table; /* that its slots lie in; or one of these two */
};

struct recount {
	struct slot_count
		*count; /* by segment field: what the present run has, and where slots of the segment belong */
	uint64_t emptied, damaged; /* slots and extents: of closed segments; out of range */
	uint32_t touched; /* fields of the present run */
	uint32_t field[];
};

/* ---- slots ----------------------------------------------------------------------------------- */

/* Adds a run's counts to those of the segments, which are open or closed as they were when the recount began. */
static void run_account(struct fidx *index, struct recount *recount)
{
	int64_t slots = 0, ghosts = 0, live_bytes = 0, hot_bytes = 0;

	for (uint32_t i = 0; i < recount->touched; i++) {
		uint32_t number = recount->field[i] - 1;
		struct slot_count *count = &recount->count[recount->field[i]];
		const struct segment *segment = segment_at(index, number);
		int64_t mean = atomic_load_explicit(&segment->mean_bytes, memory_order_relaxed);

		segment_account_counts(index, number, count->slots, count->ghosts);
		slots += count->slots;
		ghosts += count->ghosts;
		live_bytes += count->slots * mean;
		hot_bytes += (int64_t)(count->slots - count->ghosts) * mean;
		count->slots = count->ghosts = 0;
	}
	recount->touched = 0;
	segment_account_sums(index, slots, ghosts, live_bytes, hot_bytes);
}

/* A slot that is not its table's, or out of range. Its stripe is held. */
static void empty_slot(struct recount *recount, unsigned table, _Atomic uint32_t *slot)
{
	if (table == TABLE_CLOSED)
		recount->emptied++;
	else
		recount->damaged++;
	atomic_store_explicit(slot, SLOT_EMPTY, memory_order_relaxed);
}

/* Judges and counts the slots of a run, whose stripe is held. */
static void run_count(const struct fidx *index, struct recount *recount, unsigned t, uint64_t from, uint64_t to)
{
	const struct slot_layout layout = index->layout;
	const uint32_t unused = slot_unused_bits(&layout);
	_Atomic uint32_t *slot = index->table[t].bucket[from].slot, *end = slot + (to - from) * FIDX_BUCKET_SLOTS;

	for (; slot < end; slot++) {
		uint32_t value = slot_load(slot), field = value >> layout.segment_shift;
		struct slot_count *count = &recount->count[field];

		if (value == SLOT_EMPTY)
			continue;
		if (__builtin_expect(count->table != t, 0)) {
			empty_slot(recount, count->table, slot);
			continue;
		}
		if (slot_function(value) >= index->functions || value & unused) {
			empty_slot(recount, TABLE_UNKNOWN, slot);
			continue;
		}
		if (count->slots++ == 0)
			recount->field[recount->touched++] = field;
		count->ghosts += state_is_ghost(slot_state(value));
	}
}

/* Counts the next run of a table. False: all are counted. */
static bool run_next(struct fidx *index, unsigned t, uint64_t *slots)
{
	struct table *table = &index->table[t];
	uint64_t from = atomic_load(&table->counted), buckets = table_buckets(table), to = from + RUN_BUCKETS;
	unsigned shift = atomic_load_explicit(&table->stripe_shift, memory_order_relaxed);
	struct lock *lock;

	if (from >= buckets)
		return false;
	if (to > ((from >> shift) + 1) << shift)
		to = ((from >> shift) + 1) << shift;
	if (to > buckets)
		to = buckets;
	lock = &index->stripe[from >> shift].lock;
	lock_acquire(lock);
	run_count(index, index->recount, t, from, to);
	run_account(index, index->recount);
	atomic_store(&table->counted, to);
	lock_release(lock);
	*slots -= *slots < (to - from) * FIDX_BUCKET_SLOTS ? *slots : (to - from) * FIDX_BUCKET_SLOTS;
	return true;
}

/* ---- extents --------------------------------------------------------------------------------- */

static void group_count(struct fidx *index, struct recount *recount, struct extent_group *group)
{
	for (unsigned way = 0; way < EXTENT_WAYS; way++) {
		uint64_t word = extent_load(&group->word[way]);
		bool open = word_is_open(index, word), empty = word_is_empty(word);

		if (open && extent_is_sound(index, word, extent_load(&group->offset[way]))) {
			extent_account(index, word, 1);
			continue;
		}
		if (empty) {
			extent_store(&group->hash[way], 0); /* of a change that was cut off */
			continue;
		}
		if (open || word_segment(word) >= index->segments)
			recount->damaged++;
		else
			recount->emptied++;
		extent_store(&group->word[way], 0);
		extent_store(&group->hash[way], 0);
	}
}

/* Counts the next group of the one table of extents that is in use. False: all are counted. */
static bool group_next(struct fidx *index, uint64_t *slots)
{
	struct extent_table *table = &index->extents.table[atomic_load(&index->extents.current)];
	uint64_t number = extent_load(&table->counted);
	struct lock *lock;

	if (number >= extent_groups(table))
		return false;
	lock = &index->extents.stripe[number % EXTENT_STRIPES];
	lock_acquire(lock);
	group_count(index, index->recount, &table->group[number]);
	extent_store(&table->counted, number + 1);
	lock_release(lock);
	*slots -= *slots < EXTENT_WAYS ? *slots : EXTENT_WAYS;
	return true;
}

/* ---- begin, go on, end ----------------------------------------------------------------------- */

/* Makes counts of zero, for the segments that are open now. NULL: memory is out. */
static struct slot_count *counts_create(const struct fidx *index)
{
	struct slot_count *count = mem_zalloc(sizeof(*count) << index->layout.segment_bits);

	if (!count)
		return NULL;
	for (uint32_t field = 0; field < 1u << index->layout.segment_bits; field++) {
		uint32_t s = field - 1; /* UINT32_MAX: an empty slot's, which counts as closed */

		if (field > index->segments)
			count[field].table = TABLE_UNKNOWN;
		else
			count[field].table =
				segment_sequence(index, s) == SEGMENT_CLOSED ? TABLE_CLOSED : segment_table(index, s);
	}
	return count;
}

int recount_begin(struct fidx *index)
{
	uint64_t bytes = sizeof(struct recount) + (sizeof(uint32_t) << index->layout.segment_bits);
	struct recount *recount = mem_zalloc(bytes);

	if (!recount)
		return FS_ENOMEM;
	recount->count = counts_create(index);
	if (!recount->count) {
		mem_free(recount);
		return FS_ENOMEM;
	}
	index->recount = recount;
	for (uint32_t left = tables_live(index); left; left &= left - 1)
		atomic_store(&index->table[__builtin_ctz(left)].counted, 0);
	for (unsigned t = 0; t < EXTENT_TABLES; t++)
		extent_store(&index->extents.table[t].counted, 0);
	atomic_store(&index->extents.present, 1);
	atomic_store(&index->counting, true);
	return FS_OK;
}

void recount_free(struct fidx *index)
{
	if (index->recount)
		mem_free(index->recount->count);
	mem_free(index->recount);
	index->recount = NULL;
}

static void recount_end(struct fidx *index, struct fidx_recounted *out)
{
	out->emptied = index->recount->emptied;
	out->damaged = index->recount->damaged;
	for (unsigned t = 0; t < FIDX_TABLES; t++)
		atomic_store(&index->table[t].counted, ALL_COUNTED);
	for (unsigned t = 0; t < EXTENT_TABLES; t++)
		extent_store(&index->extents.table[t].counted, ALL_COUNTED);
	atomic_fetch_sub(&index->extents.present, 1);
	recount_free(index);
	atomic_store(&index->counting, false);
}

bool fidx_is_counting(const struct fidx *index)
{
	return atomic_load_explicit(&index->counting, memory_order_acquire);
}

bool fidx_recount(struct fidx *index, uint64_t slots, struct fidx_recounted *out)
{
	const struct extents *extents = &index->extents;

	*out = (struct fidx_recounted){ 0 };
	if (!fidx_is_counting(index))
		return false;
	if (extent_groups(&extents->table[1 - atomic_load(&extents->current)]) > 0)
		extents_finish_move(index);
	for (uint32_t left = tables_live(index); left; left &= left - 1)
		while (slots > 0 && run_next(index, (unsigned)__builtin_ctz(left), &slots))
			fault_kill(FAULT_killed_in_recount);
	while (slots > 0 && group_next(index, &slots))
		fault_kill(FAULT_killed_in_recount);
	if (slots == 0)
		return true;
	recount_end(index, out);
	return false;
}

uint64_t fidx_uncounted(const struct fidx *index)
{
	uint64_t left = 0;

	if (!fidx_is_counting(index))
		return 0;
	for (uint32_t live = tables_live(index); live; live &= live - 1) {
		const struct table *table = &index->table[__builtin_ctz(live)];
		uint64_t counted = atomic_load(&table->counted), buckets = table_buckets(table);

		left += counted < buckets ? (buckets - counted) * FIDX_BUCKET_SLOTS : 0;
	}
	for (unsigned t = 0; t < EXTENT_TABLES; t++) {
		uint64_t counted = extent_load(&index->extents.table[t].counted);
		uint64_t groups = extent_groups(&index->extents.table[t]);

		left += counted < groups ? (groups - counted) * EXTENT_WAYS : 0;
	}
	return left ? left : 1; /* only the end is missing */
}
