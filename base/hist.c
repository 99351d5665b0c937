/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hist.h"

#include "base/alloc.h"
#include "base/assert.h"

#define SUB_STEPS (1u << HIST_SUB_BITS)

static uint64_t cell_load(const _Atomic uint64_t *cell)
{
	return atomic_load_explicit(cell, memory_order_relaxed);
}

static void cell_store(_Atomic uint64_t *cell, uint64_t value)
{
	atomic_store_explicit(cell, value, memory_order_relaxed);
}

static uint64_t highest_value_of(unsigned bucket)
{
	unsigned shift;

	if (bucket < SUB_STEPS)
		return bucket;
	shift = (bucket >> HIST_SUB_BITS) - 1;
	return ((uint64_t)(SUB_STEPS + (bucket & (SUB_STEPS - 1))) << shift) + ((uint64_t)1 << shift) - 1;
}

struct hist *hist_create(void)
{
	return mem_must_zalloc(sizeof(struct hist));
}

void hist_destroy(struct hist *hist)
{
	mem_free(hist);
}

void hist_merge(struct hist *into, const struct hist *from)
{
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t n = cell_load(&from->bucket[i]);

		if (n)
			cell_store(&into->bucket[i], cell_load(&into->bucket[i]) + n);
	}
	cell_store(&into->sum, cell_load(&into->sum) + cell_load(&from->sum));
	cell_store(&into->count, cell_load(&into->count) + cell_load(&from->count));
	if (cell_load(&from->max) > cell_load(&into->max))
		cell_store(&into->max, cell_load(&from->max));
}

/* a - b, or 0 if b is greater: two snapshots of a histogram that is written meanwhile may disagree by some records. */
static uint64_t difference_or_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void hist_subtract(struct hist *from, const struct hist *earlier)
{
	uint64_t max = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t left = difference_or_zero(cell_load(&from->bucket[i]), cell_load(&earlier->bucket[i]));

		cell_store(&from->bucket[i], left);
		if (left)
			max = highest_value_of(i);
	}
	cell_store(&from->count, difference_or_zero(cell_load(&from->count), cell_load(&earlier->count)));
	cell_store(&from->sum, difference_or_zero(cell_load(&from->sum), cell_load(&earlier->sum)));
	if (cell_load(&from->max) > max)
		cell_store(&from->max, max);
}

uint64_t hist_count_up_to(const struct hist *hist, uint64_t bound)
{
	unsigned last = hist_bucket(bound);
	uint64_t count = 0;

	must(last < HIST_BUCKETS);
	for (unsigned i = 0; i <= last; i++)
		count += cell_load(&hist->bucket[i]);
	return count;
}

void hist_reset(struct hist *hist)
{
	cell_store(&hist->count, 0);
	cell_store(&hist->sum, 0);
	cell_store(&hist->max, 0);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		cell_store(&hist->bucket[i], 0);
}

uint64_t hist_quantile(const struct hist *hist, double quantile)
{
	uint64_t total = 0, rank, seen = 0, max = cell_load(&hist->max);
	double exact;

	/* Summed up, as a writer may have counted a value in its bucket but not yet in hist->count. */
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		total += cell_load(&hist->bucket[i]);
	if (total == 0)
		return 0;
	if (quantile < 0)
		quantile = 0;
	if (quantile > 1)
		quantile = 1;
	exact = quantile * (double)total;
	rank = (uint64_t)exact;
	if ((double)rank < exact || rank == 0)
		rank++;
	if (rank > total)
		rank = total;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		seen += cell_load(&hist->bucket[i]);
		if (seen >= rank) {
			uint64_t value = highest_value_of(i);

			return value < max ? value : max;
		}
	}
	return max;
}

double hist_mean(const struct hist *hist)
{
	uint64_t count = cell_load(&hist->count);

	return count ? (double)cell_load(&hist->sum) / (double)count : 0;
}
