/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scores: the classifier says which objects in DRAM are worth flash. An object is scored when it is read for the 1st,
 * 2nd, 4th, 8th, ... time, when it is set with a history, and when the crawler passes after the model changed.
 */
#include "server/store/cleaner/cleaner_internal.h"

/* Objects over a quarter of a segment stay in DRAM, and so do clean copies and objects with marks that a record can't
   hold. */
static bool candidate_eligible(const struct store *store, const struct item *item)
{
	return !(item->state & (ITEM_CLEAN | ITEM_PLANNED)) && !item_marked(item) &&
	       seg_record_length(item->key_length, item->value_length) <= store->segment_bytes / 4;
}

void candidate_score(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item, uint32_t now_seconds)
{
	lock_assert_held(&stripe->lock);
	if (!candidate_eligible(store, item))
		return;
	unsigned app = clf_app(store->classifier, item_key(item), item->key_length);
	float score = clf_score(store->classifier, app, hash, &item->features, item_object_bytes(item),
				store_ttl(item->expiry, now_seconds));

	if (score >= 0)
		candidate_set(store, stripe, item);
	else
		candidate_clear(store, stripe, item);
}
