/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hist.h"

#include "base/alloc.h"

#define SUB_STEPS (1u << HIST_SUB_BITS)

static uint64_t load(const _Atomic uint64_t *cell)
{
	return atomic_load_explicit(cell, memory_order_relaxed);
}

static void store(_Atomic uint64_t *cell, uint64_t value)
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
		uint64_t n = load(&from->bucket[i]);

		if (n)
			store(&into->bucket[i], load(&into->bucket[i]) + n);
	}
	store(&into->sum, load(&into->sum) + load(&from->sum));
	store(&into->count, load(&into->count) + load(&from->count));
	if (load(&from->max) > load(&into->max))
		store(&into->max, load(&from->max));
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void hist_subtract(struct hist *from, const struct hist *earlier)
{
	uint64_t max = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t left = less(load(&from->bucket[i]), load(&earlier->bucket[i]));

		store(&from->bucket[i], left);
		if (left)
			max = highest_value_of(i);
	}
	store(&from->count, less(load(&from->count), load(&earlier->count)));
	store(&from->sum, less(load(&from->sum), load(&earlier->sum)));
	if (load(&from->max) > max)
		store(&from->max, max);
}

uint64_t hist_count_up_to(const struct hist *hist, uint64_t bound)
{
	unsigned last = hist_bucket(bound);
	uint64_t count = 0;

	for (unsigned i = 0; i <= last; i++)
		count += load(&hist->bucket[i]);
	return count;
}

void hist_reset(struct hist *hist)
{
	store(&hist->count, 0);
	store(&hist->sum, 0);
	store(&hist->max, 0);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		store(&hist->bucket[i], 0);
}

uint64_t hist_quantile(const struct hist *hist, double quantile)
{
	uint64_t total = 0, rank, seen = 0, max = load(&hist->max);
	double exact;

	/* The buckets' own total, as a writer may be between a bucket and the count. */
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		total += load(&hist->bucket[i]);
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
		seen += load(&hist->bucket[i]);
		if (seen >= rank) {
			uint64_t value = highest_value_of(i);

			return value < max ? value : max;
		}
	}
	return max;
}

double hist_mean(const struct hist *hist)
{
	uint64_t count = load(&hist->count);

	return count ? (double)load(&hist->sum) / (double)count : 0;
}
