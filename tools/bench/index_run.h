/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An index of a given size, filled to a load of 0.95 and measured operation by operation.
 *
 * Keys are hashes of a counter, so that a billion of them need no memory: key i lies in segment i / (keys per segment)
 * under function i % 16. A fence between operations (if the machine has one) keeps them from overlapping, as in a
 * server that does other work in between. Without it a loop of lookups would hide most of its cache misses behind each
 * other.
 *
 * Threads: the calling one; its CPU clock is read. The caller frees the memory by index_run_fini.
 */
#ifndef FS_TOOLS_BENCH_INDEX_RUN_H
#define FS_TOOLS_BENCH_INDEX_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/region.h"
#include "flashindex/flashindex.h"

#define INDEX_LOAD 0.95

struct index_shape {
	uint64_t slots; /* a multiple of 16 and of segments at least: 16 .. 2^35 */
	uint32_t segments; /* 1 .. 16383: with them the tag's width */
	unsigned filter_bits; /* per key */
	bool small_pages; /* without huge pages */
};

struct index_run {
	struct index_shape shape;
	struct fidx *index;
	struct region *region;
	uint64_t keys, keys_per_segment; /* inserted */
	uint64_t drops, moves; /* of the fill */
	uint64_t lost; /* innocent slots that INDEX_CLEAR_NOTHING cleared */
	double insert_ns; /* mean over samples at all loads up to the full one */
	double insert_full_ns; /* mean over the last samples, at the full load */
};

/* The operations measured on a filled index, in this order: the last two take slots away. */
enum index_operation {
	INDEX_HIT, /* lookup of a present key */
	INDEX_MISS, /* lookup of an absent key */
	INDEX_TOUCH, /* lookup and touch of the match: a get from flash */
	INDEX_HAND,
	INDEX_CLEAR_NOTHING, /* clear of an absent key: most sets */
	INDEX_CLEAR,
	INDEX_OPERATIONS
};

struct index_cost {
	double ns; /* CPU per operation; the hand: per live slot that it visits */
	uint64_t done; /* operations */
	uint64_t matches; /* slots that they found, touched or cleared */
};

/* Returns the largest number of bytes of memory that index_run_init may take. */
uint64_t index_run_bytes(const struct index_shape *shape);

/* Makes and fills the index. samples: the inserts timed at the end of each sixteenth of the fill; the other inserts
   prefetch, to save time. FS_ENOMEM, FS_EINVAL. */
FS_MUST_CHECK int index_run_init(struct index_run *run, const struct index_shape *shape, uint64_t samples);
void index_run_fini(struct index_run *run);

/*
 * Measures so many operations of a kind, on other keys in each round. operations is at most keys / 2; INDEX_CLEAR may
 * run once only. FS_ECORRUPT: there were fewer matches than keys in the index, which is a bug of the index.
 */
FS_MUST_CHECK int index_run_measure(struct index_run *run, enum index_operation operation, unsigned round,
				    uint64_t operations, struct index_cost *cost);

/* Returns the whole memory of the index, divided by the slots in use. */
double index_run_bytes_per_slot(const struct index_run *run);

#endif
