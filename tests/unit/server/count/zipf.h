/* SPDX-License-Identifier: BSD-3-Clause */
/* Random keys by a zipf distribution, for tests: key 0 is the most frequent. One owner; zipf_fini frees. */
#ifndef FS_TESTS_COUNT_ZIPF_H
#define FS_TESTS_COUNT_ZIPF_H

#include <stdint.h>

#include "base/rng.h"

struct zipf {
	double *sums; /* of the weights up to each key */
	uint32_t keys;
	struct rng rng;
};

/* Makes a distribution over this many keys, whose weights fall with the rank to the power of exponent. */
void zipf_init(struct zipf *zipf, uint32_t keys, double exponent, uint64_t seed);
/* Returns the next key, 0 .. keys - 1. */
uint32_t zipf_next(struct zipf *zipf);
void zipf_fini(struct zipf *zipf);

#endif
