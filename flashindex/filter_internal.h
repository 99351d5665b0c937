/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment's filter in memory, and the shapes of filters and units in a footer: filter.c and units.c share them. */
#ifndef FS_FLASHINDEX_FILTER_INTERNAL_H
#define FS_FLASHINDEX_FILTER_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#define BLOCK_BYTES 64
#define BLOCK_BITS (BLOCK_BYTES * 8)
#define TRAILER_BYTES 8
#define TRAILER_VERSION 1
#define PROBES_MAX 24
#define UNIT_TRAILER_BYTES 16

/* A filter, or its resident units as a list, the last one that was loaded first. Constant once it is published. */
struct filter {
	uint8_t *bytes; /* mem_alloc'ed, owned */
	uint64_t blocks;
	struct filter *next; /* owned; NULL: the first unit, or a whole filter */
	uint64_t salt; /* of a unit's hash functions */
	uint8_t probes; /* 0: a cuckoo filter */
	uint8_t width; /* of its fingerprints */
	uint8_t unit, stored; /* its number, and the units in the footer; stored is 0 of a whole filter */
};

/* Returns the probes of a filter with so many bits per key. */
unsigned filter_probes(unsigned bits);
/* Returns the blocks of a filter with so many bits for each of n keys. */
uint64_t filter_blocks(unsigned bits, uint64_t n);
/* Sets the bits of n keys in blocks of zeros. */
void bloom_set(uint64_t seed, const uint64_t *hashes, uint64_t n, uint8_t *bytes, uint64_t blocks, unsigned probes);
/* Returns the bytes of the list's first filter or unit as they are in the footer. */
size_t filter_unit_length(const struct filter *filter);

/* Returns the bits per key of a unit, so that a filter of two units has at least the average. */
static inline unsigned filter_unit_bits(unsigned average)
{
	return (average + 1) / 2;
}

/* Returns the bytes of a unit with so many bits for each of n keys. */
static inline uint64_t unit_length(unsigned bits, uint64_t n)
{
	return filter_blocks(bits, n) * BLOCK_BYTES + UNIT_TRAILER_BYTES;
}

#endif
