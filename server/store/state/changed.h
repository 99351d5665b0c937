/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys that were changed since the start, while objects of the last run are still being loaded: a bit for each
 * hash, which several keys may share. A key whose bit is set gets no object of the last run. So a wrong bit costs an
 * object, and a missing one would bring back an old value.
 *
 * Threads: any thread notes a key, and the loader asks about it, under the key's stripe; keys of different stripes may
 * share a word. No lock is taken, nothing blocks.
 */
#ifndef FS_STORE_CHANGED_H
#define FS_STORE_CHANGED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct changed_keys {
	unsigned shift; /* of a hash, for its bit */
	uint64_t bytes; /* of this struct and its words */
	_Atomic uint64_t words[];
};

/* Returns a table without a key, with about 8 bits for each of so many objects, in at most most_bytes (and at least 4
   KiB); NULL without memory. mem_free frees it. */
struct changed_keys *changed_make(uint64_t objects, uint64_t most_bytes);

static inline uint64_t changed_bit(const struct changed_keys *changed, uint64_t hash)
{
	return (hash * 0xd6e8feb86659fd93ull) >> changed->shift;
}

/* Notes the key of this hash. */
static inline void changed_note(struct changed_keys *changed, uint64_t hash)
{
	uint64_t bit = changed_bit(changed, hash);

	atomic_fetch_or_explicit(&changed->words[bit / 64], 1ull << bit % 64, memory_order_relaxed);
}

/* Was the key of this hash noted, or one that shares its bit? */
static inline bool changed_has(struct changed_keys *changed, uint64_t hash)
{
	uint64_t bit = changed_bit(changed, hash);

	return atomic_load_explicit(&changed->words[bit / 64], memory_order_relaxed) >> bit % 64 & 1;
}

#endif
