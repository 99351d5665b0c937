/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A log-linear histogram in the manner of HDR Histogram: 64-bit values in 64 linear steps per power of two, with a
 * relative error below 1.6 %. (Debian 12 packages none for C.)
 *
 * Threads: one thread writes a histogram: it calls hist_record*, hist_merge and hist_subtract into it, and hist_reset.
 * Any thread may read at any time (relaxed atomics), and sees a snapshot that may lack the latest records. To sum up
 * several writers' histograms, merge them. Nothing here can fail.
 */
#ifndef FS_BASE_HIST_H
#define FS_BASE_HIST_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

#define HIST_SUB_BITS 6
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	_Atomic uint64_t count;
	_Atomic uint64_t sum;
	_Atomic uint64_t max;
	_Atomic uint64_t bucket[HIST_BUCKETS];
};

/* Makes an empty histogram, never NULL: aborts when memory is out. Freed by hist_destroy, for which NULL is allowed. */
FS_MUST_CHECK struct hist *hist_create(void);
void hist_destroy(struct hist *hist);

/* Returns the number of a value's step. Values below 64 have a step each; from there on every power of two has 64
   steps. */
static inline unsigned hist_bucket(uint64_t value)
{
	unsigned shift;

	if (value < 1u << HIST_SUB_BITS)
		return (unsigned)value;
	shift = 63u - (unsigned)__builtin_clzll(value) - HIST_SUB_BITS;
	return (shift << HIST_SUB_BITS) + (unsigned)(value >> shift);
}

/* Adds n to a cell that only the calling thread writes. */
static inline void hist_add_to(_Atomic uint64_t *cell, uint64_t n)
{
	atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Records the value count times. Inline, as the server records each answer. */
static inline void hist_record_many(struct hist *hist, uint64_t value, uint64_t count)
{
	hist_add_to(&hist->bucket[hist_bucket(value)], count);
	hist_add_to(&hist->sum, value * count);
	if (__builtin_expect(value > atomic_load_explicit(&hist->max, memory_order_relaxed), 0) && count > 0)
		atomic_store_explicit(&hist->max, value, memory_order_relaxed);
	hist_add_to(&hist->count, count);
}

/* Records the value once. */
static inline void hist_record(struct hist *hist, uint64_t value)
{
	hist_record_many(hist, value, 1);
}

/* Adds from's records to into. */
void hist_merge(struct hist *into, const struct hist *from);
/* Forgets all records. */
void hist_reset(struct hist *hist);
/* Subtracts an earlier snapshot of the same records. max becomes the highest value that is left, to within a step. */
void hist_subtract(struct hist *from, const struct hist *earlier);
/* Returns the number of values that are at most bound, to within a step. */
uint64_t hist_count_up_to(const struct hist *hist, uint64_t bound);

/* Returns the value at a quantile in [0, 1]: the highest one of its step, but no higher than max. 0 when empty. */
uint64_t hist_quantile(const struct hist *hist, double quantile);
/* Returns the exact mean; 0 when empty. */
double hist_mean(const struct hist *hist);

#endif
