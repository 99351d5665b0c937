/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of hashes of keys, 12 bytes for each it was made for. Two keys of one hash count as one: with
 * 64 bits that is one pair among 2^32 keys on average.
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

/* What it takes for n keys. */
uint64_t keyset_bytes(uint64_t n);

/* For at most n keys. Memory that is out ends the program. */
void keyset_init(struct keyset *set, uint64_t n);
void keyset_fini(struct keyset *set);

/* True when the hash was not there yet. Not more than n times. */
bool keyset_add(struct keyset *set, uint64_t hash);

#endif
