/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paper's placement (4.1): the largest objects first, each at the first of its functions whose
 * position has room. Kept for comparison. A bit per granule tells whether it is occupied.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "segments/plan_internal.h"

struct by_length {
	uint32_t length;
	uint32_t candidate;
};

/* Sorts the longest first; of equal ones, the better rank. */
static int longer(const void *left, const void *right)
{
	const struct by_length *a = left, *b = right;

	if (a->length != b->length)
		return a->length < b->length ? 1 : -1;
	return a->candidate < b->candidate ? -1 : 1;
}

/* A mask of the bits from first on in its word, at most count of them; *n: their number. */
static inline uint64_t bits_of(uint32_t first, uint32_t count, uint32_t *n)
{
	uint32_t shift = first & 63;

	*n = 64 - shift < count ? 64 - shift : count;
	return (*n == 64 ? ~0ull : (1ull << *n) - 1) << shift;
}

static bool is_free(const uint64_t *used, uint32_t first, uint32_t count)
{
	uint32_t n;

	for (; count > 0; first += n, count -= n)
		if (used[first >> 6] & bits_of(first, count, &n))
			return false;
	return true;
}

static void occupy(uint64_t *used, uint32_t first, uint32_t count)
{
	uint32_t n;

	for (; count > 0; first += n, count -= n) {
		uint64_t bits = bits_of(first, count, &n);

		used[first >> 6] |= bits;
	}
}

static void place_one(struct plan_job *job, uint64_t *used, uint32_t candidate)
{
	const struct layout_grid *grid = &job->grid;
	uint32_t granules = (job->candidates[candidate].length + grid->granule - 1) / grid->granule;

	for (uint32_t function = 0; function < grid->functions; function++) {
		uint32_t position = layout_position(grid, job->candidates[candidate].place, function);

		if (granules > grid->positions - position || !is_free(used, position, granules))
			continue;
		occupy(used, position, granules);
		plan_place(job, candidate, job->plan->data_offset + (uint64_t)position * grid->granule, function);
		job->plan->stats.hashes += function + 1;
		return;
	}
}

int plan_paper(struct plan_job *job)
{
	struct by_length *order = mem_alloc(((uint64_t)job->count + 1) * sizeof(*order));
	uint64_t *used = mem_zalloc((job->grid.positions / 64 + 1) * sizeof(*used));
	uint32_t n = 0;
	int rc = FS_ENOMEM;

	if (!order || !used)
		goto out;
	for (uint32_t i = 0; i < job->count; i++)
		if (plan_is_slot(&job->candidates[i]))
			order[n++] = (struct by_length){ job->candidates[i].length, i };
	qsort(order, n, sizeof(*order), longer);
	if (job->grid.positions > 0)
		for (uint32_t i = 0; i < n && job->plan->count < job->expected_objects; i++)
			place_one(job, used, order[i].candidate);
	rc = FS_OK;
out:
	mem_free(order);
	mem_free(used);
	return rc;
}
