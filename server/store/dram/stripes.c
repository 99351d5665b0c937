/* SPDX-License-Identifier: BSD-3-Clause */
/* The stripes: how many there are, and a look ahead at their tables. */
#include "base/log.h"
#include "server/store/dram/dram.h"
#include "server/store/dram/line.h"

#define STRIPE_BYTES_EACH (64u << 10) /* of -m for each stripe */
#define STRIPES_MIN 64u
#define STRIPES_MAX 8192u
#define FORESEEN 32u /* keys at a time: more than memory has accesses under way */

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
	store->stripes = mem_zaligned(64, count * sizeof(*store->stripes));
	if (!store->stripes)
		return FS_ENOMEM;
	store->fixed_bytes += count * sizeof(*store->stripes);
	for (uint32_t i = 0; i < count; i++)
		lock_init(&store->stripes[i].lock, LOCK_KEY_STRIPE);
	for (uint32_t i = 0; i < count; i++)
		if (stripe_table_init(store, &store->stripes[i]) != FS_OK) {
			stripes_fini(store);
			return FS_ENOMEM;
		}
	return FS_OK;
}

/* Frees the items of a stripe, of which nobody else has a reference. Returns their cost. */
static int64_t stripe_free_items(struct store *store, struct stripe *stripe)
{
	int64_t bytes = 0;

	for (uint32_t line = 0; line < stripe_lines(stripe); line++) {
		stripe_prefetch(stripe, line + 1);
		for (unsigned link = 0; link < LINE_LINKS; link++) {
			struct item *item = stripe_item(stripe, line, link);

			if (!item)
				continue;
			bytes += (int64_t)item_cost(item);
			if (item->state & ITEM_CLEAN)
				copies_account(store, -(int64_t)item_cost(item));
			mem_free(item);
		}
	}
	return bytes;
}

void stripes_fini(struct store *store)
{
	int64_t item_bytes = atomic_load(&store->item_bytes);

	for (uint32_t i = 0; i < store->stripe_count && store->stripes; i++) {
		struct stripe *stripe = &store->stripes[i];

		must(stripe->frozen == 0);
		if (stripe->lines)
			item_bytes -= stripe_free_items(store, stripe);
		stripe_table_fini(store, stripe);
		lock_fini(&stripe->lock);
	}
	/* A wrong account harms nobody any more, so it doesn't abort a release's clean stop. */
	debug_must(item_bytes == 0);
	if (item_bytes != 0)
		log_warn("the account of items is off by %lld bytes at the end: please report this",
			 (long long)item_bytes);
	mem_free(store->stripes);
	store->stripes = NULL;
}

uint64_t store_dram_items(const struct store *store)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < store->stripe_count; i++)
		sum += atomic_load_explicit(&store->stripes[i].count, memory_order_relaxed);
	return sum;
}

void stripes_foresee(struct store *store, const uint64_t *hashes, unsigned count)
{
	struct stripe *stripes[FORESEEN];

	while (count > 0) {
		unsigned some = count < FORESEEN ? count : FORESEEN;

		for (unsigned i = 0; i < some; i++) {
			stripes[i] = store_stripe(store, hashes[i]);
			__builtin_prefetch(stripes[i], 1);
		}
		for (unsigned i = 0; i < some; i++)
			stripe_prefetch_table(stripes[i], hashes[i]);
		for (unsigned i = 0; i < some; i++)
			if (lock_try(&stripes[i]->lock)) {
				const struct table table = table_of(stripes[i]);

				table_prefetch_likely(&table, hashes[i]);
				lock_release(&stripes[i]->lock);
			}
		hashes += some;
		count -= some;
	}
}
