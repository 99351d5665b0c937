/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A weighted Count-Min sketch (SpotKV, III.B): four rows of 8-bit counters. Each access of a key adds its cost in flash
 * reads to one counter of each row; the least of the four estimates what the key has cost of late. A key's hotness is that
 * estimate as a share of the sum of all counters, so that one threshold holds however full the sketch is. When a
 * counter would overflow, the sketch is emptied, and the counters that overflowed begin anew with SKETCH_RESEED.
 *
 * Threads: a sketch belongs to one thread, which takes no lock.
 */
#ifndef FS_STORE_SKETCH_H
#define FS_STORE_SKETCH_H

#include <stdint.h>

#define SKETCH_ROWS 4u
#define SKETCH_RESEED 16u
#define SKETCH_HEAVIEST 239u /* a heavier access counts as this */

struct sketch {
	uint8_t *counters; /* SKETCH_ROWS rows of width */
	uint32_t width;
	uint64_t sum; /* of all counters */
	uint64_t emptied; /* how often */
};

/* Makes an empty sketch with width counters in a row, 1 at least. */
void sketch_init(struct sketch *sketch, uint32_t width);
/* Frees its memory; without effect on one that is all zero. */
void sketch_fini(struct sketch *sketch);
/* Returns the bytes of a sketch's counters. */
static inline uint64_t sketch_bytes(uint32_t width)
{
	return (uint64_t)SKETCH_ROWS * width;
}
/* Adds an access of the key with this hash, which took weight flash reads (1 .. SKETCH_HEAVIEST, else the nearer of them).
   Returns the key's hotness in percent of the sum of all counters: above 0, at most 25. */
double sketch_add(struct sketch *sketch, uint64_t hash, unsigned weight);

#endif
