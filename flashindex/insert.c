/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inserting, and making room for it.
 *
 * When both buckets are full, the slots in them could each go to their other bucket, and the slots
 * there to theirs: a breadth-first search over buckets finds the nearest free slot, and the slots
 * on the way to it each move one bucket on, the last one first. The search reads without locks;
 * each move locks its two buckets and looks again. With 256 buckets searched a way is at most
 * three moves long (2 buckets, up to 32 after one move, the others after two).
 *
 * One thread at a time inserts, so nobody else takes the room that was made.
 */
#include "flashindex/flashindex.h"

#include "base/assert.h"
#include "base/fault.h"
#include "base/lock.h"
#include "conf/counters.h"
#include "flashindex/index_internal.h"

#define SEARCH_BUCKETS 256
#define SEARCHES 4 /* how often a way that got lost is looked for again */

/* A bucket that the search has reached, and from where: slot of the parent's bucket leads here. */
struct step {
	uint32_t bucket;
	int16_t parent; /* -1: one of the key's own */
	uint8_t slot;
};

/* A free slot of the bucket, or NULL. Empty ones first: their line is enough to know. */
static _Atomic uint32_t *free_slot(const struct fidx *index, uint32_t number)
{
	struct bucket *bucket = &index->bucket[number];
	unsigned occupied;

	bucket_search(bucket, 0, 0, index->layout.segment_mask, &occupied);
	if (occupied != 0xffff)
		return &bucket->slot[__builtin_ctz(~occupied)];
	for (unsigned i = 0; i < FIDX_BUCKET_SLOTS; i++)
		if (slot_is_free(index, slot_load(&bucket->slot[i])))
			return &bucket->slot[i];
	return NULL;
}

static unsigned occupied_slots(const struct fidx *index, uint32_t number)
{
	unsigned occupied;

	bucket_search(&index->bucket[number], 0, 0, index->layout.segment_mask, &occupied);
	return (unsigned)__builtin_popcount(occupied);
}

/*
 * Stripe held. Writes a slot over whatever is there and returns what that was. Only CLOCK changes
 * can come between.
 */
static uint32_t overwrite(_Atomic uint32_t *at, uint32_t slot)
{
	uint32_t old = slot_load(at);

	while (!slot_swap(at, &old, slot))
		;
	return old;
}

/* What was overwritten leaves its segment's counts; empty slots have none. */
static void account_overwritten(struct fidx *index, uint32_t old)
{
	if ((old & index->layout.segment_mask) != index->layout.segment_mask)
		segment_account(index, slot_segment(&index->layout, old), -1,
				-state_is_ghost(slot_state(old)));
}

/* ---- one move -------------------------------------------------------------------------------- */

/*
 * Both stripes held. The copy is there before the original goes, and the counter of the lower
 * bucket's stripe is odd meanwhile, so that a lookup sees it in one place or looks again.
 */
static void move_slot(struct fidx *index, uint32_t from_bucket, _Atomic uint32_t *from, uint32_t to_bucket,
		      _Atomic uint32_t *to)
{
	uint32_t lower = from_bucket < to_bucket ? from_bucket : to_bucket;
	_Atomic uint32_t *moves = &bucket_stripe(index, lower)->moves;
	uint32_t slot = slot_load(from), copy = slot, last;

	atomic_fetch_add_explicit(moves, 1, memory_order_acq_rel);
	widen_race();
	account_overwritten(index, overwrite(to, slot));
	widen_race();
	last = overwrite(from, SLOT_EMPTY);
	if (last != slot) /* a CLOCK update came between: carried over, unless the copy had one too */
		slot_swap(to, &copy, last);
	widen_race();
	atomic_fetch_add_explicit(moves, 1, memory_order_release);
	ctr_add(CTR_index_moves, 1);
}

/* Moves a slot one bucket on, if all is still as the search saw it. True: its place is free now. */
static bool try_move(struct fidx *index, const struct step *parent, const struct step *step)
{
	_Atomic uint32_t *from = &index->bucket[parent->bucket].slot[step->slot];
	_Atomic uint32_t *to;
	bool free_now;
	uint32_t slot;

	stripes_acquire(index, parent->bucket, step->bucket);
	slot = slot_load(from);
	free_now = slot_is_free(index, slot);
	if (!free_now &&
	    bucket_partner(index, parent->bucket, slot_tag(&index->layout, slot)) == step->bucket) {
		to = free_slot(index, step->bucket);
		if (to) {
			move_slot(index, parent->bucket, from, step->bucket, to);
			free_now = true;
		}
	}
	stripes_release(index, parent->bucket, step->bucket);
	return free_now;
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool walk_back(struct fidx *index, const struct step *steps, int at)
{
	for (; steps[at].parent >= 0; at = steps[at].parent)
		if (!try_move(index, &steps[steps[at].parent], &steps[at]))
			return false;
	return true;
}

/* Reaches the buckets that parent's slots could go to. The index of a step whose bucket has room, or -1. */
static int expand(const struct fidx *index, struct step *steps, int parent, int *n)
{
	const struct bucket *bucket = &index->bucket[steps[parent].bucket];

	for (unsigned i = 0; i < FIDX_BUCKET_SLOTS && *n < SEARCH_BUCKETS; i++) {
		uint32_t slot = slot_load(&bucket->slot[i]);
		uint32_t other;

		if (slot_is_free(index, slot))
			continue;
		other = bucket_partner(index, steps[parent].bucket, slot_tag(&index->layout, slot));
		if (other == steps[parent].bucket)
			continue;
		steps[*n] = (struct step){other, (int16_t)parent, (uint8_t)i};
		(*n)++;
		if (free_slot(index, other))
			return *n - 1;
	}
	return -1;
}

/* Frees a slot in one of the key's buckets by moving others away. False: there is no way. */
static bool make_room(struct fidx *index, const struct fidx_key *key)
{
	for (unsigned tries = 0; tries < SEARCHES; tries++) {
		struct step steps[SEARCH_BUCKETS];
		int n = 0, found = -1;

		steps[n++] = (struct step){key->bucket[0], -1, 0};
		if (key->bucket[1] != key->bucket[0])
			steps[n++] = (struct step){key->bucket[1], -1, 0};
		for (int at = 0; at < n && found < 0; at++)
			found = expand(index, steps, at, &n);
		if (found < 0)
			return false;
		if (walk_back(index, steps, found))
			return true;
	}
	return false;
}

/* ---- insert ---------------------------------------------------------------------------------- */

/* Both stripes held. The emptier bucket's free slot, so that buckets fill evenly. */
static _Atomic uint32_t *choose_free(const struct fidx *index, const struct fidx_key *key)
{
	unsigned first = occupied_slots(index, key->bucket[0]) > occupied_slots(index, key->bucket[1]);
	_Atomic uint32_t *at = free_slot(index, key->bucket[first]);

	return at ? at : free_slot(index, key->bucket[!first]);
}

/* Both stripes held, no slot free. The coldest of all; among equals the one that dies first. */
static _Atomic uint32_t *choose_coldest(const struct fidx *index, const struct fidx_key *key)
{
	_Atomic uint32_t *coldest = NULL;
	uint64_t least_sequence = 0;
	unsigned least = 0;

	for (unsigned i = 0; i < FIDX_MAX_MATCHES; i++) {
		_Atomic uint32_t *at =
			&index->bucket[key->bucket[i / FIDX_BUCKET_SLOTS]].slot[i % FIDX_BUCKET_SLOTS];
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

static bool has_room(struct fidx *index, const struct fidx_key *key)
{
	return free_slot(index, key->bucket[0]) || free_slot(index, key->bucket[1]);
}

void fidx_insert(struct fidx *index, const struct fidx_key *key, uint32_t segment, unsigned function,
		 unsigned clock)
{
	uint32_t slot = slot_name(&index->layout, segment, key->tag, function) | state_unread(clock);
	_Atomic uint32_t *at;
	bool drop;

	must(segment < index->segments && function < index->functions && clock <= CLOCK_MAX);
	must(segment_sequence(index, segment) != SEGMENT_CLOSED);
	if (fault_fires(FAULT_index_force_relocation) || !has_room(index, key))
		make_room(index, key);

	stripes_acquire(index, key->bucket[0], key->bucket[1]);
	at = choose_free(index, key);
	drop = !at;
	if (drop)
		at = choose_coldest(index, key);
	account_overwritten(index, overwrite(at, slot));
	segment_account(index, segment, 1, 0);
	stripes_release(index, key->bucket[0], key->bucket[1]);

	ctr_add(CTR_index_inserts, 1);
	if (drop)
		ctr_add(CTR_index_drops, 1);
}
