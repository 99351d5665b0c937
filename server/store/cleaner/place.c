/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that a test wants on flash (drive.h). They are made candidates, and the cleaner writes a segment of them alone,
 * however little of it they fill. What could not be moved, as a reader held it or as there was no room, is tried again.
 */
#include <unistd.h>

#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/drive.h"

#ifdef FS_FAULTS

#define POLL_US 500
#define IN_VAIN_MOST 200u /* steps without an object that moved: then those that are left stay where they are */
#define IDLE_STEPS 2u /* one may have begun before the call */

struct place {
	const struct store_place_key *keys; /* NULL: all objects that may go */
	const _Atomic bool *cancelled;
	unsigned count, moved, in_vain;
	_Atomic bool done; /* the cleaner has let go of it */
};

static struct item *place_find(struct store *store, const struct store_place_key *key, struct stripe **stripe)
{
	uint64_t hash = store_hash(store, key->key, key->length);

	*stripe = store_stripe(store, hash);
	lock_acquire(&(*stripe)->lock);
	return stripe_find(*stripe, hash, key->key, key->length);
}

static unsigned place_mark_stripe(struct store *store, struct stripe *stripe)
{
	uint32_t now = store_now_seconds(store, clk_now_us(store->clock));
	unsigned found = 0;

	lock_acquire(&stripe->lock);
	for (uint32_t n = 0; n < stripe_lines(stripe) * LINE_LINKS; n++) {
		struct item *item = stripe_item(stripe, n / LINE_LINKS, n % LINE_LINKS);

		if (item && candidate_eligible(store, item) && store_alive(store, item->expiry, item->cas, now)) {
			candidate_set(store, stripe, item);
			found++;
		}
	}
	lock_release(&stripe->lock);
	return found;
}

/* Returns how many of the objects are in DRAM, and makes them candidates. */
static unsigned place_mark(struct store *store, const struct place *place)
{
	unsigned found = 0;

	for (uint32_t n = 0; !place->keys && n < store->stripe_count; n++)
		found += place_mark_stripe(store, &store->stripes[n]);

	for (unsigned i = 0; i < place->count; i++) {
		struct stripe *stripe;
		struct item *item = place_find(store, &place->keys[i], &stripe);

		if (item && !(item->state & ITEM_PLANNED))
			candidate_set(store, stripe, item);
		found += item != NULL;
		lock_release(&stripe->lock);
	}
	return found;
}

bool place_is_under_way(const struct store *store)
{
	return store->cleaner->places != NULL;
}

bool place_wants(const struct store *store, const struct item *item)
{
	const struct place *place = store->cleaner->places;

	if (!place->keys)
		return true;
	for (unsigned i = 0; i < place->count; i++)
		if (item->key_length == place->keys[i].length &&
		    memcmp(item_key(item), place->keys[i].key, place->keys[i].length) == 0)
			return true;
	return false;
}

/* Small objects have segments of their own in a frugal index. */
static void place_write(struct store *store)
{
	unsigned small = 1u << GROUP_SMALL, all = (1u << GROUPS) - 1;

	if (store->frugal) {
		(void)cleaner_write(store, small);
		(void)cleaner_write(store, all & ~small);
	} else {
		(void)cleaner_write(store, all);
	}
}

static bool place_end(struct store *store, struct place *place)
{
	atomic_store(&store->cleaner->asked_place, NULL);
	atomic_store(&place->done, true);
	return true;
}

bool place_step(struct store *store, bool may_write)
{
	struct cleaner *cleaner = store->cleaner;
	struct place *place = atomic_load(&cleaner->asked_place);
	unsigned before, after;

	if (!place)
		return false;
	if (atomic_load(place->cancelled))
		return place_end(store, place);
	if (!may_write || !cleaner_takes_writes(store))
		return false;
	before = place_mark(store, place);
	if (before > 0) {
		cleaner->places = place;
		place_write(store);
		cleaner->places = NULL;
	}
	after = place_mark(store, place);
	place->moved += before > after ? before - after : 0;
	place->in_vain = after < before ? 0 : place->in_vain + 1;
	if (after > 0 && place->in_vain < IN_VAIN_MOST)
		return after < before;
	return place_end(store, place);
}

unsigned store_place(struct store *store, const struct store_place_key *keys, unsigned count,
		     const _Atomic bool *cancelled)
{
	struct place place = { .keys = keys, .cancelled = cancelled, .count = count };

	if (!store->index)
		return 0;
	atomic_store(&store->cleaner->asked_place, &place);
	cleaner_wake(store);
	while (!atomic_load(&place.done)) /* the cleaner lets go of it before */
		usleep(POLL_US);
	return place.moved;
}

/* The thread has come round without a step that had something to do. */
static bool has_rested(const struct background *background, uint64_t idle_before, uint64_t busy_before)
{
	return !background->threaded || (atomic_load(&background->idle_steps) >= idle_before + IDLE_STEPS &&
					 atomic_load(&background->busy_steps) == busy_before);
}

void store_rest(struct store *store, const _Atomic bool *cancelled)
{
	const struct background *both[] = { &store->keeper->background, &store->cleaner->background };
	uint64_t idle[2] = { 0 }, busy[2] = { 0 };

	atomic_store(&store->cleaner->driven, true);
	for (bool first = true, rested = false; !rested && !atomic_load(cancelled); first = false) {
		rested = !first;
		for (int i = 0; i < 2; i++) {
			uint64_t busy_now = atomic_load(&both[i]->busy_steps);

			if (first || busy_now != busy[i]) {
				busy[i] = busy_now;
				idle[i] = atomic_load(&both[i]->idle_steps);
			}
			rested &= has_rested(both[i], idle[i], busy[i]);
		}
		cleaner_wake(store);
		if (!rested)
			usleep(POLL_US);
	}
	atomic_store(&store->cleaner->driven, false);
}

#endif
