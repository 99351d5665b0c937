/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An object in DRAM: 48 bytes of header, then client flags when not zero, key and value.
 *
 *   0        8      16     20        24       28         46     47      48
 *   +--------+------+------+---------+--------+----------+------+-------+-------------------+-----+-------+
 *   | next   | cas  | refs | value   | expiry | features | key  | state | client flags      | key | value |
 *   |        |      |      | length  |        |          | len  |       | (if has_flags)    |     |       |
 *   +--------+------+------+---------+--------+----------+------+-------+-------------------+-----+-------+
 *
 * With a table slot of 8 bytes at a load of about one, an object costs 56 bytes beside its data.
 *
 * What covers a field:
 *   next, features, state, cas, expiry    the key's stripe, once the item is linked; before that,
 *                                         its maker alone
 *   refs                                  atomic: one for the table, one for each value being sent,
 *                                         one for a plan. Who drops the last one frees.
 *   lengths, flags, key, value            never change while anyone else may hold a reference,
 *                                         with one exception: incr in place, under the stripe, when
 *                                         the table's reference is the only one
 *
 * Immutable in a plan: an item with ITEM_PLANNED is being written to flash by the cleaner, which
 * reads everything but next, features and state without the stripe. A change replaces the item.
 */
#ifndef FS_STORE_ITEM_H
#define FS_STORE_ITEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "classifier/classifier.h"

enum item_state {
	ITEM_CLOCK = 3,		/* two bits: CLOCK value */
	ITEM_LINKED = 1 << 2,	/* in the DRAM table: the key's current value */
	ITEM_CLEAN = 1 << 3,	/* a copy for reading: the flash object and its slot stay */
	ITEM_PLANNED = 1 << 4,	/* in the cleaner's plan */
	ITEM_CANDIDATE = 1 << 5, /* scored as worth flash; counted in its stripe */
	ITEM_FETCHED = 1 << 6	/* read since it was written */
};

struct item {
	struct item *next;
	uint64_t cas;
	_Atomic uint32_t refs;
	uint32_t value_length : 31;
	uint32_t has_flags : 1;
	uint32_t expiry; /* the store's seconds, 0 = never */
	struct clf_features features;
	uint8_t key_length;
	uint8_t state;
	char data[];
};

_Static_assert(sizeof(struct item) == 48, "item header and table slot are to stay within 56 bytes");

/* Already expired: the store's seconds start above it. */
#define ITEM_EXPIRED_ALWAYS 1u

static inline size_t item_flags_bytes(const struct item *item)
{
	return item->has_flags ? sizeof(uint32_t) : 0;
}

static inline const char *item_key(const struct item *item)
{
	return item->data + item_flags_bytes(item);
}

static inline char *item_value(struct item *item)
{
	return item->data + item_flags_bytes(item) + item->key_length;
}

static inline uint32_t item_client_flags(const struct item *item)
{
	uint32_t flags = 0;

	if (item->has_flags)
		memcpy(&flags, item->data, sizeof(flags));
	return flags;
}

static inline size_t item_bytes_for(size_t key_length, uint32_t client_flags, uint64_t value_length)
{
	return sizeof(struct item) + (client_flags ? sizeof(client_flags) : 0) + key_length + value_length;
}

/* What the allocator was asked for. */
static inline size_t item_allocated_bytes(const struct item *item)
{
	return sizeof(*item) + item_flags_bytes(item) + item->key_length + item->value_length;
}

/* What it really spends on it. */
static inline size_t item_cost(const struct item *item)
{
	return mem_cost(item_allocated_bytes(item));
}

/* Key and value: what the application wrote. */
static inline uint32_t item_object_bytes(const struct item *item)
{
	return item->key_length + item->value_length;
}

static inline bool item_is(const struct item *item, const char *key, size_t key_length)
{
	return item->key_length == key_length && memcmp(item_key(item), key, key_length) == 0;
}

static inline unsigned item_clock(const struct item *item)
{
	return item->state & ITEM_CLOCK;
}

static inline void item_set_clock(struct item *item, unsigned clock)
{
	item->state = (uint8_t)((item->state & ~ITEM_CLOCK) | clock);
}

/* Header and the key's beginning on their way into the cache. */
static inline void item_prefetch(const struct item *item)
{
	__builtin_prefetch(item);
	__builtin_prefetch((const char *)item + 64);
}

/* The caller holds the stripe, or a reference. */
static inline void item_ref(struct item *item)
{
	atomic_fetch_add_explicit(&item->refs, 1, memory_order_relaxed);
}

/* True when that was the last reference: the caller frees. */
static inline bool item_unref(struct item *item)
{
	return atomic_fetch_sub_explicit(&item->refs, 1, memory_order_acq_rel) == 1;
}

#endif
