/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/distinct.h"

#include <math.h>

void distinct_add(struct distinct *distinct, uint64_t hash)
{
	uint8_t *seen = &distinct->registers[hash >> (64 - DISTINCT_BITS)];
	/* The bit behind bounds the rank. */
	uint64_t rest = hash << DISTINCT_BITS | 1ull << (DISTINCT_BITS - 1);
	uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);

	if (rank > *seen)
		*seen = rank;
}

double distinct_estimate(const struct distinct *distinct)
{
	const double count = DISTINCT_REGISTERS, alpha = 0.7213 / (1 + 1.079 / count);
	double sum = 0, empty = 0, estimate;

	for (unsigned i = 0; i < DISTINCT_REGISTERS; i++) {
		sum += ldexp(1, -distinct->registers[i]);
		empty += distinct->registers[i] == 0;
	}
	estimate = alpha * count * count / sum;
	return estimate <= 2.5 * count && empty > 0 ? count * log(count / empty) : estimate;
}
