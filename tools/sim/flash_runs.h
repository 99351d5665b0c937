/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flash as levels of sorted runs that are merged: the storage of sLSM-Tree (Zhang et al., "An Optimization of Key-Value Store
 * Based on Segmented LSM-Tree", II and IV), as a cache would use it.
 *
 *   append -> [table]        level 0   16 tables, each the size of the write buffer (8 blocks of two)
 *                | all are merged when the level is full
 *             [ run ][ run ]   level 1    8 blocks, each four times as large as those of the level before
 *                |
 *             [   run   ] ...  the last level: as many blocks as the flash has room for; the oldest is dropped
 *
 * A merge reads all runs of a level and writes their live objects as one sorted run into the next level: each object is
 * written once for each level that it reaches, and dead bytes are left behind. Objects over a page of 8 KiB stay where
 * they are, as each is indexed by itself (II.A). The room of a merge's output is taken before its input is given back. The
 * paper's store never drops an object; here the oldest block makes room, since the flash of a cache is always full.
 *
 * Each run has a Bloom filter. A lookup asks the filters from the newest run to the oldest and reads where one agrees, in
 * vain at its rate of false positives; a key that a filter passes wrongly it passes as long as the run lives. A run's blocks
 * have ranges of keys, so that at most one of them is asked.
 *
 * Threads: one. Memory: aborts when it is out.
 */
#ifndef FS_TOOLS_SIM_FLASH_RUNS_H
#define FS_TOOLS_SIM_FLASH_RUNS_H

#include <stdbool.h>

#include "tools/sim/objects.h"

#define RUNS_LEVELS_MOST 8u
#define RUNS_FILTER_BITS 10.0 /* for each key; the paper has no figure, LevelDB and SpotKV have this one */

/* A part of a run: the unit that is dropped. */
struct flash_block {
	struct object_list live;
	uint64_t bytes; /* written to it, dead ones too */
	uint64_t objects, key_bytes; /* of the same: what filters and index have */
	uint64_t run; /* the number of the run that it is a part of */
	uint32_t newer, older; /* blocks of its level; BLOCK_NONE */
	uint8_t level;
	bool used;
};

struct flash_level {
	uint32_t newest, oldest; /* BLOCK_NONE */
	uint32_t count; /* of blocks */
	uint64_t bytes;
};

/* An object on flash has to make room: it is in no list then, and its state is OBJECT_OUT. */
typedef void flash_dropped(void *context, uint32_t object);

struct flash_runs {
	struct object *objects;
	flash_dropped *dropped;
	void *context;
	uint64_t capacity_bytes, table_bytes;
	uint32_t levels;
	struct flash_level level[RUNS_LEVELS_MOST];
	struct flash_block *blocks;
	uint32_t blocks_most, block_free;
	uint64_t runs; /* made so far */
	uint64_t used_bytes; /* of all blocks */
	uint64_t written_bytes; /* by appends and merges */
	uint64_t merged_bytes; /* of these, by merges, which have also read as many and the dead ones */
	uint64_t live_objects;
	uint64_t index_objects, index_key_bytes; /* of all blocks, dead ones too */
};

/* levels: 1 .. RUNS_LEVELS_MOST; with 1 nothing is ever merged. table_bytes 0: so large that full levels fill the flash, and
   with one level a 64th of it. capacity_bytes 0: every append is refused. fini frees. */
void runs_init(struct flash_runs *runs, struct object *objects, uint64_t capacity_bytes, uint64_t table_bytes,
	       uint32_t levels, flash_dropped *dropped, void *context);
void runs_fini(struct flash_runs *runs);

/* Writes an object, which is in no list and whose bytes are those that it takes on flash; its key has so many of them.
   False: it is larger than a quarter of the flash, and stays out. */
bool runs_append(struct flash_runs *runs, uint32_t object, uint32_t key_bytes);

/* Forgets an object that is on flash. */
void runs_remove(struct flash_runs *runs, uint32_t object);

/* Drops the oldest block. False: there is none. */
bool runs_drop(struct flash_runs *runs);

/* Returns the reads that a lookup of the object makes where blocks have filters: in vain, and one more if it is on flash. */
uint32_t runs_reads(const struct flash_runs *runs, uint32_t object);

#endif
