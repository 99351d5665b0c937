/* SPDX-License-Identifier: BSD-3-Clause */
/* The DRAM table: each key stripe has chains of its own, doubles their number as it fills, and halves it when an
   eviction hand of the keeper comes by and few objects are left. */
#include "server/store/dram/dram.h"

#include "base/log.h"

#define STRIPE_MIN_BUCKETS 16u
#define SHRINK_ABOVE 4 /* buckets for each object */
#define STRIPE_BYTES_EACH (64u << 10) /* of -m for each stripe */
#define STRIPES_MIN 64u
#define STRIPES_MAX 8192u

static uint32_t stripe_bucket_now(const struct stripe *stripe, uint64_t hash)
{
	return stripe_bucket(hash, atomic_load_explicit(&stripe->mask, memory_order_relaxed));
}

int stripes_init(struct store *store)
{
	uint64_t wanted = store->config.memory_bytes / STRIPE_BYTES_EACH;
	uint32_t count = STRIPES_MIN;

	while (count < wanted && count < STRIPES_MAX)
		count *= 2;
	if (store->index)
		while (count > STRIPES_MIN && count > 1u << store->tag_bits)
			count /= 2;
	store->stripe_count = count;
	store->stripes = mem_aligned(64, count * sizeof(*store->stripes));
	if (!store->stripes)
		return FS_ENOMEM;
	memset(store->stripes, 0, count * sizeof(*store->stripes));
	for (uint32_t i = 0; i < count; i++) {
		struct stripe *stripe = &store->stripes[i];

		lock_init(&stripe->lock, LOCK_KEY_STRIPE);
		stripe->buckets = mem_must_zalloc(STRIPE_MIN_BUCKETS * sizeof(*stripe->buckets));
		stripe->mask = STRIPE_MIN_BUCKETS - 1;
	}
	store->fixed_bytes += count * sizeof(*store->stripes);
	atomic_store(&store->table_bytes, count * STRIPE_MIN_BUCKETS * sizeof(struct item_link));
	return FS_OK;
}

void stripes_fini(struct store *store)
{
	int64_t item_bytes = atomic_load(&store->item_bytes);

	for (uint32_t i = 0; i < store->stripe_count; i++) {
		struct stripe *stripe = &store->stripes[i];

		must(stripe->frozen == 0);
		for (uint32_t b = 0; b <= stripe->mask; b++) {
			for (struct item *item = stripe_first(stripe, b), *next; item; item = next) {
				next = item_next(item);
				item_bytes -= (int64_t)item_cost(item);
				if (item->state & ITEM_CLEAN)
					copies_account(store, -(int64_t)item_cost(item));
				mem_free(item);
			}
		}
		mem_free(stripe->buckets);
		lock_fini(&stripe->lock);
	}
	/* A wrong account harms nobody any more, so it doesn't abort a release's clean stop. */
	debug_must(item_bytes == 0);
	if (item_bytes != 0)
		log_warn("the account of items is off by %lld bytes at the end: please report this",
			 (long long)item_bytes);
	mem_free(store->stripes);
}

uint64_t store_dram_items(const struct store *store)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < store->stripe_count; i++)
		sum += atomic_load_explicit(&store->stripes[i].count, memory_order_relaxed);
	return sum;
}

struct item *stripe_find(const struct stripe *stripe, uint64_t hash, const char *key, size_t key_length)
{
	struct item *item = stripe_first(stripe, stripe_bucket_now(stripe, hash));

	while (item && !item_is(item, key, key_length))
		item = item_next(item);
	return item;
}

void stripes_foresee(struct store *store, const uint64_t *hashes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		__builtin_prefetch(store_stripe(store, hashes[i]), 1);
	for (unsigned i = 0; i < count; i++) {
		const struct stripe *stripe = store_stripe(store, hashes[i]);
		struct item_link *buckets = atomic_load_explicit(&stripe->buckets, memory_order_relaxed);

		/* The mask may belong to another table by now, but a prefetch reads nothing. */
		__builtin_prefetch(&buckets[stripe_bucket_now(stripe, hashes[i])]);
	}
	for (unsigned i = 0; i < count; i++) {
		struct stripe *stripe = store_stripe(store, hashes[i]);
		uintptr_t item; /* an address, or 0 */

		if (!lock_try(&stripe->lock))
			continue;
		/* Only its address is used, so it may be freed as soon as the stripe is released. */
		item = (uintptr_t)stripe_first(stripe, stripe_bucket_now(stripe, hashes[i]));
		lock_release(&stripe->lock);
		__builtin_prefetch((const void *)item, 1);
		__builtin_prefetch((const void *)(item + 64));
	}
}

/* Makes so many buckets, a power of two; without memory they stay as they are. */
static void stripe_resize(struct store *store, struct stripe *stripe, uint32_t buckets)
{
	uint32_t old_buckets = stripe->mask + 1;
	struct item_link *old = stripe->buckets;
	struct item_link *new = mem_zalloc((uint64_t)buckets * sizeof(*new));

	must((buckets & (buckets - 1)) == 0);
	if (!new)
		return;
	stripe->buckets = new;
	stripe->mask = buckets - 1;
	for (uint32_t b = 0; b < old_buckets; b++) {
		for (struct item *item = link_get(&old[b]), *next; item; item = next) {
			uint32_t to = stripe_bucket_now(stripe, store_hash(store, item_key(item), item->key_length));

			next = item_next(item);
			item->next = new[to];
			link_set(&new[to], item);
		}
	}
	mem_free(old);
	atomic_fetch_add_explicit(&store->table_bytes, ((uint64_t)buckets - old_buckets) * sizeof(*new),
				  memory_order_relaxed);
}

void stripe_shrink(struct store *store, struct stripe *stripe)
{
	uint32_t count = atomic_load_explicit(&stripe->count, memory_order_relaxed), buckets = stripe->mask + 1;

	lock_assert_held(&stripe->lock);
	while (buckets > STRIPE_MIN_BUCKETS && count < buckets / SHRINK_ABOVE)
		buckets /= 2;
	if (buckets <= stripe->mask)
		stripe_resize(store, stripe, buckets);
}

void stripe_link(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item)
{
	uint32_t count = atomic_load_explicit(&stripe->count, memory_order_relaxed) + 1;

	lock_assert_held(&stripe->lock);
	must(!(item->state & ITEM_LINKED) && !item_next(item));
	if (count > stripe->mask + 1 + (stripe->mask + 1) / 2)
		stripe_resize(store, stripe, 2 * (stripe->mask + 1));
	uint32_t b = stripe_bucket_now(stripe, hash);
	item->next = stripe->buckets[b];
	link_set(&stripe->buckets[b], item);
	item->state |= ITEM_LINKED;
	if (item->state & ITEM_CLEAN)
		copies_account(store, (int64_t)item_cost(item));
	atomic_store_explicit(&stripe->count, count, memory_order_relaxed);
}

static struct item_link *stripe_find_link(const struct stripe *stripe, uint64_t hash, const struct item *item)
{
	struct item_link *link = &stripe->buckets[stripe_bucket_now(stripe, hash)];

	for (struct item *at; (at = link_get(link)) != item; link = &at->next)
		must(at);
	return link;
}

static void stripe_note_unlinked(struct store *store, struct stripe *stripe, struct item *item)
{
	must(item->state & ITEM_LINKED);
	link_set(&item->next, NULL);
	if (item->state & ITEM_CANDIDATE)
		candidate_clear(store, stripe, item);
	if (item->state & ITEM_CLEAN)
		copies_account(store, -(int64_t)item_cost(item));
	item->state &= (uint8_t)~ITEM_LINKED;
}

void stripe_unlink(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item)
{
	struct item_link *link = stripe_find_link(stripe, hash, item);
	uint32_t count = atomic_load_explicit(&stripe->count, memory_order_relaxed);

	lock_assert_held(&stripe->lock);
	must(count > 0);
	*link = item->next;
	atomic_store_explicit(&stripe->count, count - 1, memory_order_relaxed);
	stripe_note_unlinked(store, stripe, item);
}

void stripe_replace(struct store *store, struct stripe *stripe, uint64_t hash, struct item *old, struct item *new)
{
	struct item_link *link = stripe_find_link(stripe, hash, old);

	lock_assert_held(&stripe->lock);
	must(!(new->state &ITEM_LINKED));
	new->next = old->next;
	link_set(link, new);
	new->state |= ITEM_LINKED;
	if (new->state & ITEM_CLEAN)
		copies_account(store, (int64_t)item_cost(new));
	stripe_note_unlinked(store, stripe, old);
}
