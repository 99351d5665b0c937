/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a segment knows of its keys, in two forms of as many bytes, as a partition's record of the chain holds it for many
 * segments (columns):
 *
 *   rows    a Bloom filter for each column, bit-sliced: a row has one bit of each filter, and a key's rows are ANDed
 *           (BloomStore, section III.A). A filter's bits follow from the keys that were expected.
 *   lists   fingerprints of 16 bits by column, compared four and more at a time (flashindex/frugal/cell.h)
 *
 * Threads: the calling one.
 */
#ifndef FS_TOOLS_BENCH_CHAIN_RUN_H
#define FS_TOOLS_BENCH_CHAIN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct chain_shape {
	uint32_t columns; /* 1 .. 16383 */
	double keys_each; /* of a column, on average; above 0 */
	double expected_each; /* for which rows are made; above 0. Lists need no such figure */
	bool rows; /* else lists */
};

struct chain_cost {
	double bits_per_key; /* all bytes of the records, in bits, for each key that is in them */
	double in_vain_per_miss; /* columns that a key which is in none matches */
	double in_vain_per_hit; /* newer columns than its own that a key matches */
	double miss_ns, hit_ns; /* for a search, whose record is not in the processor's nearest cache */
};

/* Builds records and searches each of them; searches: of keys that are there, and as many that are not. FS_EINVAL,
   FS_ENOMEM. FS_ECORRUPT: a key that is there was not found. */
FS_MUST_CHECK int chain_run(const struct chain_shape *shape, uint64_t searches, struct chain_cost *out);

#endif
