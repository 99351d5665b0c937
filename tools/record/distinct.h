/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Estimates how many different hashes it was shown, in a fixed 16 KiB: HyperLogLog (Flajolet et al., 2007), with linear
 * counting while few were shown. The standard error is 0.8 %. Threads: one.
 */
#ifndef FS_TOOLS_RECORD_DISTINCT_H
#define FS_TOOLS_RECORD_DISTINCT_H

#include <stdint.h>

#define DISTINCT_BITS 14
#define DISTINCT_REGISTERS (1u << DISTINCT_BITS)

/* Zeroed bytes are one that has seen nothing. */
struct distinct {
	uint8_t registers[DISTINCT_REGISTERS];
};

/* Shows it a uniform 64-bit hash. */
void distinct_add(struct distinct *distinct, uint64_t hash);

/* Returns the estimate. */
double distinct_estimate(const struct distinct *distinct);

#endif
