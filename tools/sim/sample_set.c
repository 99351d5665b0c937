/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/sample_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct clf_labelled *)a)->id, y = ((const struct clf_labelled *)b)->id;

	return (x > y) - (x < y);
}

void sample_set_add(struct sample_set *set, const struct clf_labelled *samples, size_t count)
{
	struct clf_labelled *all = mem_must_zalloc((set->count + count + 1) * sizeof(*all)), *new = all + set->count;
	size_t added = 0;

	for (size_t i = 0; i < count; i++)
		if (!set->count || !bsearch(&samples[i], set->sample, set->count, sizeof(*all), by_id))
			new[added++] = samples[i];
	if (set->count)
		memcpy(all, set->sample, set->count * sizeof(*all));
	qsort(all, set->count + added, sizeof(*all), by_id);
	mem_free(set->sample);
	*set = (struct sample_set){ all, set->count + added };
}

void sample_set_fini(struct sample_set *set)
{
	mem_free(set->sample);
	*set = (struct sample_set){ 0 };
}
