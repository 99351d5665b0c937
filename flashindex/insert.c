/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inserting, and making room for it.
 *
 * When both buckets are full, each slot in them could go to its other bucket, and the slots
 * there to theirs: a breadth-first search over buckets finds the nearest free slot, and each slot
 * on the path to it moves one bucket on, the last one first. The search reads without locks;
 * each move locks its two buckets and looks again. With 256 buckets searched a path is at most
 * three moves long (2 buckets, up to 32 after one move, the others after two).
 *
 * One thread at a time inserts, so no other thread takes the new room.
 */
#include "flashindex/flashindex.h"

#include "base/assert.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/metrics/counters.h"
#include "flashindex/index_internal.h"

#define SEARCH_BUCKETS 256
#define SEARCHES 4 /* a path that others have changed meanwhile is searched for again, so many times in all */

/* A bucket that the search has reached: this slot of the parent's bucket leads here. */
struct step {
	uint32_t bucket;
	int16_t parent; /* index of a step; -1: the bucket is one of the key's own */
	uint8_t slot;
};

/* A free slot of the bucket, or NULL. Empty ones first: the bucket's cache line alone tells them. */
static _Atomic uint32_t *free_slot(const struct fidx *index, const struct table *table, uint32_t number)
{
	struct bucket *bucket = &table->bucket[number];
	unsigned occupied;

	bucket_search(bucket, 0, 0, index->layout.segment_mask, &occupied);
	if (occupied != 0xffff)
		return &bucket->slot[__builtin_ctz(~occupied)];
	for (unsigned i = 0; i < FIDX_BUCKET_SLOTS; i++)
		if (slot_is_free(index, slot_load(&bucket->slot[i])))
			return &bucket->slot[i];
	return NULL;
}

static unsigned occupied_slots(const struct fidx *index, const struct table *table, uint32_t number)
{
	unsigned occupied;

	bucket_search(&table->bucket[number], 0, 0, index->layout.segment_mask, &occupied);
	return (unsigned)__builtin_popcount(occupied);
}

/* Overwrites a slot and returns its old value. Only CLOCK changes can come between. Stripe held. */
static uint32_t overwrite(_Atomic uint32_t *at, uint32_t slot)
{
	uint32_t old = slot_load(at);

	while (!slot_swap(at, &old, slot))
		;
	return old;
}

/* Takes an overwritten slot off its segment's counts; an empty one has none. */
static void account_overwritten(struct fidx *index, uint32_t old)
{
	if (!slot_is_empty(&index->layout, old))
		segment_account(index, slot_segment(&index->layout, old), -1, -state_is_ghost(slot_state(old)));
}

/* ---- one move -------------------------------------------------------------------------------- */

/* Tells a later process, should this one be killed in the move, where the slot may be twice. One thread moves slots. */
static void note_move(struct fidx *index, const struct table *table, uint32_t from, uint32_t to, uint32_t slot)
{
	struct region_move *move = &index->kept->move;

	atomic_store_explicit(&move->table, (uint32_t)(table - index->table), memory_order_relaxed);
	atomic_store_explicit(&move->from, from, memory_order_relaxed);
	atomic_store_explicit(&move->to, to, memory_order_relaxed);
	atomic_store_explicit(&move->slot, slot, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst); /* the compiler keeps the move behind it */
}

/*
 * Moves a slot. The copy is there before the original goes, and the counter of the lower bucket's stripe is odd
 * meanwhile, so that a lookup sees the slot in one of the buckets or looks again. Both stripes held.
 */
static void move_slot(struct fidx *index, const struct table *table, uint32_t from_bucket, _Atomic uint32_t *from,
		      uint32_t to_bucket, _Atomic uint32_t *to)
{
	uint32_t lower = from_bucket < to_bucket ? from_bucket : to_bucket;
	_Atomic uint32_t *moves = &bucket_stripe(index, table, lower)->moves;
	uint32_t slot = slot_load(from), copy = slot, last, count;

	must(!slot_is_empty(&index->layout, slot));
	count = atomic_fetch_add_explicit(moves, 1, memory_order_acq_rel);
	must(count % 2 == 0); /* its stripe is held, so no other slot moves */
	widen_race();
	note_move(index, table, from_bucket, to_bucket, slot);
	account_overwritten(index, overwrite(to, slot));
	fault_kill(FAULT_killed_in_relocation);
	widen_race();
	last = overwrite(from, SLOT_EMPTY);
	if (last != slot) /* carries a CLOCK update over that came between, unless the copy had one too */
		(void)slot_swap(to, &copy, last);
	atomic_store_explicit(&index->kept->move.slot, SLOT_EMPTY, memory_order_release);
	widen_race();
	atomic_fetch_add_explicit(moves, 1, memory_order_release);
	ctr_add(CTR_index_moves, 1);
}

/* Moves a slot one bucket on, if nothing has changed since the search. True: the slot that it left is free now. */
static bool try_move(struct fidx *index, const struct table *table, const struct step *parent, const struct step *step)
{
	_Atomic uint32_t *from = &table->bucket[parent->bucket].slot[step->slot];
	_Atomic uint32_t *to;
	bool free_now;
	uint32_t slot;

	stripes_acquire(index, table, parent->bucket, step->bucket);
	slot = slot_load(from);
	free_now = slot_is_free(index, slot);
	if (!free_now && bucket_partner(index, table_buckets(table), parent->bucket, slot_tag(&index->layout, slot)) ==
				 step->bucket) {
		to = free_slot(index, table, step->bucket);
		if (to) {
			move_slot(index, table, parent->bucket, from, step->bucket, to);
			free_now = true;
		}
	}
	stripes_release(index, table, parent->bucket, step->bucket);
	return free_now;
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool relocate_along(struct fidx *index, const struct table *table, const struct step *steps, int at)
{
	for (; steps[at].parent >= 0; at = steps[at].parent) {
		must(steps[at].parent < at);
		if (!try_move(index, table, &steps[steps[at].parent], &steps[at]))
			return false;
	}
	return true;
}

/* Adds steps to the buckets to which parent's slots could go. Returns a step's index whose bucket has room, or -1. */
static int search_expand(const struct fidx *index, const struct table *table, struct step *steps, int parent, int *n)
{
	const struct bucket *bucket = &table->bucket[steps[parent].bucket];

	for (unsigned i = 0; i < FIDX_BUCKET_SLOTS && *n < SEARCH_BUCKETS; i++) {
		uint32_t slot = slot_load(&bucket->slot[i]);
		uint32_t other;

		if (slot_is_free(index, slot))
			continue;
		other = bucket_partner(index, table_buckets(table), steps[parent].bucket,
				       slot_tag(&index->layout, slot));
		if (other == steps[parent].bucket)
			continue;
		must(other < table_buckets(table));
		steps[*n] = (struct step){ other, (int16_t)parent, (uint8_t)i };
		(*n)++;
		if (free_slot(index, table, other))
			return *n - 1;
	}
	return -1;
}

/* Frees a slot in one of the two buckets by moving others away. False: there is no path, or it was lost each time. */
static bool relocate_for_room(struct fidx *index, const struct table *table, const uint32_t pair[2])
{
	for (unsigned tries = 0; tries < SEARCHES; tries++) {
		struct step steps[SEARCH_BUCKETS];
		int n = 0, found = -1;

		steps[n++] = (struct step){ pair[0], -1, 0 };
		if (pair[1] != pair[0])
			steps[n++] = (struct step){ pair[1], -1, 0 };
		for (int at = 0; at < n && found < 0; at++)
			found = search_expand(index, table, steps, at, &n);
		if (found < 0)
			return false;
		if (relocate_along(index, table, steps, found))
			return true;
	}
	return false;
}

/* ---- insert ---------------------------------------------------------------------------------- */

/* A free slot of the emptier bucket, so that buckets fill evenly, or of the other; NULL: none. Both stripes held. */
static _Atomic uint32_t *choose_free(const struct fidx *index, const struct table *table, const uint32_t pair[2])
{
	unsigned first = occupied_slots(index, table, pair[0]) > occupied_slots(index, table, pair[1]);
	_Atomic uint32_t *at = free_slot(index, table, pair[first]);

	return at ? at : free_slot(index, table, pair[!first]);
}

/* The coldest of all slots; among equals, the one whose segment is reclaimed first. Both stripes held, no slot free. */
static _Atomic uint32_t *choose_coldest(const struct fidx *index, const struct table *table, const uint32_t pair[2])
{
	_Atomic uint32_t *coldest = NULL;
	uint64_t least_sequence = 0;
	unsigned least = 0;

	for (unsigned i = 0; i < FIDX_PAIR_SLOTS; i++) {
		_Atomic uint32_t *at = &table->bucket[pair[i / FIDX_BUCKET_SLOTS]].slot[i % FIDX_BUCKET_SLOTS];
		uint32_t slot = slot_load(at);
		unsigned warmth = state_warmth(slot_state(slot));
		uint64_t sequence = segment_sequence(index, slot_segment(&index->layout, slot));

		if (!coldest || warmth < least || (warmth == least && sequence < least_sequence)) {
			coldest = at;
			least = warmth;
			least_sequence = sequence;
		}
	}
	return coldest;
}

/* Tells that the coldest slot goes, and returns it. The bucket's own pair is the slot's, which need not be the key's. */
static _Atomic uint32_t *lose_coldest(const struct fidx *index, const struct table *table, const uint32_t pair[2])
{
	_Atomic uint32_t *at = choose_coldest(index, table, pair);
	uint32_t slot = slot_load(at), own[2];

	own[0] = (uint32_t)((struct bucket *)((uintptr_t)at & ~(uintptr_t)(sizeof(struct bucket) - 1)) - table->bucket);
	own[1] = bucket_partner(index, table_buckets(table), own[0], slot_tag(&index->layout, slot));
	lose_slot(index, table, own, slot);
	return at;
}

static bool has_room(struct fidx *index, const struct table *table, const uint32_t pair[2])
{
	return free_slot(index, table, pair[0]) || free_slot(index, table, pair[1]);
}

/* No table comes or goes meanwhile: that is this thread's work too. */
bool fidx_insert(struct fidx *index, const struct fidx_key *given, uint32_t segment, unsigned function, unsigned clock,
		 enum fidx_drop drop)
{
	struct fidx_key copy;
	const struct fidx_key *key = key_settle(index, given, &copy);
	const struct table *table = &index->table[segment_table(index, segment)];
	const uint32_t *pair = key->bucket[segment_table(index, segment)];
	uint32_t slot = slot_name(&index->layout, segment, key->tag, function) | state_unread(clock);
	_Atomic uint32_t *at;
	bool full;

	must(segment < index->segments && function < index->functions && clock <= CLOCK_MAX);
	must(segment_sequence(index, segment) != SEGMENT_CLOSED && !fidx_is_counting(index));
	if (fault_fires(FAULT_index_force_relocation) || !has_room(index, table, pair))
		(void)relocate_for_room(index, table, pair); /* without room, the pair below has no free slot */

	stripes_acquire(index, table, pair[0], pair[1]);
	at = choose_free(index, table, pair);
	full = !at;
	if (full && drop == FIDX_DROP_COLDEST)
		at = lose_coldest(index, table, pair);
	if (at) {
		account_overwritten(index, overwrite(at, slot));
		segment_account(index, segment, 1, 0);
	}
	stripes_release(index, table, pair[0], pair[1]);
	if (at)
		ctr_add(CTR_index_inserts, 1);
	if (at && full)
		ctr_add(CTR_index_drops, 1);
	return at != NULL;
}
