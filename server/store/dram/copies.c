/* SPDX-License-Identifier: BSD-3-Clause */
/* Clean copies within their share of -m: their bytes, and the queue by which older ones make room (CLOCK, with one
   second chance for each read). Eviction drops copies as well, as it drops other items; the queue then has a hash that leads to
   nothing, which costs it one look. */
#include "server/store/dram/dram_internal.h"
#include "server/store/dram/share.h"

#define COPIES_LEAST 64u
#define COPIES_MOST (1u << 22)
#define LOOKS 8u /* at copies, to make room for one */
#define COPY_PART 8u /* of the share: a larger copy would empty it */

struct copies {
	_Atomic int64_t bytes, items; /* of all clean copies; any thread, under the copy's stripe */
	_Atomic double share; /* of -m; 0: nothing is promoted by a rule. The keeper moves it (share.c) */
	struct lock lock; /* a leaf; covers the queue */
	uint64_t *hashes; /* capacity of them: a ring, which doubles when it is full of hashes that have copies */
	uint32_t first, count, capacity;
};

void copies_init(struct store *store, double share)
{
	struct copies *copies = mem_must_zalloc(sizeof(*copies));

	lock_init(&copies->lock, LOCK_LEAF);
	atomic_init(&copies->share, share);
	store->copies = copies;
}

double copies_share(const struct store *store)
{
	return atomic_load_explicit(&store->copies->share, memory_order_relaxed);
}

void copies_set_share(struct store *store, double share)
{
	atomic_store_explicit(&store->copies->share, share, memory_order_relaxed);
}

uint64_t copies_share_bytes(const struct store *store)
{
	return (uint64_t)(copies_share(store) * (double)store_memory_limit(store));
}

static void copies_account_queue(struct store *store, int64_t hashes)
{
	atomic_fetch_add_explicit(&store->promotion_bytes, (uint64_t)(hashes * (int64_t)sizeof(*store->copies->hashes)),
				  memory_order_relaxed);
}

void copies_fini(struct store *store)
{
	copies_account_queue(store, -(int64_t)store->copies->capacity);
	debug_must(atomic_load(&store->copies->bytes) == 0 && atomic_load(&store->copies->items) == 0);
	lock_fini(&store->copies->lock);
	mem_free(store->copies->hashes);
	mem_free(store->copies);
}

void copies_account(struct store *store, int64_t bytes)
{
	atomic_fetch_add_explicit(&store->copies->bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&store->copies->items, bytes > 0 ? 1 : -1, memory_order_relaxed);
}

uint64_t copies_count(const struct store *store)
{
	int64_t count = atomic_load_explicit(&store->copies->items, memory_order_relaxed);

	return count > 0 ? (uint64_t)count : 0;
}

uint64_t copies_bytes(const struct store *store)
{
	int64_t bytes = atomic_load_explicit(&store->copies->bytes, memory_order_relaxed);

	return bytes > 0 ? (uint64_t)bytes : 0;
}

void copy_ends(struct store *store, struct item *item)
{
	must(item->state & ITEM_CLEAN);
	item->state &= (uint8_t)~ITEM_CLEAN;
	if (item->state & ITEM_LINKED)
		copies_account(store, -(int64_t)item_cost(item));
}

/* Doubles the queue. The lock is held. Without memory it stays as it is. */
static void copies_grow(struct store *store)
{
	struct copies *copies = store->copies;
	uint32_t capacity = copies->capacity ? 2 * copies->capacity : COPIES_LEAST;
	uint64_t *hashes = mem_zalloc(capacity * sizeof(*hashes));

	if (!hashes)
		return;
	for (uint32_t i = 0; i < copies->count; i++)
		hashes[i] = copies->hashes[(copies->first + i) % copies->capacity];
	copies_account_queue(store, (int64_t)capacity - copies->capacity);
	mem_free(copies->hashes);
	copies->hashes = hashes;
	copies->first = 0;
	copies->capacity = capacity;
}

/* Has the queue room? If half of its hashes have copies it grows; otherwise those that have none are to go first. The lock
   is held. */
static bool copies_queue_has_room(struct store *store)
{
	struct copies *copies = store->copies;

	lock_assert_held(&copies->lock);
	if (copies->count == copies->capacity && copies->capacity < COPIES_MOST &&
	    copies_count(store) >= copies->capacity / 2)
		copies_grow(store);
	return copies->count < copies->capacity;
}

bool copies_note(struct store *store, uint64_t hash)
{
	struct copies *copies = store->copies;
	bool room;

	lock_acquire(&copies->lock);
	room = copies_queue_has_room(store);
	if (room)
		copies->hashes[(copies->first + copies->count++) % copies->capacity] = hash;
	lock_release(&copies->lock);
	return room;
}

static bool copies_take_oldest(struct copies *copies, uint64_t *hash)
{
	bool any;

	lock_acquire(&copies->lock);
	any = copies->count > 0;
	if (any) {
		*hash = copies->hashes[copies->first];
		copies->first = (copies->first + 1) % copies->capacity;
		copies->count--;
	}
	lock_release(&copies->lock);
	return any;
}

/* Drops the oldest copy of the queue, or gives it its second chance. False: the queue is empty. */
static bool copies_drop_oldest(struct store_context *context)
{
	struct store *store = context->store;
	struct stripe *stripe;
	struct item *item;
	uint64_t hash;
	bool again;

	if (!copies_take_oldest(store->copies, &hash))
		return false;
	stripe = store_stripe(store, hash);
	lock_acquire(&stripe->lock);
	item = stripe_find_copy(store, stripe, hash);
	again = item && item_clock(item) > 0 && copies_note(store, hash);
	if (again)
		item_set_clock(item, 0);
	else if (item)
		stripe_unlink(store, stripe, hash, item);
	lock_release(&stripe->lock);
	if (item && !again) {
		share_note_dropped(store, hash, item_cost(item));
		item_release(context, item);
		ctr_add(CTR_flash_copies_dropped, 1);
	}
	return true;
}

static bool copies_fit(struct store *store, uint64_t share, uint64_t cost)
{
	bool room;

	lock_acquire(&store->copies->lock);
	room = copies_queue_has_room(store);
	lock_release(&store->copies->lock);
	return room && copies_bytes(store) + cost <= share;
}

bool copies_make_room(struct store_context *context, uint64_t hash, uint64_t cost)
{
	struct store *store = context->store;
	uint64_t share = copies_share_bytes(store);

	if (cost > share / COPY_PART)
		share_note_refused(store, hash, cost);
	if (cost > share / COPY_PART || store_free_bytes(store) < (int64_t)cost)
		return false;
	for (unsigned looks = 0; !copies_fit(store, share, cost); looks++)
		if (looks == LOOKS || !copies_drop_oldest(context))
			return false;
	return true;
}
