/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shadow: the keys that left a part of DRAM lately, by their hashes. When a key of it is asked for again, the shadow tells
 * how many bytes have left that part since the key did. In an order of use that is how much more room the object would
 * have needed to be still there. (Shadow queues: Cliffhanger, Cidon et al., NSDI 2016, 4.1.)
 *
 *   entry, 64 bits:   fingerprint of the hash, 32 | bytes that had left when the key did, in grains of 64, 32
 *   bucket:           eight entries, a cache line; a new key takes the place of the one that left first
 *
 * Of all keys one in 2^shift is in it, chosen by its hash, so that a table of fixed size covers any number of objects. An
 * answer may be wrong for a key whose entry had to make room, and for one in 2^28 by chance: it is a figure, never a
 * truth about an object.
 *
 * Threads: any; the caller may hold a key stripe. There is no lock. Concurrent calls may lose an entry.
 */
#ifndef FS_STORE_SHADOW_H
#define FS_STORE_SHADOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define SHADOW_WAYS 8u
#define SHADOW_NEVER UINT64_MAX

struct shadow {
	_Atomic uint64_t *entries; /* buckets times SHADOW_WAYS; 0: free */
	uint32_t buckets;
	_Atomic uint64_t left_bytes; /* of sampled keys, since the shadow is empty */
};

/* Returns the bytes of a shadow's entries. */
static inline uint64_t shadow_bytes(uint32_t buckets)
{
	return (uint64_t)buckets * SHADOW_WAYS * sizeof(uint64_t);
}

/* Makes an empty shadow with so many buckets, 1 at least. */
void shadow_init(struct shadow *shadow, uint32_t buckets);
/* Frees its memory; without effect on one that is all zero. */
void shadow_fini(struct shadow *shadow);
/* Forgets all keys. */
void shadow_empty(struct shadow *shadow);

/* Returns the hash by which a shadow knows a key, from the key's hash64. */
static inline uint64_t shadow_key(uint64_t hash)
{
	return mix64(hash + 0x9e3779b97f4a7c15ull);
}

/* Is this key, as shadow_key has it, among the one in 2^shift that are sampled? shift < 16. */
static inline bool shadow_samples(uint64_t key, unsigned shift)
{
	return (key & ((1ull << shift) - 1)) == 0;
}

/* Notes that the object of a sampled key leaves, which cost so many bytes of DRAM. */
void shadow_note(struct shadow *shadow, uint64_t key, uint64_t bytes);
/* Returns the bytes of sampled keys that have left since this one did; SHADOW_NEVER: it isn't known to have left. */
uint64_t shadow_since(const struct shadow *shadow, uint64_t key);

#endif
