/* SPDX-License-Identifier: BSD-3-Clause */
/* Items are made and released here, and their cost is added to the context's account. */
#include "server/store/dram/dram.h"

_Static_assert(sizeof(struct clf_reads) + sizeof(struct clf_gaps) == 7 && sizeof(struct item_extra) == 9,
	       "the parts are as large as the table says");

const uint8_t item_parts_bytes[] = {
	[ITEM_BARE] = 0,         [ITEM_BARE_FLAGS] = 4, [ITEM_READS] = 4,       [ITEM_READS_FLAGS] = 8,
	[ITEM_READS_EXTRA] = 17, [ITEM_GAPS] = 7,       [ITEM_GAPS_FLAGS] = 11, [ITEM_GAPS_EXTRA] = 20
};

#define MEMCACHED_HEADER 56 /* its header, and the id: it counts them against -I */

bool store_too_large(const struct store *store, size_t key_length, uint64_t value_length)
{
	return value_length + key_length + MEMCACHED_HEADER > store->config.max_item_bytes;
}

static inline __attribute__((always_inline)) void item_count_in_class(struct store_context *context, size_t bytes,
								      int sign)
{
	struct class_block *classes = context->classes;
	unsigned class = size_class(bytes);

	class_add(classes, class, CLASS_ITEMS, (uint64_t)sign);
	class_add(classes, class, CLASS_REQUESTED, sign > 0 ? bytes : -(uint64_t)bytes);
}

/* Apart from item_account_made, so that a set whose account is small saves no registers. */
static __attribute__((noinline)) void settle_made(struct store_context *context)
{
	struct store *store = context->store;

	context_settle(context);
	if (store->index && store_free_bytes(store) < (int64_t)store->segment_bytes)
		store->wake(store);
}

void item_account_made(struct store_context *context, size_t bytes)
{
	int64_t batch = atomic_load_explicit(&context->store->account_batch, memory_order_relaxed);
	size_t cost = mem_cost(bytes);

	item_count_in_class(context, bytes, 1);
	context->item_bytes += (int64_t)cost;
	context->allocated_bytes += cost;
	if (context->item_bytes > batch || context->allocated_bytes > 4 * (uint64_t)batch)
		settle_made(context);
}

static void item_account_released(struct store_context *context, size_t bytes)
{
	size_t cost = mem_cost(bytes);

	item_count_in_class(context, bytes, -1);
	context->item_bytes -= (int64_t)cost;
	if (context->background)
		context->released_bytes += cost;
	if (context->item_bytes < -atomic_load_explicit(&context->store->account_batch, memory_order_relaxed))
		context_settle(context);
}

bool item_learn_address(struct item *item)
{
	bool learned = address_learn(item);

	if (!learned)
		mem_free(item);
	return learned;
}

struct item *item_new(struct store_context *context, const char *key, size_t key_length, uint32_t client_flags,
		      uint32_t expiry, uint64_t value_length)
{
	enum item_shape shape = item_shape_of(context->store->plain_shape, client_flags != 0, false);

	return item_make(context, shape, item_bytes(shape, key_length, value_length), key, key_length, client_flags,
			 expiry, value_length);
}

struct item *item_new_extra(struct store_context *context, const char *key, size_t key_length, uint32_t client_flags,
			    uint32_t expiry, uint64_t value_length)
{
	enum item_shape shape = item_shape_of(context->store->plain_shape, client_flags != 0, true);

	return item_make(context, shape, item_bytes(shape, key_length, value_length), key, key_length, client_flags,
			 expiry, value_length);
}

/* Apart from item_release, so that the many releases that free nothing save no registers. */
static __attribute__((noinline)) void item_free(struct store_context *context, struct item *item)
{
	size_t bytes = item_allocated_bytes(item);

	must(!(item->state & (ITEM_LINKED | ITEM_PLANNED | ITEM_CANDIDATE)));
	item_account_released(context, bytes);
	mem_free_sized(item, bytes);
}

void item_release(struct store_context *context, struct item *item)
{
	if (item_unref(item))
		item_free(context, item);
}

struct item *item_from_record(struct store_context *context, const struct seg_record *record, uint64_t packed_ms)
{
	struct item *item = item_new(context, record->key, record->key_length, record->client_flags, record->expiry,
				     record->value_length);
	struct clf_features_packed packed;
	struct clf_features features;

	if (!item)
		return NULL;
	memcpy(item_value(item), record->value, record->value_length);
	memcpy(&packed, record->features, sizeof(packed));
	clf_features_unpack(&packed, packed_ms, &features);
	item_set_features(item, &features);
	item->cas = record->cas & ITEM_CAS_MAX; /* whatever the flash holds */
	if (record->item_flags & 1)
		item->state |= ITEM_FETCHED;
	return item;
}
