/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reclaim of a segment of bins. No slot tells whether a record is live, and to find out may take reads. So the question
 * whether a record is worth keeping comes first, because most are not. Only for those that are, the columns tell whether there is
 * a newer one or a kill; a match costs a read of its bin. Records come in the order of bins, so that chain records are read in
 * order, and each once.
 *
 * The segment is open all the while. An object that went back into DRAM is kept: a change of it is a kill too, as its record can
 * be read until the segment is closed.
 */
#include <unistd.h>

#include "server/store/cleaner/reclaim_internal.h"
#include "server/store/state/bins.h"
#include "server/store/state/bins_search.h"

struct bins_walk {
	struct reclaim_walk *walk;
	struct bins_searcher searcher;
};

/* Is the object in DRAM a copy of this record? Then the copy becomes the object. A touch keeps the id, so it may be a copy of a
   newer record as well, with a slot: that goes. The stripe is held. */
static void meet_item(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item,
		      const struct seg_record *record)
{
	struct fidx_key key;

	if (!(item->state & ITEM_CLEAN) || item->cas != record->cas)
		return;
	fidx_key_of(store->index, hash, &key);
	fidx_clear(store->index, &key);
	copy_becomes_original(store, stripe, hash, item);
	item->state |= ITEM_KEPT;
}

/* Does anything in DRAM make the record a dead one? */
static bool is_dead_by_memory(struct store *store, struct stripe *stripe, uint64_t hash,
			      const struct seg_record *record)
{
	struct item *there;
	bool dead;

	lock_acquire(&stripe->lock);
	there = stripe_find(stripe, hash, record->key, record->key_length);
	if (there)
		meet_item(store, stripe, hash, there, record);
	dead = there || !bins_may_hold(store, hash);
	lock_release(&stripe->lock);
	return dead;
}

/* Under the stripe: the object goes back into DRAM, unless its key was changed since. Takes the item over. */
static void take_back(struct reclaim_walk *walk, struct stripe *stripe, const struct bins_record *record,
		      const struct frugal_since *since, struct item *item)
{
	struct store *store = walk->store;
	const struct frugal_found at = { .segment = record->segment, .sequence = record->sequence };
	struct frugal_key key;
	bool taken = false;

	frugal_key_of(store->frugal, record->hash, &key);
	lock_acquire(&stripe->lock);
	if (!stripe_find(stripe, record->hash, record->key, record->key_length) &&
	    frugal_is_true(store->frugal, &key, &at, since) && reclaim_link(walk, stripe, item, 1)) {
		item->state |= ITEM_KEPT;
		taken = true;
		fault_kill(FAULT_killed_in_reclaim);
	}
	lock_release(&stripe->lock);
	if (!taken)
		item_release(&store->cleaner->context, item);
}

static void drop(struct reclaim_walk *walk, uint64_t hash)
{
	walk->dropped++;
	clf_note_evicted(walk->store->classifier, hash, NULL, clk_now_ms(walk->store->clock));
}

static bool visit(void *context, uint64_t offset, bool extent, const struct seg_record *record)
{
	struct bins_walk *bins = context;
	struct reclaim_walk *walk = bins->walk;
	struct store *store = walk->store;
	const struct bins_record place = { .key = record->key,
					   .key_length = record->key_length,
					   .hash = store_hash(store, record->key, record->key_length),
					   .segment = walk->segment,
					   .sequence = walk->sequence };
	struct stripe *stripe = store_stripe(store, place.hash);
	struct frugal_since since;
	struct item *item;

	(void)offset;
	(void)extent;
	if (reclaim_walk_fails(walk))
		return false;
	walk->hash = place.hash;
	walk->match = (struct fidx_match){ .read_on_flash = bins_was_read(store, walk->segment, place.hash) };
	if (is_dead_by_memory(store, stripe, place.hash, record))
		return true;
	if (!store_alive(store, record->expiry, record->cas, walk->now_seconds) || !reclaim_is_worthy(walk, record)) {
		drop(walk, place.hash);
		return true;
	}
	if (!bins_is_current(&bins->searcher, &place, &since))
		return true;
	item = reclaim_item(walk, record);
	if (fault_fires(FAULT_store_reclaim_visit))
		usleep(1000); /* a fault point: clients run meanwhile */
	if (item)
		take_back(walk, stripe, &place, &since, item);
	else
		drop(walk, place.hash);
	return true;
}

int reclaim_bins(struct reclaim_walk *walk)
{
	struct bins_walk bins = { .walk = walk };
	uint64_t visited;
	int result;

	bins_searcher_init(&bins.searcher, walk->store, true);
	result = seg_walk(walk->store->segments, walk->segment, visit, &bins, &visited);
	ctr_add(CTR_flash_reclaim_bytes_read, bins.searcher.bytes);
	bins_searcher_fini(&bins.searcher);
	return result;
}
