/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An index while the flash turns over, to tell what each of its parts does: tags alone, tags and filters, or the paper's
 * filters alone (paper_index.h).
 *
 * Segments are written one after the other, each with as many new keys; the oldest is emptied before. Key i has the
 * hash mix64(i) and the function i % 16. The flash itself is not there: a slot that a lookup returns is one read, and the
 * key's own slot answers. No collision is learned (fidx_learn), which would help keys that are asked for again.
 *
 * Threads: the calling one; its CPU clock is read. The caller frees the memory by ablation_run_fini.
 */
#ifndef FS_TOOLS_BENCH_ABLATION_RUN_H
#define FS_TOOLS_BENCH_ABLATION_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct ablation_shape {
	uint64_t slots; /* at least 16 */
	uint32_t segments; /* 2 .. 16383 */
	double load; /* keys over slots, above 0, at most 0.98 */
	unsigned tag_bits; /* 2 .. as many as segments leave; of the paper's table none */
	unsigned filter_bits; /* per key; the paper's table has at least one */
	bool paper; /* the paper's table */
};

struct fidx;
struct paper_index;
struct region;

struct ablation_run {
	struct ablation_shape shape;
	struct fidx *index; /* one of the two */
	struct paper_index *paper;
	struct region *region;
	uint64_t keys_each; /* in a segment */
	uint64_t sequence; /* segments written so far */
	uint64_t drops; /* slots lost to others since the beginning */
};

struct ablation_cost {
	double reads; /* for each lookup */
	double ns; /* CPU, for each lookup */
	double filters_asked; /* for each lookup; NaN of our own index, which doesn't count them */
	double lost; /* share of the keys whose slot is gone; 0 of misses */
};

/* Makes an empty index. FS_EINVAL, FS_ENOMEM. */
FS_MUST_CHECK int ablation_run_init(struct ablation_run *run, const struct ablation_shape *shape);
void ablation_run_fini(struct ablation_run *run);

/* Writes so many segments. FS_ENOMEM. */
FS_MUST_CHECK int ablation_run_write(struct ablation_run *run, uint64_t segments);

/* Looks up so many keys (at least one) that were written (hits) or never were. reads of hits are over those that are
   still there. round: other keys in each. The flash is full. */
void ablation_run_measure(const struct ablation_run *run, bool hits, unsigned round, uint64_t lookups,
			  struct ablation_cost *out);

/* Returns the memory of slots and filters over the keys that have a slot; lost: as measured by hits. */
double ablation_run_bytes_per_key(const struct ablation_run *run, double lost);

#endif
