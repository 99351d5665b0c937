/* SPDX-License-Identifier: BSD-3-Clause */
/* What memory.c and compact.c share. */
#ifndef FS_STORE_DRAM_INTERNAL_H
#define FS_STORE_DRAM_INTERNAL_H

#include "server/store/dram/dram.h"

/* compact.c. The keeper's own, but for the first two. */
struct compaction {
	_Atomic uint32_t asked, done; /* the number of the last one that was asked for, and that was made */
	uint32_t started;
	bool waiting, running;
	uint64_t since_ms; /* it waits for eviction to do its part */
	bool moves[MEM_CLASSES]; /* objects of these classes */
	uint32_t stripe, bucket; /* where to go on */
	uint64_t began_ms, ended_ms; /* the last pass, or the one under way */
	uint64_t allocated, holes; /* allocated_bytes and holes when it began */
	int64_t item_bytes; /* these, too */
	uint64_t watched; /* allocated_bytes at the last look at holes */
	bool gave_little; /* it left most of the holes */
	uint64_t holes_least; /* that a pass in calm has left, or the fewest since */
};

#endif
