/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that lie on a server's flash, and which they are.
 *
 * What is stored, in cycles: `wanted` new keys are set and read, then `filler` new ones only set, which
 * push them out of DRAM. Under --admission=read-once only the wanted ones are written to flash; extstore
 * writes both. The wanted keys are numbers from 0 on.
 *
 * Threads: one (the load has its own). Errors: those of load.h.
 */
#ifndef FS_TOOLS_BENCH_FLASH_FILL_H
#define FS_TOOLS_BENCH_FLASH_FILL_H

#include "tools/bench/load.h"

struct flash_size {
	const char *name;
	uint32_t value_bytes;
	uint64_t wanted, filler; /* keys per cycle */
	unsigned cycles; /* at scale 1 */
	uint64_t dram_keys; /* of the study "flash": of its server whose objects stay in DRAM, at scale 1 */
};

/* The keys that a server is asked for. */
struct flash_range {
	uint64_t first_key, keys;
};

/* Stores all cycles, as many as the scale says, and finds a range of which nearly all (99.5 %) lie on flash.
   range->keys is 0 when there is none. */
FS_MUST_CHECK int flash_fill(const struct bench *bench, struct server *server, const struct flash_size *size,
			     struct flash_range *range);

/* A load of sets, or of sets and gets, of so many keys in order, as the fill has them. */
struct load_spec flash_fill_spec(const struct bench *bench, const struct flash_size *size, enum load_kind kind,
				 uint64_t first_key, uint64_t keys);

#endif
