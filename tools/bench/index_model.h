/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operation would cost in an index too large for this machine.
 *
 * Model: cost = a + b * log2(slots). The work of an operation is the same at any size; what grows is how
 * deep in the hierarchy of caches, translation buffers and page tables its two buckets lie, and each level
 * is a few times the size of the one before. Fitted by least squares.
 *
 * It is a lower bound: smaller sizes know nothing of the step that comes where the slots outgrow the reach
 * of the translation buffers. (A random read of 1.2 GB in huge pages took 200 ns on the machine that it was
 * tried on, one of 4 GB 330; a hit in 300 M slots 223 ns, in 1 G 406, foretold 233.)
 *
 * Threads: pure functions.
 */
#ifndef FS_TOOLS_BENCH_INDEX_MODEL_H
#define FS_TOOLS_BENCH_INDEX_MODEL_H

#include <stdint.h>

struct index_model {
	unsigned points;
	double sum_x, sum_xx, sum_y, sum_xy; /* x: log2(slots) */
};

void index_model_add(struct index_model *model, uint64_t slots, double cost);
/* NaN with fewer than two sizes. */
double index_model_predict(const struct index_model *model, uint64_t slots);
/* The b above: what twice the slots cost more. */
double index_model_slope(const struct index_model *model);

#endif
