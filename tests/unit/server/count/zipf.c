/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/server/count/zipf.h"

#include <math.h>

#include "base/alloc.h"

void zipf_init(struct zipf *zipf, uint32_t keys, double exponent, uint64_t seed)
{
	double sum = 0;

	*zipf = (struct zipf){ .sums = mem_must_zalloc(keys * sizeof(double)), .keys = keys };
	rng_init(&zipf->rng, seed);
	for (uint32_t i = 0; i < keys; i++)
		zipf->sums[i] = sum += pow(i + 1, -exponent);
}

uint32_t zipf_next(struct zipf *zipf)
{
	double at = rng_real(&zipf->rng) * zipf->sums[zipf->keys - 1];
	uint32_t first = 0, last = zipf->keys - 1;

	while (first < last) {
		uint32_t middle = (first + last) / 2;

		if (zipf->sums[middle] < at)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

void zipf_fini(struct zipf *zipf)
{
	mem_free(zipf->sums);
}
