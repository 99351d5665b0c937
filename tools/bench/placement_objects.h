/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Candidates for the placement study: records (header, key, value) of a size distribution, in random
 * order, so that any run of them is a sample of the whole.
 *
 * Threads: pure functions of the seed. Aborts when memory is out (a tool).
 */
#ifndef FS_TOOLS_BENCH_PLACEMENT_OBJECTS_H
#define FS_TOOLS_BENCH_PLACEMENT_OBJECTS_H

#include <stdint.h>

#include "segments/segments.h"
#include "server/store/store.h"

#define PLACEMENT_KEY_BYTES 30u
#define PLACEMENT_VALUE_BYTES 257u /* the mean, but for the mix, which has the published one, and for large objects */
#define PLACEMENT_LARGE_BYTES 45000u /* the mean of large ones, as in a trace of a cloud's block storage */
/* Longer records are extents, as they are for the store in segments of 4 MiB and more. */
#define PLACEMENT_EXTENT_BYTES STORE_SLOT_RECORD_MOST

enum placement_sizes {
	PLACEMENT_EQUAL,
	PLACEMENT_NARROW, /* log-normal values, sigma 0.5 */
	PLACEMENT_WIDE, /* the same, sigma 1.25 */
	PLACEMENT_MIX, /* keys with a known size of the twenty Memcachier applications, as tracegen draws
			     them */
	PLACEMENT_LARGE, /* log-normal values around PLACEMENT_LARGE_BYTES, sigma 1.5 */
	PLACEMENT_SIZES
};
extern const char *const placement_names[PLACEMENT_SIZES];

struct placement_objects {
	struct seg_candidate *all;
	uint32_t count;
	uint64_t bytes;
};

/* Makes objects of `bytes` bytes together, or a little more: 1 .. 2^40. The caller frees them by
   placement_objects_free. */
void placement_objects_make(struct placement_objects *objects, enum placement_sizes sizes, uint64_t bytes,
			    uint64_t seed);
void placement_objects_free(struct placement_objects *objects);

/* Returns how many objects, from the first on, have at least that many bytes together; all that are left if they have
   less. */
uint32_t placement_objects_for(const struct placement_objects *objects, uint32_t first, uint64_t bytes);

#endif
