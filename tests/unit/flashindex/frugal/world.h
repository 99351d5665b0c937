/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flash and its clients for the tests of the frugal index, all in memory: keys, of which each is in DRAM, on flash or
 * nowhere; segments that hold keys, written in FIFO order; and a chain. Fingerprints are few, so that columns match in
 * vain all the time.
 *
 * The world knows the truth. A search may find nothing where it is allowed to (w->lossy), and never an old record.
 */
#ifndef FS_TESTS_FRUGAL_WORLD_H
#define FS_TESTS_FRUGAL_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/region.h"
#include "base/rng.h"
#include "flashindex/frugal/frugal_internal.h"

#ifdef FS_FAULTS
#define HAVE_FAULTS true
#else
#define HAVE_FAULTS false
#endif

#define WORLD_KEYS 1500u
#define WORLD_SEGMENTS 24u
#define WORLD_SEGMENT_BYTES (256u << 10)

struct world_key {
	uint64_t hash;
	struct frugal_key key;
	bool in_dram, planned, kept; /* kept: its record may still be on flash, and is equal to it */
	bool doubtful; /* it was known to be absent when its record was written, and may stay so: it was not committed */
	uint64_t sequence; /* of its valid record on flash; 0: there is none */
	bool lost_dram; /* it was in DRAM when the process was killed */
};

struct world_segment {
	uint64_t sequence; /* 0: it is free */
	bool chain;
	bool *has; /* of each key: has it a record here, valid or not? NULL for a chain */
	uint8_t *bytes; /* of a chain */
	uint64_t length;
};

struct world {
	struct frugal_config config;
	struct frugal *frugal;
	struct region *region;
	struct rng rng;
	struct world_key key[WORLD_KEYS];
	struct world_segment segment[WORLD_SEGMENTS];
	uint32_t cursor; /* the next segment to write */
	uint64_t next_sequence;
	uint64_t writing; /* sequence of the segment whose objects are planned */
	bool lossy; /* a valid record may have been given up */
	uint64_t chain_reads, in_vain, found, lost;
};

/* Makes it, with config as far as it is filled in: share, kill_bytes, partitions, objects. */
void world_open(struct world *w);
void world_close(struct world *w);
/* Returns w->config with all that a test leaves out, and the sequences of segments. */
void world_config(struct world *w);
void world_sequences(const struct world *w, uint64_t out[WORLD_SEGMENTS]);

/* A command stores the key's object in DRAM, or deletes it; both make what is on flash invalid. */
void world_set(struct world *w, uint32_t key);
void world_delete(struct world *w, uint32_t key);
/* DRAM drops the object. */
void world_evict(struct world *w, uint32_t key);

/* Writes a segment of bins with some objects of DRAM, about one in `of`; while it is planned `meanwhile`, if any, is called.
   False: there was no object. */
bool world_write(struct world *w, unsigned of, void (*meanwhile)(struct world *w));
/* Closes the segment, as reclaim does. */
void world_reclaim(struct world *w, uint32_t segment);
/* A merge: each segment of the new chain has so many partitions. A read of an old record fails with this probability, in
   1/1000. Two passes are made over each, as the writer does. Without publish it is given up in the end. */
void world_merge(struct world *w, uint32_t partitions_each, unsigned fail_permille, bool publish);
void world_merge_if_due(struct world *w);

/* Searches for the key as a get does. Returns the sequence of the segment that it is found in; 0: nowhere. */
uint64_t world_search(struct world *w, uint32_t key);
/* Asserts that the search of the key, or of each key, finds the truth. */
void world_check(struct world *w, uint32_t key);
void world_check_all(struct world *w);
/* The index was attached to after a kill, by which DRAM was lost. Checks all keys, exits with 1 if one is wrong, and goes on for a
   while. Without exact the region was damaged, and anything may be found or lost. */
void world_attached(struct world *w, bool exact);
/* Reads a chain record's value. NULL: the bytes are no record of the partition. */
const void *world_chain_value(struct world *w, const struct frugal_found *place, uint32_t partition, uint64_t *length);

#endif
