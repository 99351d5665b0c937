/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Candidates for flash are marked, and counted in their stripe and size group, so that the cleaner knows without a
 * search whether they fill a segment, and looks only into stripes that have some. cleaner/score.c decides on the
 * marks.
 */
#include "server/store/dram/dram.h"

#include "server/store/dram/limits.h"

unsigned item_group(const struct store *store, const struct item *item)
{
	uint64_t length = seg_record_length(item->key_length, item->value_length);

	if (length > store->slot_record_bytes)
		return GROUP_LARGE;
	return length <= store->small_max ? GROUP_SMALL : length <= GROUP_MEDIUM_MAX ? GROUP_MEDIUM : GROUP_BIG;
}

static void candidate_note_limited(const struct store *store, const struct item *item, unsigned group, int64_t bytes)
{
	struct limits *limits = item->state & ITEM_LIMITED ? store_limits(store) : NULL; /* a frugal store has none */

	if (__builtin_expect(limits != NULL, 0))
		limits_note_candidate(limits, item, group, bytes);
}

void candidate_set(struct store *store, struct stripe *stripe, struct item *item)
{
	lock_assert_held(&stripe->lock);
	if (item->state & ITEM_CANDIDATE)
		return;
	unsigned group = item_group(store, item);
	int64_t bytes = item_record_bytes(item);
	must(item->state & ITEM_LINKED && !(item->state & ITEM_PLANNED));
	item->state |= ITEM_CANDIDATE;
	stripe->candidates++;
	must(stripe->candidates <= atomic_load_explicit(&stripe->count, memory_order_relaxed));
	atomic_fetch_add_explicit(&store->candidate_bytes[group], bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&store->candidate_count, 1, memory_order_relaxed);
	candidate_note_limited(store, item, group, bytes);
}

void candidate_unmark(const struct store *store, struct stripe *stripe, struct item *item, struct candidate_sums *sums)
{
	unsigned group = item_group(store, item);
	uint32_t bytes = item_record_bytes(item);

	lock_assert_held(&stripe->lock);
	must(item->state & ITEM_CANDIDATE && stripe->candidates > 0);
	item->state &= (uint8_t)~ITEM_CANDIDATE;
	stripe->candidates--;
	sums->bytes[group] += bytes;
	sums->count++;
	candidate_note_limited(store, item, group, -(int64_t)bytes);
}

void candidate_settle(struct store *store, struct candidate_sums *sums)
{
	if (sums->count == 0)
		return;
	for (int g = 0; g < GROUPS; g++)
		if (sums->bytes[g])
			atomic_fetch_sub_explicit(&store->candidate_bytes[g], (int64_t)sums->bytes[g],
						  memory_order_relaxed);
	int64_t before = atomic_fetch_sub_explicit(&store->candidate_count, sums->count, memory_order_relaxed);
	must(before >= sums->count);
	*sums = (struct candidate_sums){ 0 };
}

void candidate_clear(struct store *store, struct stripe *stripe, struct item *item)
{
	struct candidate_sums sums = { 0 };

	if (!(item->state & ITEM_CANDIDATE))
		return;
	candidate_unmark(store, stripe, item, &sums);
	candidate_settle(store, &sums);
}

void candidate_by_group(const struct store *store, uint64_t out[GROUPS])
{
	for (int g = 0; g < GROUPS; g++) {
		int64_t now = atomic_load_explicit(&store->candidate_bytes[g], memory_order_relaxed);

		out[g] = now > 0 ? (uint64_t)now : 0;
	}
}

uint64_t candidate_total(const struct store *store)
{
	int64_t sum = 0;

	for (int g = 0; g < GROUPS; g++)
		sum += atomic_load_explicit(&store->candidate_bytes[g], memory_order_relaxed);
	return sum > 0 ? (uint64_t)sum : 0;
}
