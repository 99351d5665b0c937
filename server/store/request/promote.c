/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GET that was answered from flash may leave a clean copy in DRAM, so that the next ones of a hot object spare the
 * drive. A rule chooses the objects. Copies have a share of -m (dram/copies.c), in which they make room for each other. A
 * fault point asks for copies without a rule, so that tests see each command meet one.
 */
#include "server/store/dram/limits.h"
#include "server/store/request/lookup_internal.h"

#define SAMPLED_EACH 8u /* one get of so many updates the sketch, as in the paper */

void promote_init(struct store_worker *worker)
{
	struct store *store = worker->context.store;
	const struct store_promotion *promotion = &store->config.promotion;

	if (promotion->rule == STORE_PROMOTE_SKETCH && !store_proves_slots(store))
		sketch_init(&worker->sketch, promotion->width);
}

static bool promote_asks_rule(struct store_lookup *lookup, bool was_read)
{
	struct store_worker *worker = lookup->worker;
	const struct store_promotion *promotion = &worker->context.store->config.promotion;

	switch (promotion->rule) {
	case STORE_PROMOTE_SKETCH:
		return worker->flash_gets++ % SAMPLED_EACH == 0 &&
		       sketch_add(&worker->sketch, lookup->request->hash, lookup->reads) >= promotion->threshold;
	case STORE_PROMOTE_LRU:
		return true;
	case STORE_PROMOTE_SECOND:
		return was_read;
	case STORE_PROMOTE_OFF:
		break;
	}
	return false;
}

bool promote_wants(struct store_lookup *lookup, bool quiet, bool was_read)
{
	if (store_proves_slots(lookup->worker->context.store))
		return false;
	return fault_fires(FAULT_store_promote) ||
	       (!quiet && lookup->what != LOOKUP_EXTENT && promote_asks_rule(lookup, was_read));
}

/* Is what led to the record still there? The stripe is held. */
static bool promote_finds_again(struct store *store, struct store_lookup *lookup)
{
	struct fidx_match match;

	if (lookup_in_bins(lookup))
		return bins_are_true(lookup, true);
	match = *lookup_match(lookup);
	return fidx_find(store->index, &lookup->key, &match);
}

/* The slot stays beside the copy. A change of the copy clears the key's slots first, without knowing which one it
   is. */
void lookup_promote(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms)
{
	struct store_worker *worker = lookup->worker;
	struct store *store = worker->context.store;
	uint64_t hash = lookup->request->hash;
	struct stripe *stripe = store_stripe(store, hash);
	bool ruled = store->config.promotion.rule != STORE_PROMOTE_OFF;
	struct item *item;

	if (lookup->what == LOOKUP_EXTENT ||
	    !limits_have_room(store, record->key, record->key_length, mem_cost(record_item_bytes(store, record))))
		return;
	if (ruled && !copies_make_room(&worker->context, hash, mem_cost(record_item_bytes(store, record))))
		return;
	item = item_from_record(&worker->context, record, packed_ms);
	if (!item)
		return;
	item->state |= ITEM_CLEAN;
	item_set_clock(item, 1);
	lock_acquire(&stripe->lock);
	if (!stripe_find(stripe, hash, record->key, record->key_length) && promote_finds_again(store, lookup) &&
	    (!ruled || copies_note(store, hash)) && stripe_link(store, stripe, hash, item))
		item = NULL;
	lock_release(&stripe->lock);
	if (item) {
		item_release(&worker->context, item);
		return;
	}
	ctr_add(CTR_flash_promotions, 1);
}
