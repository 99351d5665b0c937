/* SPDX-License-Identifier: BSD-3-Clause */
/* A small seeded generator (splitmix64). Not for secrets. One owner thread per state. */
#ifndef FS_BASE_RNG_H
#define FS_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct rng {
	uint64_t state;
};

static inline void rng_init(struct rng *rng, uint64_t seed)
{
	rng->state = seed;
}

static inline uint64_t rng_next(struct rng *rng)
{
	return mix64(rng->state += 0x9e3779b97f4a7c15ull);
}

/* Uniform in [0, n), n > 0. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return reduce64(rng_next(rng), n);
}

/* Uniform in [0, 1). */
static inline double rng_real(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}

/* Fills with bytes from the kernel (getrandom). For secrets, UUIDs and seeds. Aborts if it fails. */
void rng_secret(void *bytes, size_t length);

#endif
