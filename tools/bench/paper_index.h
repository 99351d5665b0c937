/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index of the Flashield paper (3.2), to be compared with ours: a table of single slots without tags and without
 * relocation, and a Bloom filter for each segment.
 *
 *   key --> 16 slots, one by one:  empty? -> next    filter of its segment says no? -> next    else: read the flash
 *
 *   slot (32 bits):  segment + 1 | function (4)      0: empty
 *
 * Where all 16 slots of a key are taken, the last one is evicted, as in the paper. The filter is a classic one. CLOCK and
 * ghosts, which the study doesn't need, take no bits away from anything that it measures.
 *
 * Threads: one. Errors: FS_EINVAL, FS_ENOMEM. Memory: the caller destroys what it created.
 */
#ifndef FS_TOOLS_BENCH_PAPER_INDEX_H
#define FS_TOOLS_BENCH_PAPER_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define PAPER_INDEX_CHOICES 16

struct paper_index;

struct paper_index_match {
	uint32_t segment;
	uint8_t function;
};

/* Makes an empty index of so many slots (at least 16) over segments (at least 1) of keys_each keys (at least 1), with
   filter_bits (1 .. 32) for each key. */
FS_MUST_CHECK int paper_index_create(struct paper_index **out, uint64_t slots, uint32_t segments, uint64_t keys_each,
				     unsigned filter_bits);
/* NULL does nothing. */
void paper_index_destroy(struct paper_index *index);

/* The segment is about to be written again: its filter becomes empty. No slot names it. */
void paper_index_open(struct paper_index *index, uint32_t segment);

/* Inserts a key, with its function below 16, into slots and filter. Returns false if that evicted the slot of another. */
FS_MUST_CHECK bool paper_index_insert(struct paper_index *index, uint64_t hash, uint32_t segment, unsigned function);

/* Empties the key's slot with this segment and function, if it is there. */
void paper_index_remove(struct paper_index *index, uint64_t hash, uint32_t segment, unsigned function);

/* Finds the slots that the key would be read from, in the order of the choices. Returns their number; *asked grows by
   the filters that were asked. */
unsigned paper_index_lookup(const struct paper_index *index, uint64_t hash, uint64_t *asked,
			    struct paper_index_match out[PAPER_INDEX_CHOICES]);

/* Returns the memory of slots and filters. */
uint64_t paper_index_bytes(const struct paper_index *index);

#endif
