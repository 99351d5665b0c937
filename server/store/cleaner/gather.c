/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathering the candidates of the next segment: walks the stripes that have some, in turn, until there are enough
 * bytes, so that the search costs in proportion to the write. That of a few applications' candidates (ceilings.c) has to
 * look into most stripes, as candidates of others are there too. A gathered item is marked as planned and immutable from
 * then on: a change replaces it.
 */
#include <float.h>
#include <stdlib.h>

#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/limits.h"

#define LINES_PER_LOCK 8u /* a hit that meets the lock waits some ten microseconds at the most */
#define ITEMS_AHEAD 6u
#define STEP_OBJECTS 64u /* released between two steps ... */
#define STEP_RANKED 1024u /* ... and ranked */
#define RANKS (1u << 16)

/*
 * The groups for a segment of so many bytes, where of[] has the candidates' bytes by group. Most reads are for small
 * objects. Each read is as long as the segment's longest objects with a slot, so small objects share a segment with
 * larger ones only when neither group fills one. Large objects ride along with any group, but not in segments of bins.
 */
unsigned gather_choose_groups(const struct store *store, const uint64_t of[GROUPS], uint64_t bytes)
{
	unsigned ride = 1u << GROUP_LARGE, small_ride = store->frugal ? 0 : ride,
		 others = 1u << GROUP_MEDIUM | 1u << GROUP_BIG | ride;

	for (int g = GROUP_SMALL; g < GROUP_LARGE; g++)
		if (of[g] >= bytes)
			return 1u << g | (g == GROUP_SMALL ? small_ride : ride);
	if (of[GROUP_MEDIUM] + of[GROUP_BIG] + of[GROUP_LARGE] >= bytes)
		return others;
	return of[GROUP_SMALL] + of[GROUP_MEDIUM] + of[GROUP_BIG] + of[GROUP_LARGE] >= bytes
		       ? others | 1u << GROUP_SMALL
		       : 0;
}

bool gather_is_for_bins(const struct store *store, unsigned groups)
{
	return store->frugal && groups == 1u << GROUP_SMALL;
}

static bool gather_set_room(struct store *store, struct gathered *out, uint32_t room)
{
	struct seg_candidate *candidates = mem_realloc(out->candidates, room * sizeof(*candidates));

	if (candidates)
		out->candidates = candidates;
	struct plan_entry *entries = mem_realloc(out->entries, room * sizeof(*entries));
	if (entries)
		out->entries = entries;
	if (!candidates || !entries)
		return false;
	plan_bytes_add(store, (uint64_t)(room - out->room) * (sizeof(*candidates) + sizeof(*entries)));
	out->room = room;
	return true;
}

/* Makes room for as many as want_bytes will hold, by the candidates' mean size, because growing means copying. */
static bool gather_guess_room(struct store *store, struct gathered *out, uint64_t want_bytes)
{
	int64_t count = atomic_load_explicit(&store->candidate_count, memory_order_relaxed);
	uint64_t bytes = candidate_total(store), guess = 0;

	if (count > 0 && bytes > 0)
		guess = (uint64_t)((double)want_bytes / (double)bytes * (double)count);
	if (count > 0 && guess > (uint64_t)count)
		guess = (uint64_t)count;
	return gather_set_room(store, out, (uint32_t)(guess + guess / 16 + 1024));
}

struct gather_round {
	struct store *store;
	struct gathered *out;
	uint64_t now_ms;
	uint32_t now_seconds;
	unsigned groups, table;
	uint64_t found; /* bytes of the candidates that were considered */
	bool asked; /* the candidates were offered, and admitted: all of them are ranked, and the best taken */
	struct candidate_sums taken; /* unmarked in this hold of a stripe */
};

static void gather_add(struct gather_round *round, struct item *item, uint64_t hash, float score)
{
	struct gathered *out = round->out;
	struct seg_candidate *candidate = &out->candidates[out->count];
	struct plan_entry *entry = &out->entries[out->count];
	struct fidx_key key;

	must(out->count < out->room);
	fidx_key_of(round->store->index, hash, &key);
	candidate->item = item;
	candidate->place = out->bins ? frugal_order(hash) : fidx_place_in(round->store->index, &key, round->table);
	candidate->length = (uint32_t)seg_record_length(item->key_length, item->value_length);
	candidate->extent = item_group(round->store, item) == GROUP_LARGE;
	const struct clf_features features = item_features(item);

	clf_features_pack(&features, round->now_ms, &entry->features);
	entry->score = score;
	entry->fetched = item->state & ITEM_FETCHED ? 1 : 0;
	item_ref(item);
	out->bytes += candidate->length;
	out->extents += candidate->extent;
	out->slot_bytes += candidate->extent ? 0 : candidate->length;
	out->item_bytes += item_cost(item);
	out->count++;
}

/* Under a rule that asked when the object was to be evicted this is a rank alone. */
static float gather_score(const struct gather_round *round, const struct item *item, uint64_t hash)
{
	struct store *store = round->store;

	const struct clf_features features = item_features(item);

	if (!round->asked)
		return clf_score(store->classifier, hash, &features);
	const struct clf_object object = item_as_clf_object(store, item, &features, hash, round->now_ms);
	return clf_worth(store->classifier, &object, round->now_ms);
}

static bool is_of_pressed(const struct store *store, const struct item *item)
{
	const struct limited *app = item->state & ITEM_LIMITED ? limits_of(store_limits(store), item) : NULL;

	return app && app->pressed;
}

static void gather_consider(struct gather_round *round, struct stripe *stripe, struct item *item)
{
	struct store *store = round->store;

	if (!(item->state & ITEM_CANDIDATE) || item->state & ITEM_PLANNED || !item_has_room_for_ref(item) ||
	    !(round->groups & 1u << item_group(store, item)) ||
	    (store->cleaner->ceilings.only && !is_of_pressed(store, item)) ||
	    (place_is_under_way(store) && !place_wants(store, item)))
		return;
	round->found += item_record_bytes(item);
	candidate_unmark(store, stripe, item, &round->taken);
	if (!store_alive(store, item->expiry, item->cas, round->now_seconds))
		return;
	uint64_t hash = store_hash(store, item_key(item), item->key_length);
	bool is_wanted = limits_need_flash(store, item) || place_is_under_way(store);
	float score = is_wanted ? FLT_MAX : gather_score(round, item, hash);
	if (score < 0 && !round->asked)
		return; /* by the present model it is no candidate */
	if (!limits_take(store, item, item_record_bytes(item)))
		return;
	item->state |= ITEM_PLANNED;
	gather_add(round, item, hash, score);
}

static void gather_line(struct gather_round *round, struct stripe *stripe, uint32_t line)
{
	struct gathered *out = round->out;

	for (unsigned link = 0; link < LINE_LINKS; link++) {
		struct item *item = stripe_item(stripe, line, link);

		if (item &&
		    (out->count < out->room || gather_set_room(round->store, out, out->room + out->room / 4 + 1024)))
			gather_consider(round, stripe, item);
	}
}

/* Visits some lines from the position on, in one hold of the stripe. True: no candidate is left there, or those were
   the last lines. A candidate that moves from one line to another between two holds may wait for the next plan. */
static bool gather_lines(struct gather_round *round, struct stripe *stripe, struct line_position *at)
{
	bool last;

	lock_acquire(&stripe->lock);
	uint32_t line = position_line(at, stripe), end = line + LINES_PER_LOCK;
	stripe_prefetch(stripe, line);
	for (; line < end && line < stripe_lines(stripe) && stripe->candidates > 0; line++) {
		if (line + 1 < end)
			stripe_prefetch(stripe, line + 1);
		gather_line(round, stripe, line);
	}
	last = line >= stripe_lines(stripe) || stripe->candidates == 0;
	position_set(at, stripe, line);
	lock_release(&stripe->lock);
	candidate_settle(round->store, &round->taken);
	pace_step(round->store);
	return last;
}

/* ---- rank ------------------------------------------------------------------------------------ */

/* A rank that rises as the score falls. The upper half of a float tells scores apart that differ by 1 %. */
static uint32_t gather_rank(float score)
{
	uint32_t bits;

	memcpy(&bits, &score, sizeof(bits));
	bits = bits >> 31 ? ~bits : bits | 1u << 31;
	return RANKS - 1 - (bits >> 16);
}

/* Moves candidate i to position to[i], for all i; to[] is the identity in the end. */
static void gather_permute(struct store *store, struct gathered *out, uint32_t *to)
{
	for (uint32_t i = 0; i < out->count; i++) {
		if (i % STEP_RANKED == 0)
			pace_step(store);
		while (to[i] != i) {
			uint32_t j = to[i];

			must(j < out->count);
			struct seg_candidate candidate = out->candidates[j];
			struct plan_entry entry = out->entries[j];

			out->candidates[j] = out->candidates[i];
			out->entries[j] = out->entries[i];
			out->candidates[i] = candidate;
			out->entries[i] = entry;
			to[i] = to[j];
			to[j] = j;
		}
	}
}

/* Best score first, so that the least valuable objects are the ones that don't fit. Equal ones keep their order, as
   neighbours in memory. Without memory for the sort the order stays as it is. */
static void gather_sort(struct store *store, struct gathered *out)
{
	uint64_t bytes = (out->count + (uint64_t)RANKS) * sizeof(uint32_t);
	uint32_t *to = mem_alloc(bytes), *first, sum = 0;

	if (!to)
		return;
	plan_bytes_add(store, bytes);
	first = to + out->count;
	memset(first, 0, RANKS * sizeof(*first));
	for (uint32_t i = 0; i < out->count; i++)
		first[gather_rank(out->entries[i].score)]++;
	for (uint32_t r = 0; r < RANKS; r++) {
		uint32_t count = first[r];

		first[r] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < out->count; i++)
		to[i] = first[gather_rank(out->entries[i].score)]++;
	gather_permute(store, out, to);
	mem_free(to);
	plan_bytes_sub(store, bytes);
}

void planned_release(struct store *store, struct item *item)
{
	struct stripe *stripe = store_stripe(store, store_hash(store, item_key(item), item->key_length));

	lock_acquire(&stripe->lock);
	must(item->state & ITEM_PLANNED);
	item->state &= (uint8_t)~ITEM_PLANNED;
	if (item->state & ITEM_LINKED)
		candidate_set(store, stripe, item);
	lock_release(&stripe->lock);
	item_release(&store->cleaner->context, item);
}

/* The worst of the candidates wait for the next plan. */
static void gather_cut(struct store *store, struct gathered *out, uint64_t want_bytes)
{
	while (out->count > 1 && out->bytes - out->candidates[out->count - 1].length >= want_bytes) {
		struct seg_candidate *last = &out->candidates[--out->count];
		struct item *item = last->item;

		out->bytes -= last->length;
		out->extents -= last->extent;
		out->slot_bytes -= last->extent ? 0 : last->length;
		out->item_bytes -= item_cost(item);
		planned_release(store, item);
	}
	atomic_store_explicit(&store->planned_bytes, out->item_bytes, memory_order_relaxed);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Returns the bytes of the candidates to be found, as far as they are known. */
static uint64_t gather_bytes_there(const struct store *store, unsigned groups)
{
	const struct ceilings *ceilings = &store->cleaner->ceilings;
	uint64_t sum = 0;

	if (!ceilings->only)
		return UINT64_MAX;
	for (int g = 0; g < GROUPS; g++)
		sum += groups & 1u << g ? ceilings->candidates[g] : 0;
	return sum;
}

void gather_candidates(struct store *store, unsigned groups, uint64_t want_bytes, unsigned table, struct gathered *out)
{
	struct cleaner *cleaner = store->cleaner;
	struct gather_round round = { .store = store,
				      .out = out,
				      .now_ms = clk_now_ms(store->clock),
				      .now_seconds = store_now_seconds(store, clk_now_us(store->clock)),
				      .groups = groups,
				      .asked = clf_asks_at_eviction(store->classifier),
				      .table = table };

	/* Of those that were asked about, more are ranked than are taken. */
	uint64_t most = round.asked && cleaner_ranks(store) > want_bytes ? cleaner_ranks(store) : want_bytes;
	uint64_t there = gather_bytes_there(store, groups);

	if (store->cleaner->ceilings.only)
		most = want_bytes;

	must(atomic_load_explicit(&store->planned_bytes, memory_order_relaxed) == 0); /* one plan at a time */
	must(cleaner->gather_stripe < store->stripe_count);
	limits_begin_plan(store);
	memset(out, 0, sizeof(*out));
	out->bins = gather_is_for_bins(store, groups);
	out->table_id = fidx_table_id(store->index, table);
	if (!gather_guess_room(store, out, want_bytes))
		return;
	for (uint32_t n = 0; n < store->stripe_count && out->bytes < most && round.found < there; n++) {
		struct stripe *stripe = &store->stripes[cleaner->gather_stripe];
		struct line_position at = { 0 };

		while (!gather_lines(&round, stripe, &at))
			;
		cleaner->gather_stripe = (cleaner->gather_stripe + 1) % store->stripe_count;
	}
	atomic_store_explicit(&store->planned_bytes, out->item_bytes, memory_order_relaxed);
	if (out->count > 1)
		gather_sort(store, out);
	if (round.asked)
		gather_cut(store, out, want_bytes);
}

void gathered_release(struct store *store, struct gathered *gathered)
{
	for (uint32_t i = 0; i < gathered->count; i++) {
		if (i + ITEMS_AHEAD < gathered->count && gathered->candidates[i + ITEMS_AHEAD].item)
			item_prefetch(gathered->candidates[i + ITEMS_AHEAD].item);
		if (gathered->candidates[i].item)
			planned_release(store, gathered->candidates[i].item);
		if (i % STEP_OBJECTS == 0)
			pace_step(store);
	}
	plan_bytes_sub(store, gathered->room * (sizeof(struct seg_candidate) + sizeof(struct plan_entry)));
	atomic_store_explicit(&store->planned_bytes, 0, memory_order_relaxed);
	mem_free(gathered->candidates);
	mem_free(gathered->entries);
	memset(gathered, 0, sizeof(*gathered));
	context_settle(&store->cleaner->context);
}
