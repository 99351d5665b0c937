/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GET that was answered from flash leaves a clean copy in DRAM. No rule asks for that; a fault point does, so that
 * tests see each command meet a clean copy.
 */
#ifdef FS_FAULTS
#include "server/store/request/lookup_internal.h"

/* The slot stays beside the copy. A change of the copy clears the key's slots first, without knowing which one it
   is. */
void lookup_promote(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms)
{
	struct store_worker *worker = lookup->worker;
	struct store *store = worker->context.store;
	uint64_t hash = lookup->request->hash;
	struct stripe *stripe = store_stripe(store, hash);
	struct item *item = item_from_record(&worker->context, record, packed_ms);
	struct fidx_match match = lookup->match[lookup->at];

	if (!item)
		return;
	item->state |= ITEM_CLEAN;
	item_set_clock(item, 1);
	lock_acquire(&stripe->lock);
	if (!lookup->extent_read && !stripe_find(stripe, hash, record->key, record->key_length) &&
	    fidx_find(store->index, &lookup->key, &match)) {
		stripe_link(store, stripe, hash, item);
		item = NULL;
	}
	lock_release(&stripe->lock);
	if (item)
		item_release(&worker->context, item);
	else
		ctr_add(CTR_flash_promotions, 1);
}
#endif
