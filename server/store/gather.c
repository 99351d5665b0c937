/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathering the candidates of the next segment: the stripes that have some are walked in turn
 * until enough bytes are there; so the search costs work in proportion to what is written. What is
 * gathered is marked as planned and immutable from then on: a change replaces it.
 */
#include <stdlib.h>

#include "server/store/store_internal.h"

/*
 * The groups that a segment of this many bytes is filled from. Small objects are most of what is
 * read: they share a segment with larger ones only when neither fills one (and the caller can't
 * wait), because each of their reads is as long as the segment's longest objects. Large objects
 * ride along with any group.
 */
unsigned choose_groups(const struct store *store, uint64_t bytes)
{
	uint64_t of[GROUPS];
	unsigned ride = 1u << GROUP_LARGE, others = 1u << GROUP_MEDIUM | 1u << GROUP_BIG | ride;

	for (int g = 0; g < GROUPS; g++) {
		int64_t now = atomic_load_explicit(&store->candidate_bytes[g], memory_order_relaxed);

		of[g] = now > 0 ? (uint64_t)now : 0;
	}
	for (int g = GROUP_SMALL; g < GROUP_LARGE; g++)
		if (of[g] >= bytes)
			return 1u << g | ride;
	if (of[GROUP_MEDIUM] + of[GROUP_BIG] + of[GROUP_LARGE] >= bytes)
		return others;
	return of[GROUP_SMALL] + of[GROUP_MEDIUM] + of[GROUP_BIG] + of[GROUP_LARGE] >= bytes ? others | 1u << GROUP_SMALL : 0;
}

static bool grow(struct store *store, struct gathered *out)
{
	uint32_t room = out->room ? out->room * 2 : 1024;
	struct seg_candidate *candidates = mem_realloc(out->candidates, room * sizeof(*candidates));

	if (candidates)
		out->candidates = candidates;
	struct plan_entry *entries = mem_realloc(out->entries, room * sizeof(*entries));
	if (entries)
		out->entries = entries;
	if (!candidates || !entries)
		return false;
	atomic_fetch_add_explicit(&store->plan_bytes, (room - out->room) * (sizeof(*candidates) + sizeof(*entries)),
				  memory_order_relaxed);
	out->room = room;
	return true;
}

struct gather_round {
	struct store *store;
	struct gathered *out;
	uint64_t now_ms;
	uint32_t now_seconds;
	unsigned groups;
};

static void add(struct gather_round *round, struct item *item, uint64_t hash, float score)
{
	struct gathered *out = round->out;
	struct seg_candidate *candidate = &out->candidates[out->count];
	struct plan_entry *entry = &out->entries[out->count];
	struct fidx_key key;

	fidx_key_of(round->store->index, hash, &key);
	candidate->item = item;
	candidate->place = key.place;
	candidate->length = (uint32_t)seg_record_length(item->key_length, item->value_length);
	candidate->extent = item_group(round->store, item) == GROUP_LARGE;
	clf_features_pack(&item->features, round->now_ms, &entry->features);
	entry->score = score;
	entry->fetched = item->state & ITEM_FETCHED ? 1 : 0;
	item_ref(item);
	out->bytes += candidate->length;
	out->item_bytes += item_cost(item);
	out->count++;
}

static void consider(struct gather_round *round, struct stripe *stripe, struct item *item)
{
	struct store *store = round->store;

	if (!(item->state & ITEM_CANDIDATE) || item->state & ITEM_PLANNED ||
	    !(round->groups & 1u << item_group(store, item)))
		return;
	if (!store_alive(store, item->expiry, item->cas, round->now_seconds)) {
		candidate_clear(store, stripe, item);
		return;
	}
	uint64_t hash = store_hash(store, item_key(item), item->key_length);
	float score = clf_score(store->classifier, clf_app(store->classifier, item_key(item), item->key_length), hash,
				&item->features, item_object_bytes(item), store_ttl(item->expiry, round->now_seconds));
	candidate_clear(store, stripe, item);
	if (score < 0)
		return; /* the model has changed its mind */
	item->state |= ITEM_PLANNED;
	add(round, item, hash, score);
}

static void gather_stripe(struct gather_round *round, struct stripe *stripe)
{
	struct gathered *out = round->out;

	lock_acquire(&stripe->lock);
	if (stripe->candidates > 0)
		for (uint32_t b = 0; b <= stripe->mask; b++)
			for (struct item *item = stripe->buckets[b]; item; item = item->next)
				if (out->count < out->room || grow(round->store, out))
					consider(round, stripe, item);
	lock_release(&stripe->lock);
}

/* Best first: what finds no place is then what counts least. */
struct ranked {
	float score;
	uint32_t at;
};

static int by_score(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return x->score < y->score ? 1 : x->score > y->score ? -1 : x->at < y->at ? -1 : 1;
}

static void rank(struct gathered *out)
{
	struct ranked *order = mem_alloc(out->count * sizeof(*order) + 1);
	struct seg_candidate *candidates = mem_alloc(out->count * sizeof(*candidates) + 1);
	struct plan_entry *entries = mem_alloc(out->count * sizeof(*entries) + 1);

	if (order && candidates && entries) {
		for (uint32_t i = 0; i < out->count; i++)
			order[i] = (struct ranked){ out->entries[i].score, i };
		qsort(order, out->count, sizeof(*order), by_score);
		for (uint32_t i = 0; i < out->count; i++) {
			candidates[i] = out->candidates[order[i].at];
			entries[i] = out->entries[order[i].at];
		}
		memcpy(out->candidates, candidates, out->count * sizeof(*candidates));
		memcpy(out->entries, entries, out->count * sizeof(*entries));
	}
	mem_free(order);
	mem_free(candidates);
	mem_free(entries);
}

void gather(struct store *store, unsigned groups, uint64_t want_bytes, struct gathered *out)
{
	struct cleaner *cleaner = &store->cleaner;
	struct gather_round round = { .store = store, .out = out, .now_ms = clk_now_ms(store->clock),
				      .now_seconds = store_now_seconds(store, clk_now_us(store->clock)),
				      .groups = groups };

	memset(out, 0, sizeof(*out));
	for (uint32_t n = 0; n < store->stripe_count && out->bytes < want_bytes; n++) {
		gather_stripe(&round, &store->stripes[cleaner->gather_stripe]);
		cleaner->gather_stripe = (cleaner->gather_stripe + 1) % store->stripe_count;
	}
	atomic_store_explicit(&store->planned_bytes, out->item_bytes, memory_order_relaxed);
	if (out->count > 1)
		rank(out);
}

/* Those that went to flash are unlinked by now; the others are candidates again. */
void gathered_release(struct store *store, struct gathered *gathered)
{
	for (uint32_t i = 0; i < gathered->count; i++) {
		struct item *item = gathered->candidates[i].item;
		struct stripe *stripe = store_stripe(store, store_hash(store, item_key(item), item->key_length));

		lock_acquire(&stripe->lock);
		item->state &= (uint8_t)~ITEM_PLANNED;
		if (item->state & ITEM_LINKED)
			candidate_set(store, stripe, item);
		lock_release(&stripe->lock);
		item_release(&store->cleaner.context, item);
	}
	atomic_fetch_sub_explicit(&store->plan_bytes,
				  gathered->room * (sizeof(struct seg_candidate) + sizeof(struct plan_entry)),
				  memory_order_relaxed);
	atomic_store_explicit(&store->planned_bytes, 0, memory_order_relaxed);
	mem_free(gathered->candidates);
	mem_free(gathered->entries);
	memset(gathered, 0, sizeof(*gathered));
	context_settle(&store->cleaner.context);
}
