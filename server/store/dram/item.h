/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An object in DRAM: a header, the parts that its shape has, key and value.
 *
 *   0     6       7        8        12         16       20     22      23     24
 *   +-----+-------+--------+--------+----------+--------+------+-------+------+-------+------+-------+--------+-----+-------+
 *   | cas | shape | key    | expiry | accessed | value  | refs | state | past | reads | gaps | extra | client | key | value |
 *   |     |       | length |        | _ms      | length |      |       |      |       |      |       | flags  |     |       |
 *   +-----+-------+--------+--------+----------+--------+------+-------+------+-------+------+-------+--------+-----+-------+
 *    53 bits  3                                                                4       3      9       4 bytes
 *
 * reads: in a store with a classifier; gaps: in mode paper. extra: marks and a client's own id, for the few objects that
 * need them. client flags: where they aren't 0, and beside extra. The link that leads to an item takes 7.5 to 10
 * bytes (table.h): with 28 of header and reads an object costs 36 to 38 bytes beside its data.
 *
 * Covered by:
 *   cas, expiry, accessed_ms, state,      the key's stripe, once the item is linked; before that,
 *   past, reads, gaps, extra              its maker alone
 *   refs                                  atomic: one for the table, one for each value being sent,
 *                                         one for a plan. The caller that drops the last one frees.
 *   shape, lengths, flags, key, value     constant while anyone else may hold a reference, with one
 *                                         exception: incr in place, under the stripe, when the
 *                                         table's reference is the only one
 *
 * An id may be set under the stripe while a value is being sent, so a holder of nothing but a reference reads lengths and
 * shape only when it has dropped the last one.
 *
 * Immutable in a plan: the cleaner writes an item with ITEM_PLANNED to flash, and reads everything but features and state
 * without the stripe. A change replaces the item.
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
	/* Linked, and in the account of an application with limits (limits.h) ... */
	ITEM_LIMITED = 1 << 7,
	/* ... or, with a frugal index, with which there are no limits: a record that is equal to it may be in a segment of bins, and
	   a change takes it away. */
	ITEM_KEPT = ITEM_LIMITED
};

/* The parts of an item between header and key, in this order. A store's items have the first of three rows, by what its
   classifier asks for; an item with extra has reads in any case, and room for client flags. */
enum item_shape {
	ITEM_BARE,
	ITEM_BARE_FLAGS,
	ITEM_READS,
	ITEM_READS_FLAGS,
	ITEM_READS_EXTRA,
	ITEM_GAPS, /* and reads, as in the next two */
	ITEM_GAPS_FLAGS,
	ITEM_GAPS_EXTRA
};

#define ITEM_VALUE_MAX ((1u << 30) - 1) /* -I ends at 1 GiB for header, key and value */
#define ITEM_CAS_MAX ((1ull << 53) - 1) /* ids stay below 2^53: see state/ids.h */
#ifdef FS_DEBUG
#define ITEM_REFS_MAX 40u /* so few that tests meet them */
#else
#define ITEM_REFS_MAX 65000u
#endif

struct item {
	uint64_t cas : 53;
	uint64_t shape : 3; /* enum item_shape */
	uint64_t key_length : 8;
	uint32_t expiry; /* the store's seconds, 0 = never */
	uint32_t accessed_ms; /* as in struct clf_features, like the two parts named below */
	uint32_t value_length;
	_Atomic uint16_t refs; /* at most ITEM_REFS_MAX */
	uint8_t state;
	uint8_t past;
	char data[]; /* struct clf_reads, struct clf_gaps, struct item_extra, client flags: by shape. Key. Value */
};

_Static_assert(sizeof(struct item) == 24, "the header is as in the drawing");

enum item_mark {
	ITEM_STALE = 1 << 0, /* invalidated, and not set since */
	ITEM_WIN_SENT = 1 << 1 /* a client was told to make the value anew */
};

struct item_extra {
	uint64_t shown_cas; /* an id that a client gave; 0: none */
	uint8_t marks;
} __attribute__((packed)); /* it lies at any address */

/* A time that lies less than this in the future comes from another thread's clock, not from a wrap of 32 bits. */
#define ITEM_CLOCKS_APART_MS 60000u

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The bytes of the parts, by shape. */
extern const uint8_t item_parts_bytes[];

/* Returns the shape of an item of a store whose plainest items have this one: ITEM_BARE, ITEM_READS or ITEM_GAPS. */
static inline enum item_shape item_shape_of(enum item_shape plain, bool flags, bool extra)
{
	if (__builtin_expect(extra, 0))
		return plain == ITEM_GAPS ? ITEM_GAPS_EXTRA : ITEM_READS_EXTRA;
	return (enum item_shape)(plain + flags);
}

static inline bool shape_has_flags(unsigned shape)
{
	return (1u << ITEM_BARE_FLAGS | 1u << ITEM_READS_FLAGS | 1u << ITEM_READS_EXTRA | 1u << ITEM_GAPS_FLAGS |
		1u << ITEM_GAPS_EXTRA) >>
		       shape &
	       1;
}

static inline bool shape_has_extra(unsigned shape)
{
	return shape == ITEM_READS_EXTRA || shape == ITEM_GAPS_EXTRA;
}

static inline bool item_has_extra(const struct item *item)
{
	return shape_has_extra(item->shape);
}

/* Returns the bytes between header and key. Without branches, because each comparison of a key needs it. */
static inline size_t item_prefix_bytes(const struct item *item)
{
	return item_parts_bytes[item->shape];
}

/* Returns the reads of an item that keeps them: its shape is ITEM_READS or above. The stripe covers them. */
static inline struct clf_reads *item_reads(struct item *item)
{
	debug_must(item->shape >= ITEM_READS);
	return (struct clf_reads *)(void *)item->data;
}

/* Returns the gaps of an item; NULL: it keeps none. The stripe covers them. */
static inline struct clf_gaps *item_gaps(struct item *item)
{
	return item->shape < ITEM_GAPS ? NULL : (struct clf_gaps *)(void *)(item->data + sizeof(struct clf_reads));
}

/* Returns the features, with zeros for what the item doesn't keep. The stripe covers them. */
static inline struct clf_features item_features(const struct item *item)
{
	struct clf_features features = { .accessed_ms = item->accessed_ms, .past = item->past };

	if (item->shape >= ITEM_READS)
		memcpy(&features.reads, item->data, sizeof(features.reads));
	if (item->shape >= ITEM_GAPS)
		memcpy(&features.gaps, item->data + sizeof(features.reads), sizeof(features.gaps));
	return features;
}

/* Takes over as much of the features as the item keeps. Stripe held, or its maker. */
static inline void item_set_features(struct item *item, const struct clf_features *features)
{
	item->accessed_ms = features->accessed_ms;
	item->past = features->past;
	if (item->shape >= ITEM_READS)
		memcpy(item->data, &features->reads, sizeof(features->reads));
	if (item->shape >= ITEM_GAPS)
		memcpy(item->data + sizeof(features->reads), &features->gaps, sizeof(features->gaps));
}

/* The object was written now: its features start anew, without a past. */
static inline void item_features_written(struct item *item, uint64_t now_ms)
{
	const struct clf_features features = { .accessed_ms = (uint32_t)now_ms };

	item_set_features(item, &features);
}

/* Returns the marks of an item that has extra. The stripe covers them. */
static inline struct item_extra *item_extra(struct item *item)
{
	must(item_has_extra(item));
	return (struct item_extra *)(void *)(item->data + (item->shape == ITEM_GAPS_EXTRA
								   ? item_parts_bytes[ITEM_GAPS]
								   : item_parts_bytes[ITEM_READS]));
}

/* Has the item a mark or an id that a record on flash can't hold? */
static inline bool item_marked(const struct item *item)
{
	const struct item_extra *extra;

	if (__builtin_expect(!item_has_extra(item), 1))
		return false;
	extra = item_extra((struct item *)(uintptr_t)item);
	return extra->shown_cas || extra->marks;
}

/* Returns the id that clients see and compare. */
static inline uint64_t item_shown_cas(const struct item *item)
{
	const struct item_extra *extra;

	if (__builtin_expect(!item_has_extra(item), 1))
		return item->cas;
	extra = item_extra((struct item *)(uintptr_t)item);
	return extra->shown_cas ? extra->shown_cas : item->cas;
}

/* Gives a copy the object's id, features, CLOCK and whether it was read; it has no mark of its own. Stripe held. */
static inline void item_copy_meta(struct item *copy, const struct item *item)
{
	const struct clf_features features = item_features(item);

	item_set_features(copy, &features);
	copy->cas = item->cas;
	copy->state |= item->state & (ITEM_FETCHED | ITEM_CLOCK);
}

/* ---- key, value, flags, id ------------------------------------------------------------------- */

/* Gives the item its id. Stripe held, or its maker. */
static inline void item_set_cas(struct item *item, uint64_t cas)
{
	debug_must(cas <= ITEM_CAS_MAX);
	item->cas = cas & ITEM_CAS_MAX;
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

	if (shape_has_flags(item->shape))
		memcpy(&flags, item_key(item) - sizeof(flags), sizeof(flags)); /* right before the key */
	return flags;
}

/* Returns the bytes of an item of this shape. */
static inline size_t item_bytes(enum item_shape shape, size_t key_length, uint64_t value_length)
{
	return sizeof(struct item) + item_parts_bytes[shape] + key_length + value_length;
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

/* Returns the seconds since the last read or write. */
static inline uint32_t item_idle_seconds(uint32_t accessed_ms, uint64_t now_ms)
{
	uint32_t since = (uint32_t)now_ms - accessed_ms;

	return since > UINT32_MAX - ITEM_CLOCKS_APART_MS ? 0 : since / 1000;
}

/* Returns 0 if so many bytes are equal. For constants alone. */
static inline uint64_t bytes_differ(const char *a, const char *b, size_t count)
{
	uint64_t x = 0, y = 0;

	memcpy(&x, a, count);
	memcpy(&y, b, count);
	return x ^ y;
}

/* Are two keys of one length equal? Inline, as a call of memcmp takes twice as many instructions for a common key. */
static inline __attribute__((always_inline)) bool keys_equal(const char *a, const char *b, size_t length)
{
	if (__builtin_expect(length >= 16, 1)) {
		for (size_t at = length - 16; at > 0; at -= at < 16 ? at : 16)
			if (bytes_differ(a + at, b + at, 8) | bytes_differ(a + at + 8, b + at + 8, 8))
				return false;
		return (bytes_differ(a, b, 8) | bytes_differ(a + 8, b + 8, 8)) == 0;
	}
	if (length >= 8)
		return (bytes_differ(a, b, 8) | bytes_differ(a + length - 8, b + length - 8, 8)) == 0;
	if (length >= 4)
		return (bytes_differ(a, b, 4) | bytes_differ(a + length - 4, b + length - 4, 4)) == 0;
	for (size_t i = 0; i < length; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* Is this the item's key? */
static inline __attribute__((always_inline)) bool item_is(const struct item *item, const char *key, size_t key_length)
{
	return item->key_length == key_length && keys_equal(item_key(item), key, key_length);
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
	unsigned refs = atomic_fetch_add_explicit(&item->refs, 1, memory_order_relaxed);

	must(refs > 0 && refs <= ITEM_REFS_MAX);
}

/* Takes a reference under the stripe. False: they are used up, and none was taken. */
FS_MUST_CHECK static inline bool item_try_ref(struct item *item)
{
	unsigned refs = atomic_fetch_add_explicit(&item->refs, 1, memory_order_relaxed);

	if (__builtin_expect(refs - 1 < ITEM_REFS_MAX - 1, 1))
		return true;
	must(refs > 0);
	atomic_fetch_sub_explicit(&item->refs, 1, memory_order_relaxed);
	return false;
}

/* May another reference be taken? The stripe is held: nobody else takes one meanwhile. */
static inline bool item_has_room_for_ref(const struct item *item)
{
	return atomic_load_explicit(&item->refs, memory_order_relaxed) < ITEM_REFS_MAX;
}

/* Drops a reference. True: it was the last one, and the caller frees. See item_release. */
static inline bool item_unref(struct item *item)
{
	unsigned refs = atomic_fetch_sub_explicit(&item->refs, 1, memory_order_acq_rel);

	if (refs == 1)
		return true;
	must(refs > 0);
	return false;
}

#endif
