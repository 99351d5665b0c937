/* SPDX-License-Identifier: BSD-3-Clause */
/* A small seeded generator (splitmix64), which is not for secrets. One thread at a time uses a struct rng; rng_secret
   is for any. */
#ifndef FS_BASE_RNG_H
#define FS_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct rng {
	uint64_t state;
};

/* Begins a sequence. Equal seeds give equal sequences. */
static inline void rng_init(struct rng *rng, uint64_t seed)
{
	rng->state = seed;
}

/* Returns 64 random bits. */
static inline uint64_t rng_next(struct rng *rng)
{
	return mix64(rng->state += 0x9e3779b97f4a7c15ull);
}

/* Returns a number uniform in [0, n). n > 0. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return reduce64(rng_next(rng), n);
}

/* Returns a number uniform in [0, 1). */
static inline double rng_real(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}

/* Fills bytes from the kernel (getrandom), for secrets, UUIDs and seeds. Waits while the kernel has no entropy yet;
   aborts if it fails. */
void rng_secret(void *bytes, size_t length);

#endif
