/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An index of a given size, filled to a load of 0.95 and measured operation by operation.
 *
 * Keys are hashes of a counter, so that a billion of them need no memory: key i lies in segment
 * i / keys per segment under function i % 16. Operations are kept from overlapping each other (a fence
 * between them where the machine has one), as in a server that does other things in between; otherwise
 * a loop of lookups hides most of its cache misses behind each other.
 *
 * Threads: the calling one; its CPU clock is read. Nothing is stored: the caller gives the memory back by
 * index_run_fini.
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
	bool small_pages; /* as where the kernel has no huge ones to give */
};

struct index_run {
	struct index_shape shape;
	struct fidx *index;
	struct region *region;
	uint64_t keys, keys_per_segment; /* inserted */
	uint64_t drops, moves; /* of the fill */
	uint64_t lost; /* innocent slots that INDEX_CLEAR_NOTHING cleared */
	double insert_ns; /* mean over samples at all loads up to the full one */
	double insert_full_ns; /* of the last of them */
};

/* What is measured on a filled index, in this order: the last two take slots away. */
enum index_operation {
	INDEX_HIT, /* lookup of a key that is there */
	INDEX_MISS, /* and of one that isn't */
	INDEX_TOUCH, /* lookup and touch of the match: a get from flash */
	INDEX_HAND,
	INDEX_CLEAR_NOTHING, /* clear of a key that isn't there: most sets */
	INDEX_CLEAR,
	INDEX_OPERATIONS
};

struct index_cost {
	double ns; /* CPU per operation; the hand: per live slot that it visits */
	uint64_t done; /* operations */
	uint64_t matches; /* that they met: slots found, touched, cleared */
};

/* Bytes of memory that index_run_init takes at the most. */
uint64_t index_run_bytes(const struct index_shape *shape);

/* Makes and fills it; samples: inserts that are timed at the end of each sixteenth of the fill
   (the others prefetch, to be done in time). FS_ENOMEM, FS_EINVAL. */
FS_MUST_CHECK int index_run_init(struct index_run *run, const struct index_shape *shape, uint64_t samples);
void index_run_fini(struct index_run *run);

/*
 * Does operations of a kind, on other keys for each round. FS_ECORRUPT: fewer matches than the keys that
 * are in the index, which is a bug of it. operations at most keys / 2; INDEX_CLEAR once only.
 */
FS_MUST_CHECK int index_run_measure(struct index_run *run, enum index_operation operation, unsigned round,
				    uint64_t operations, struct index_cost *cost);

/* All of the index's memory, over the slots in use. */
double index_run_bytes_per_slot(const struct index_run *run);

#endif
