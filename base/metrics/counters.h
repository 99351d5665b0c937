/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters, declared once in counters.def: from its rows come the enum, the stats output and,
 * from metrics.h, the names and help in /metrics.
 *
 * Threads: each thread adds to a block of its own (made at its first ctr_add, kept after its end,
 * so nothing is lost); one writer per block, relaxed atomics; ctr_sum() adds the blocks up and may
 * be a few events behind. Blocks are linked without a lock, so that a counter may be counted
 * under any lock.
 */
#ifndef FS_BASE_METRICS_COUNTERS_H
#define FS_BASE_METRICS_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum ctr_group { CTR_GROUP_GENERAL, CTR_GROUP_FLASH, CTR_GROUP_CLASSIFIER };

enum ctr {
#define COUNTER(name, group, unit, text) CTR_##name,
#include "base/metrics/counters.def"
#undef COUNTER
	CTR_COUNT
};

struct ctr_block {
	_Atomic uint64_t value[CTR_COUNT];
	struct ctr_block *next;
};

extern _Thread_local struct ctr_block *ctr_self;
struct ctr_block *ctr_attach(void); /* makes this thread's block; never NULL */

/* This thread's block: for who counts several things at once. */
static inline struct ctr_block *ctr_own(void)
{
	return __builtin_expect(ctr_self != NULL, 1) ? ctr_self : ctr_attach();
}

static inline void ctr_add_to(struct ctr_block *block, enum ctr counter, uint64_t n)
{
	_Atomic uint64_t *value = &block->value[counter];
	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void ctr_add(enum ctr counter, uint64_t n)
{
	ctr_add_to(ctr_own(), counter, n);
}

/* Sum over all threads since the start or the last ctr_reset. */
uint64_t ctr_sum(enum ctr counter);
/* Since the start, whatever was reset: it never goes back. */
uint64_t ctr_total(enum ctr counter);
/* "stats reset": remembers the present sums as the new zero (no thread's block is written). */
void ctr_reset(void);

struct ctr_info {
	const char *name; /* as in stats */
	enum ctr_group group;
	const char *unit;
	const char *text;
};
const struct ctr_info *ctr_info(enum ctr counter);

#endif
