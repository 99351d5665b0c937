/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of hashes of keys, with 12 bytes for each key that it has room for. Two keys with the same hash
 * count as one: with 64 bits that is one pair among 2^32 keys on average.
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_INSPECT_KEYSET_H
#define FS_TOOLS_INSPECT_KEYSET_H

#include <stdbool.h>
#include <stdint.h>

struct keyset {
	uint64_t *slots; /* 0: free */
	uint64_t capacity, room;
};

/* Returns the bytes of a set for n keys. */
uint64_t keyset_bytes(uint64_t n);

/* init makes a set for at most n keys and ends the program when memory is out; fini frees it. */
void keyset_init(struct keyset *set, uint64_t n);
void keyset_fini(struct keyset *set);

/* Adds a hash. True when it is new. At most n new hashes may be added. */
bool keyset_add(struct keyset *set, uint64_t hash);

#endif
