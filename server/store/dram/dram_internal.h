/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of compaction, which memory.c and compact.c share. */
#ifndef FS_STORE_DRAM_INTERNAL_H
#define FS_STORE_DRAM_INTERNAL_H

#include "server/store/dram/dram.h"

/* The keeper's own, except for the first two. */
struct compaction {
	_Atomic uint32_t asked, done; /* numbers of the latest pass asked for (any thread), and made (the keeper) */
	uint32_t started; /* number of the pass under way */
	bool waiting, running; /* waiting: for eviction to do its part */
	uint64_t since_ms; /* when it began to wait */
	bool moves[MEM_CLASSES]; /* the pass moves objects of these classes */
	uint32_t stripe; /* the next one to look at */
	struct line_position at; /* in it */
	uint64_t began_ms, ended_ms; /* of the last pass, or of the one under way */
	uint64_t allocated, holes; /* allocated_bytes, and bytes of holes, when it began */
	int64_t item_bytes; /* item_bytes when it began */
	uint64_t watched; /* allocated_bytes at the last look at holes */
	bool gave_little; /* the last pass left most of the holes */
	uint64_t holes_least; /* bytes of holes that a pass in calm has left, or the fewest since */
};

#endif
