/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An object in DRAM: 40 bytes of header, two fields that only some items have, key and value.
 *
 *   0      6       7      8     16     20       24       28         40
 *   +------+-------+------+-----+------+--------+--------+----------+-----------+----------+-----+-------+
 *   | next | state | key  | cas | refs | value  | expiry | features | extra     | client   | key | value |
 *   |      |       | len  |     |      | length |        |          | (if       | flags (if|     |       |
 *   |      |       |      |     |      |        |        |          | has_extra)|has_flags)|     |       |
 *   +------+-------+------+-----+------+--------+--------+----------+-----------+----------+-----+-------+
 *
 * With a table slot of 6 bytes at a load of about one, an object costs 46 bytes beside its data.
 *
 * Covered by:
 *   next, features, state, cas, expiry,   the key's stripe, once the item is linked; before that,
 *   extra                                 its maker alone
 *   refs                                  atomic: one for the table, one for each value being sent,
 *                                         one for a plan. The caller that drops the last one frees.
 *   lengths, flags, key, value            constant while anyone else may hold a reference, with one
 *                                         exception: incr in place, under the stripe, when the
 *                                         table's reference is the only one
 *
 * Immutable in a plan: the cleaner writes an item with ITEM_PLANNED to flash, and reads everything but next, features
 * and state without the stripe. A change replaces the item.
 *
 * cas is always an id of ours: flush_all goes by it, and it tells which of two objects is newer. A client that gave an
 * id of its own is shown that one (item_shown_cas). Records on flash hold neither such ids nor marks: an object with
 * one of them is no candidate and no clean copy.
 */
#ifndef FS_STORE_ITEM_H
#define FS_STORE_ITEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "classifier/classifier.h"
#include "segments/segments.h"

enum item_state {
	ITEM_CLOCK = 3, /* two bits: CLOCK value */
	ITEM_LINKED = 1 << 2, /* in the DRAM table: the key's current value */
	ITEM_CLEAN = 1 << 3, /* a copy for reading: the flash object and its slot stay */
	ITEM_PLANNED = 1 << 4, /* in the cleaner's plan */
	ITEM_CANDIDATE = 1 << 5, /* a candidate for flash; counted in its stripe */
	ITEM_FETCHED = 1 << 6, /* read since it was written */
	ITEM_KEPT = 1 << 7 /* a record that is equal to it may be in a segment of bins: a change takes it away */
};

#define ITEM_VALUE_MAX ((1u << 30) - 1) /* -I ends at 1 GiB for header, key and value */

/* Where an item lies, or nowhere: an address in 48 bits. On x86-64 and arm64 the kernel gives larger ones only where a
   program asks for them, which jemalloc doesn't. */
struct item_link {
	uint16_t low, middle, high;
};

struct item {
	struct item_link next;
	uint8_t state;
	uint8_t key_length;
	uint64_t cas;
	_Atomic uint32_t refs;
	uint32_t value_length : 30;
	uint32_t has_flags : 1;
	uint32_t has_extra : 1;
	uint32_t expiry; /* the store's seconds, 0 = never */
	struct clf_features features;
	char data[];
};

_Static_assert(sizeof(struct item) == 40 && sizeof(struct item_link) == 6, "header and table slot take 46 bytes");

enum item_mark {
	ITEM_STALE = 1 << 0, /* invalidated, and not set since */
	ITEM_WIN_SENT = 1 << 1 /* a client was told to make the value anew */
};

struct item_extra {
	uint64_t shown_cas; /* an id that a client gave; 0: none */
	uint8_t marks;
	uint8_t unused[7];
};

_Static_assert(sizeof(struct item_extra) == 16, "the client flags behind it stay aligned");

/* A time that lies less than this in the future comes from another thread's clock, not from a wrap of 32 bits. */
#define ITEM_CLOCKS_APART_MS 60000u

/* Returns the item that a link leads to; NULL: none. */
static inline struct item *link_get(const struct item_link *link)
{
	uint32_t low;

	memcpy(&low, link, sizeof(low));
	return (struct item *)((uintptr_t)link->high << 32 | low);
}

/* Lets a link lead to an item; NULL: to none. */
static inline void link_set(struct item_link *link, const struct item *item)
{
	uintptr_t address = (uintptr_t)item;
	uint32_t low = (uint32_t)address;

	debug_must(address >> 48 == 0);
	memcpy(link, &low, sizeof(low));
	link->high = (uint16_t)(address >> 32);
}

/* Returns the next item of the chain; NULL: it ends. */
static inline struct item *item_next(const struct item *item)
{
	return link_get(&item->next);
}

/* Returns the bytes between header and key. Without branches, because each comparison of a key needs it. */
static inline size_t item_prefix_bytes(const struct item *item)
{
	return item->has_extra * sizeof(struct item_extra) + item->has_flags * sizeof(uint32_t);
}

/* Returns the marks of an item that has_extra. The stripe covers them. */
static inline struct item_extra *item_extra(struct item *item)
{
	must(item->has_extra);
	return (struct item_extra *)(void *)item->data;
}

/* Has the item a mark or an id that a record on flash can't hold? */
static inline bool item_marked(const struct item *item)
{
	const struct item_extra *extra = (const struct item_extra *)(const void *)item->data;

	return item->has_extra && (extra->shown_cas || extra->marks);
}

/* Returns the id that clients see and compare. */
static inline uint64_t item_shown_cas(const struct item *item)
{
	const struct item_extra *extra = (const struct item_extra *)(const void *)item->data;

	return __builtin_expect(item->has_extra, 0) && extra->shown_cas ? extra->shown_cas : item->cas;
}

/* Returns the key: key_length bytes, not terminated. */
static inline const char *item_key(const struct item *item)
{
	return item->data + item_prefix_bytes(item);
}

/* Returns the value: value_length bytes. */
static inline char *item_value(struct item *item)
{
	return item->data + item_prefix_bytes(item) + item->key_length;
}

/* Returns the client's flags; 0 without any. */
static inline uint32_t item_client_flags(const struct item *item)
{
	uint32_t flags = 0;

	if (item->has_flags)
		memcpy(&flags, item_key(item) - sizeof(flags), sizeof(flags)); /* right before the key */
	return flags;
}

/* Returns the bytes of an item without extra. */
static inline size_t item_bytes_for(size_t key_length, uint32_t client_flags, uint64_t value_length)
{
	return sizeof(struct item) + (client_flags ? sizeof(client_flags) : 0) + key_length + value_length;
}

/* Returns the bytes that the allocator was asked for. */
static inline size_t item_allocated_bytes(const struct item *item)
{
	return sizeof(*item) + item_prefix_bytes(item) + item->key_length + item->value_length;
}

/* Returns the bytes that the allocator spends on it: its size class. */
static inline size_t item_cost(const struct item *item)
{
	return mem_cost(item_allocated_bytes(item));
}

/* Returns the bytes of key and value: the application's part. */
static inline uint32_t item_object_bytes(const struct item *item)
{
	return item->key_length + item->value_length;
}

/* Bytes of its record on flash, at most that of the largest item. */
static inline uint32_t item_record_bytes(const struct item *item)
{
	return (uint32_t)seg_record_length(item->key_length, item->value_length);
}

/* Seconds since the last read or write. */
static inline uint32_t item_idle_seconds(const struct clf_features *features, uint64_t now_ms)
{
	uint32_t since = (uint32_t)now_ms - features->accessed_ms;

	return since > UINT32_MAX - ITEM_CLOCKS_APART_MS ? 0 : since / 1000;
}

/* Is this the item's key? */
static inline bool item_is(const struct item *item, const char *key, size_t key_length)
{
	return item->key_length == key_length && memcmp(item_key(item), key, key_length) == 0;
}

/* Returns the CLOCK value, 0 .. 3. The stripe covers it. */
static inline unsigned item_clock(const struct item *item)
{
	return item->state & ITEM_CLOCK;
}

/* Sets the CLOCK value, 0 .. 3. Stripe held, or its maker. */
static inline void item_set_clock(struct item *item, unsigned clock)
{
	item->state = (uint8_t)((item->state & ~ITEM_CLOCK) | clock);
}

/* Asks for the cache lines of the header and of the key's beginning. */
static inline void item_prefetch(const struct item *item)
{
	__builtin_prefetch(item);
	__builtin_prefetch((const char *)item + 64);
}

/* Takes a reference. The caller holds the stripe, or has a reference already. */
static inline void item_ref(struct item *item)
{
	uint32_t refs = atomic_fetch_add_explicit(&item->refs, 1, memory_order_relaxed);

	must(refs > 0);
}

/* Drops a reference. True: it was the last one, and the caller frees. See item_release. */
static inline bool item_unref(struct item *item)
{
	uint32_t refs = atomic_fetch_sub_explicit(&item->refs, 1, memory_order_acq_rel);

	if (refs == 1)
		return true;
	must(refs > 0);
	return false;
}

#endif
