/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A log-linear histogram in the manner of HDR Histogram: 64-bit values in 64 linear steps per
 * power of two, relative error below 1.6 %. (Debian 12 packages none for C.)
 *
 * Threads: one writer per histogram; readers at any time (relaxed atomics), who then see a
 * snapshot that may be a few records behind. Merge to sum the writers.
 */
#ifndef FS_BASE_HIST_H
#define FS_BASE_HIST_H

#include <stdatomic.h>
#include <stdint.h>

#define HIST_SUB_BITS 6
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	_Atomic uint64_t count;
	_Atomic uint64_t sum;
	_Atomic uint64_t max;
	_Atomic uint64_t bucket[HIST_BUCKETS];
};

struct hist *hist_create(void); /* zeroed; never NULL */
void hist_destroy(struct hist *hist);
void hist_record(struct hist *hist, uint64_t value);
void hist_record_many(struct hist *hist, uint64_t value, uint64_t count); /* the value, so many times */
void hist_merge(struct hist *into, const struct hist *from);
void hist_reset(struct hist *hist);
/* Takes an earlier snapshot of the same records away; max becomes the highest value that is left, to its step. */
void hist_subtract(struct hist *from, const struct hist *earlier);
/* How many values are at most bound, to within a step. */
uint64_t hist_count_up_to(const struct hist *hist, uint64_t bound);

/* The value at a quantile in [0, 1] (highest value equivalent to its step); 0 when empty. */
uint64_t hist_quantile(const struct hist *hist, double quantile);
double hist_mean(const struct hist *hist);

#endif
