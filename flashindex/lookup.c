/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding slots, and the changes that need no room: clear, remove, touch.
 *
 * A lookup takes no lock; it looks in each live table, and again if tables have come or gone meanwhile. It may see a
 * slot in neither bucket while the slot moves from the bucket that it reads second to the one that it read first; the
 * stripe's move counter tells it to look again. This rests on an order, without a fence: the mover makes the counter
 * odd, writes the copy, clears the original (both with release), and makes the counter even. A reader that saw the
 * original cleared has acquired that (simd_internal.h), so its second load of the counter sees the odd value or a later
 * one. That is all a machine that reorders loads needs too: whichever bucket it reads first, what it missed shows in the
 * counter.
 */
#include "flashindex/flashindex.h"

#include <sched.h>

#include "base/assert.h"
#include "base/metrics/counters.h"
#include "flashindex/index_internal.h"

/* A slot's value, and where it was read. */
struct found {
	uint32_t slot;
	unsigned way;
	_Atomic uint32_t *at;
};

struct scan {
	struct found found[FIDX_PAIR_SLOTS];
	unsigned n;
	uint32_t others; /* a bit for each occupied slot that doesn't match */
};

/* Between the first use and filter_use_end, no published filter is freed. */
struct filter_use {
	struct shard *shard; /* NULL: none used yet */
};

/* Not every x86-64 has an instruction for it, and the compiler's library function is slower. */
static unsigned count_bits(uint32_t bits)
{
	bits -= (bits >> 1) & 0x55555555u;
	bits = (bits & 0x33333333u) + ((bits >> 2) & 0x33333333u);
	return ((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

/* A table, and the key's two buckets in it. */
struct pair {
	const struct table *table;
	unsigned number; /* of the table */
	uint32_t bucket[2];
};

/* The key is settled. */
static inline struct pair pair_of(const struct fidx *index, const struct fidx_key *key, unsigned table)
{
	return (struct pair){ &index->table[table], table, { key->bucket[table][0], key->bucket[table][1] } };
}

/* Scans one bucket of the pair; second is 0 or 1. */
static inline void scan_bucket(const struct fidx *index, const struct pair *pair, unsigned second, uint32_t mask,
			       uint32_t want, struct scan *scan)
{
	struct bucket *bucket = &pair->table->bucket[pair->bucket[second]];
	unsigned occupied;
	unsigned match = bucket_search(bucket, mask, want, index->layout.segment_mask, &occupied);

	match &= occupied;
	scan->others |= (occupied ^ match) << FIDX_BUCKET_SLOTS * second;
	for (; match; match &= match - 1) {
		unsigned i = (unsigned)__builtin_ctz(match);
		_Atomic uint32_t *at = &bucket->slot[i];
		uint32_t slot = slot_load(at);

		/* Its CLOCK, or all of it, may have changed since the search. */
		if ((slot & mask) == want && !slot_is_empty(&index->layout, slot))
			scan->found[scan->n++] = (struct found){ slot, FIDX_BUCKET_SLOTS * second + i, at };
	}
}

static void scan_both(const struct fidx *index, const struct pair *pair, uint32_t mask, uint32_t want,
		      struct scan *scan)
{
	scan->n = 0;
	scan->others = 0;
	scan_bucket(index, pair, 0, mask, want, scan);
	widen_race();
	if (pair->bucket[1] != pair->bucket[0])
		scan_bucket(index, pair, 1, mask, want, scan);
}

/* Scans both buckets without a lock. Waits for the end of a move in its stripe, which is two stores long. */
static void scan_settled(const struct fidx *index, const struct pair *pair, uint32_t mask, uint32_t want,
			 struct scan *scan)
{
	uint32_t lower = pair->bucket[0] < pair->bucket[1] ? pair->bucket[0] : pair->bucket[1];
	const _Atomic uint32_t *moves = &bucket_stripe(index, pair->table, lower)->moves;

	__builtin_prefetch(&pair->table->bucket[pair->bucket[0]]);
	__builtin_prefetch(&pair->table->bucket[pair->bucket[1]]);
	for (;;) {
		uint32_t before = atomic_load_explicit(moves, memory_order_acquire);

		if (before & 1) {
			sched_yield();
			continue;
		}
		scan_both(index, pair, mask, want, scan);
		if (atomic_load_explicit(moves, memory_order_acquire) == before)
			return;
	}
}

static bool filter_rejects(struct fidx *index, uint32_t segment, uint64_t hash, struct filter_use *use)
{
	const struct filter *filter;

	if (!atomic_load_explicit(&index->filters, memory_order_relaxed))
		return false;
	if (!use->shard) {
		use->shard = shard_self(index);
		readers_enter(use->shard);
	}
	filter = atomic_load(&segment_at(index, segment)->filter);
	if (!filter || filter_passes(index, filter, hash))
		return false;
	if (index->filter_units)
		atomic_fetch_add_explicit(&segment_at(index, segment)->asked, 1, memory_order_relaxed);
	return true;
}

static void filter_use_end(struct filter_use *use)
{
	if (use->shard)
		readers_leave(use->shard);
}

enum verdict { VERDICT_MATCH, VERDICT_CLOSED, VERDICT_FILTER, VERDICT_EXACT };

static void fill_state(struct fidx_match *match, unsigned state)
{
	match->clock = state_clock(state) & CLOCK_MAX;
	match->ghost = state_is_ghost(state);
	match->read_on_flash = state_is_read(state);
}

static uint64_t place_in(const struct fidx_key *key, const struct pair *pair)
{
	return place_of(table_id(pair->table), pair->bucket, key->tag);
}

/*
 * May this slot, which has the key's tag, be the key's? Filters and collisions never reject the
 * owner. The slot may have been emptied and its segment reopened since it was read: then the
 * match never existed, and a reader finds no record of the key there.
 */
static enum verdict judge_slot(struct fidx *index, const struct fidx_key *key, const struct pair *pair,
			       const struct found *found, struct filter_use *use, struct fidx_match *match)
{
	uint32_t slot = found->slot;

	match->segment = slot_segment(&index->layout, slot);
	match->sequence = segment_sequence(index, match->segment);
	match->function = (uint8_t)slot_function(slot);
	match->way = (uint8_t)found->way;
	match->place = place_in(key, pair);
	fill_state(match, slot_state(slot));
	/* A segment that is bound to another table by now was closed and opened again since the slot was read. Of a slot
	   that isn't counted yet, any bit may be wrong. */
	if (match->sequence == SEGMENT_CLOSED || segment_table(index, match->segment) != pair->number ||
	    match->function >= index->functions)
		return VERDICT_CLOSED;
	if (filter_rejects(index, match->segment, key->hash, use))
		return VERDICT_FILTER;
	if (exact_rejects(index->exact, match, key->hash))
		return VERDICT_EXACT;
	return VERDICT_MATCH;
}

static uint32_t tag_in_place(const struct fidx_key *key)
{
	return key->tag << SLOT_TAG_SHIFT;
}

static void sort_youngest_first(struct fidx_match *match, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		struct fidx_match moving = match[i];
		unsigned at = i;

		for (; at > 0 && match[at - 1].sequence < moving.sequence; at--)
			match[at] = match[at - 1];
		match[at] = moving;
	}
}

/* The results of a lookup so far. */
struct seen {
	struct fidx_match *match;
	unsigned n, others, by_filter, by_exact;
};

/* Looks in one table. The key is settled. */
static inline void lookup_in_table(struct fidx *index, const struct fidx_key *key, unsigned table,
				   struct filter_use *use, struct seen *seen)
{
	const struct pair pair = pair_of(index, key, table);
	struct scan scan;

	scan_settled(index, &pair, index->layout.tag_mask, tag_in_place(key), &scan);
	for (unsigned i = 0; i < scan.n; i++) {
		enum verdict verdict = judge_slot(index, key, &pair, &scan.found[i], use, &seen->match[seen->n]);

		seen->n += verdict == VERDICT_MATCH;
		seen->by_filter += verdict == VERDICT_FILTER;
		seen->by_exact += verdict == VERDICT_EXACT;
	}
	if (scan.others)
		seen->others += count_bits(scan.others);
}

unsigned fidx_lookup(struct fidx *index, const struct fidx_key *given, struct fidx_match out[FIDX_MAX_MATCHES])
{
	struct filter_use use = { NULL };
	struct fidx_key copy;
	const struct fidx_key *key;
	struct seen seen;

	do {
		key = key_settle(index, given, &copy);
		seen = (struct seen){ .match = out };
		for (uint32_t left = key_tables(key); left; left &= left - 1)
			lookup_in_table(index, key, (unsigned)__builtin_ctz(left), &use, &seen);
	} while (__builtin_expect(key->epoch != tables_epoch(index), 0));
	filter_use_end(&use);
	if (seen.others)
		ctr_add(CTR_tag_rejects, seen.others);
	if (seen.by_filter)
		ctr_add(CTR_filter_rejects, seen.by_filter);
	if (seen.by_exact)
		ctr_add(CTR_exact_rejects, seen.by_exact);
	sort_youngest_first(out, seen.n);
	return seen.n;
}

/* ---- taking slots out ------------------------------------------------------------------------ */

/* A pair, and its stripes, which are held. */
struct held {
	struct pair pair;
	struct lock *lock[2];
	struct fidx_key key; /* settled */
};

static void held_release(struct held *held)
{
	unlock_two(held->lock[0], held->lock[1]);
}

/*
 * Takes both stripes of the key's pair in a table; false: the table is not live. The tables have not changed since the
 * stripes were chosen, and a new one waits for all holders of stripes.
 */
static bool held_acquire(struct fidx *index, const struct fidx_key *given, unsigned table, struct held *held)
{
	held->key = *given;
	for (;;) {
		struct fidx_key copy;

		held->key = *key_settle(index, &held->key, &copy);
		if (!(key_tables(&held->key) >> table & 1))
			return false;
		held->pair = pair_of(index, &held->key, table);
		for (unsigned i = 0; i < 2; i++)
			held->lock[i] = &bucket_stripe(index, held->pair.table, held->pair.bucket[i])->lock;
		lock_two(held->lock[0], held->lock[1]);
		if (__builtin_expect(held->key.epoch == tables_epoch(index), 1))
			return true;
		held_release(held);
	}
}

/* Empties a slot of the pair and accounts it. Stripe held: only the CLOCK can change meanwhile, and a ghost stays a
   ghost. */
static void slot_take_out(struct fidx *index, const struct pair *pair, const struct found *found)
{
	uint32_t slot = found->slot;

	lose_slot(index, pair->table, pair->bucket, slot);
	while (!slot_swap(found->at, &slot, SLOT_EMPTY))
		must((slot & ~STATE_MASK) == (found->slot & ~STATE_MASK));
	slot_account(index, pair->table, found->at, slot_segment(&index->layout, slot), -1,
		     -state_is_ghost(slot_state(slot)));
}

/* Does any slot of the table match, by a look without a lock? The key is settled. */
static bool any_match(struct fidx *index, const struct fidx_key *key, unsigned table)
{
	const struct pair pair = pair_of(index, key, table);
	struct filter_use use = { NULL };
	struct fidx_match match;
	struct scan scan;
	bool any = false;

	scan_settled(index, &pair, index->layout.tag_mask, tag_in_place(key), &scan);
	for (unsigned i = 0; i < scan.n && !any; i++)
		any = judge_slot(index, key, &pair, &scan.found[i], &use, &match) == VERDICT_MATCH;
	filter_use_end(&use);
	return any;
}

static unsigned clear_in_table(struct fidx *index, const struct fidx_key *key, unsigned table)
{
	struct filter_use use = { NULL };
	struct fidx_match match;
	unsigned cleared = 0;
	struct held held;
	struct scan scan;

	if (!held_acquire(index, key, table, &held))
		return 0;
	scan_both(index, &held.pair, index->layout.tag_mask, tag_in_place(key), &scan);
	for (unsigned i = 0; i < scan.n; i++)
		if (judge_slot(index, &held.key, &held.pair, &scan.found[i], &use, &match) == VERDICT_MATCH) {
			slot_take_out(index, &held.pair, &scan.found[i]);
			cleared++;
		}
	held_release(&held);
	filter_use_end(&use);
	return cleared;
}

unsigned fidx_clear(struct fidx *index, const struct fidx_key *given)
{
	unsigned cleared = extents_clear(index, given->hash);
	struct fidx_key copy;
	const struct fidx_key *key;

	/* Inserts of the key's places need the key stripe, which the caller holds: a slot that a look
	   without a lock doesn't find does not come meanwhile, in any table. */
	do {
		key = key_settle(index, given, &copy);
		for (uint32_t left = key_tables(key); left; left &= left - 1) {
			unsigned table = (unsigned)__builtin_ctz(left);

			if (any_match(index, key, table))
				cleared += clear_in_table(index, key, table);
		}
	} while (__builtin_expect(key->epoch != tables_epoch(index), 0));
	if (cleared)
		ctr_add(CTR_index_slots_cleared, cleared);
	return cleared;
}

/* ---- one slot by its identity ---------------------------------------------------------------- */

static bool identity_is_open(const struct fidx *index, const struct fidx_match *match)
{
	return match->segment < index->segments && match->function < index->functions &&
	       match->sequence != SEGMENT_CLOSED && segment_sequence(index, match->segment) == match->sequence;
}

static uint32_t name_of(const struct fidx *index, const struct fidx_key *key, const struct fidx_match *match)
{
	return slot_name(&index->layout, match->segment, key->tag, match->function);
}

/*
 * Finds the slots of an identity and takes both stripes, which the caller releases; false: there is none, and no stripe
 * is held. With the stripes held, no slot of this place is inserted, and a segment is reopened only when all its
 * slots are gone: so if the sequence is the segment's now, the found slots are of that sequence.
 */
static bool find_held(struct fidx *index, const struct fidx_key *key, const struct fidx_match *match, struct held *held,
		      struct scan *scan)
{
	if (!identity_is_open(index, match) || !held_acquire(index, key, segment_table(index, match->segment), held))
		return false;
	scan_both(index, &held->pair, ~STATE_MASK, name_of(index, key, match), scan);
	if (scan->n && identity_is_open(index, match))
		return true;
	held_release(held);
	return false;
}

/* The slot where the match was seen last. */
static _Atomic uint32_t *slot_seen(const struct fidx *index, const struct fidx_key *given,
				   const struct fidx_match *match)
{
	struct fidx_key copy;
	const struct fidx_key *key = key_settle(index, given, &copy);
	unsigned table = segment_table(index, match->segment), way = match->way % FIDX_PAIR_SLOTS;
	/* If the table has gone meanwhile, any bucket will do. */
	uint32_t bucket = key_tables(key) >> table & 1 ? key->bucket[table][way / FIDX_BUCKET_SLOTS] : 0;

	return &index->table[table].bucket[bucket].slot[way % FIDX_BUCKET_SLOTS];
}

void fidx_touch_soon(const struct fidx *index, const struct fidx_key *key, const struct fidx_match *match)
{
	__builtin_prefetch(slot_seen(index, key, match), 1);
}

/* Finds the slot with the match's name without a lock: where it was seen last, otherwise in both buckets. */
static bool find_named(struct fidx *index, const struct fidx_key *given, const struct fidx_match *match,
		       struct found *found)
{
	uint32_t name = name_of(index, given, match);
	_Atomic uint32_t *at = slot_seen(index, given, match);
	uint32_t slot = slot_load(at);
	const struct fidx_key *key;
	struct fidx_key copy;
	struct scan scan;

	*found = (struct found){ slot, match->way % FIDX_PAIR_SLOTS, at };
	if ((slot & ~STATE_MASK) == name)
		return true;
	do {
		unsigned table = segment_table(index, match->segment);

		key = key_settle(index, given, &copy);
		scan.n = 0;
		if (key_tables(key) >> table & 1) {
			const struct pair pair = pair_of(index, key, table);

			scan_settled(index, &pair, ~STATE_MASK, name, &scan);
		}
	} while (__builtin_expect(key->epoch != tables_epoch(index), 0));
	if (!scan.n)
		return false;
	*found = scan.found[0];
	return true;
}

bool fidx_find(struct fidx *index, const struct fidx_key *key, struct fidx_match *match)
{
	struct found found;

	if (!identity_is_open(index, match) || !find_named(index, key, match, &found))
		return false;
	match->way = (uint8_t)found.way;
	fill_state(match, slot_state(found.slot));
	return true;
}

bool fidx_remove(struct fidx *index, const struct fidx_key *key, const struct fidx_match *match)
{
	struct held held;
	struct scan scan;

	if (!find_held(index, key, match, &held, &scan))
		return false;
	for (unsigned i = 0; i < scan.n; i++)
		slot_take_out(index, &held.pair, &scan.found[i]);
	held_release(&held);
	return true;
}

static bool revive_ghost(struct fidx *index, const struct fidx_key *key, const struct fidx_match *match)
{
	bool revived = false;
	struct held held;
	struct scan scan;

	if (!find_held(index, key, match, &held, &scan))
		return false;
	if (state_is_ghost(slot_state(scan.found[0].slot))) {
		uint32_t slot = scan.found[0].slot;
		uint32_t live = (slot & ~STATE_MASK) | state_after_hit(STATE_GHOST, index->clock_mode);

		/* No thread changes a ghost without the stripe. */
		must(slot_swap(scan.found[0].at, &slot, live));
		slot_account(index, held.pair.table, scan.found[0].at, match->segment, 0, -1);
		revived = true;
	}
	held_release(&held);
	if (revived)
		ctr_add(CTR_flash_ghosts_revived, 1);
	return revived;
}

bool fidx_touch(struct fidx *index, const struct fidx_key *key, const struct fidx_match *match)
{
	struct found found;
	uint32_t slot, hit;

	if (!identity_is_open(index, match) || !find_named(index, key, match, &found))
		return false;
	slot = found.slot;
	if (state_is_ghost(slot_state(slot)))
		return revive_ghost(index, key, match);
	hit = (slot & ~STATE_MASK) | state_after_hit(slot_state(slot), index->clock_mode);
	if (hit != slot)
		(void)slot_swap(found.at, &slot, hit); /* another hit, or a change that ends the slot, may win */
	return false;
}
