/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classifier says which objects in DRAM are candidates for flash. A rule of one kind is asked when the hand would
 * evict an object (candidate_offer). A rule of the other kind is asked when an object is set, when it is read for the
 * 1st, 2nd, 4th, 8th, ... time, and when the crawler passes after the model changed (candidate_score).
 */
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/limits.h"

bool candidate_eligible(const struct store *store, const struct item *item)
{
	return !(item->state & (ITEM_CLEAN | ITEM_PLANNED)) && !item_marked(item) &&
	       limits_may_write(store, item_key(item), item->key_length) &&
	       seg_record_length(item->key_length, item->value_length) <= store->segment_bytes / CANDIDATE_SHARE;
}

void candidate_score(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item)
{
	lock_assert_held(&stripe->lock);
	if (clf_asks_at_eviction(store->classifier) || !candidate_eligible(store, item))
		return;
	const struct clf_features features = item_features(item);
	float score = clf_score(store->classifier, hash, &features);

	if (score >= 0)
		candidate_set(store, stripe, item);
	else
		candidate_clear(store, stripe, item);
}

struct clf_object item_as_clf_object(const struct store *store, const struct item *item,
				     const struct clf_features *features, uint64_t hash, uint64_t now_ms)
{
	return (struct clf_object){ .hash = hash,
				    .features = features,
				    .record_bytes = item_record_bytes(item),
				    .ttl_seconds = store_ttl(item->expiry, store_now_seconds(store, now_ms * 1000)) };
}

bool candidate_offer(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item, uint64_t now_ms)
{
	const struct clf_features features = item_features(item);
	const struct clf_object object = item_as_clf_object(store, item, &features, hash, now_ms);

	lock_assert_held(&stripe->lock);
	if (item->state & ITEM_CANDIDATE)
		return true;
	/* Under -M whatever doesn't go to flash has a set refused one day. */
	if (!candidate_eligible(store, item) || (fill_is_on(store) && !fill_takes(&object)) ||
	    !(clf_offer(store->classifier, &object, now_ms) || !store->config.evict))
		return false;
	candidate_set(store, stripe, item);
	return true;
}
