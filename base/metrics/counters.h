/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters, declared once in counters.def. From its rows come the enum, the reports of "stats" and, by metrics.h, the
 * names and help in /metrics.
 *
 * Threads: each thread adds to a block of its own, so a block has one writer. Its values are relaxed atomics. A
 * thread's first ctr_add makes its block, and the block outlives the thread, so that nothing is lost. Sums over the
 * blocks may be a few events behind. Blocks are linked without a lock: it is safe to count under any lock. Errors:
 * none. A thread that gets no memory for its block ends the process.
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

/* One thread's counts. That thread writes them; any thread may read them. */
struct ctr_block {
	_Atomic uint64_t value[CTR_COUNT];
	struct ctr_block *next; /* constant once the block is linked */
};

/* This thread's block; NULL until it has counted. Only for the inline functions below. */
extern _Thread_local struct ctr_block *ctr_self;

/* Makes this thread's block, and links it. Never NULL. Allocates; the block is never freed. */
struct ctr_block *ctr_attach(void);

/* This thread's block, made if need be. It saves time to a caller that adds to several counters. */
static inline struct ctr_block *ctr_own(void)
{
	return __builtin_expect(ctr_self != NULL, 1) ? ctr_self : ctr_attach();
}

/* Adds n to a counter in block, which must be the calling thread's own. */
static inline void ctr_add_to(struct ctr_block *block, enum ctr counter, uint64_t n)
{
	_Atomic uint64_t *value = &block->value[counter];
	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Adds n to a counter. Any thread, under any lock; allocates at the thread's first call only. */
static inline void ctr_add(enum ctr counter, uint64_t n)
{
	ctr_add_to(ctr_own(), counter, n);
}

/* Returns the sum over all threads since the start or the last ctr_reset. Any thread; doesn't block. */
uint64_t ctr_sum(enum ctr counter);

/* Returns the sum over all threads since the start: resets don't touch it, and it never goes back. Any thread; doesn't
   block. */
uint64_t ctr_total(enum ctr counter);

/* For "stats reset": takes the present sums as the new zero of ctr_sum. It writes to no thread's block. Any thread;
   when two threads call it at a time, each counter keeps the zero of one of them. */
void ctr_reset(void);

/* A row of counters.def. */
struct ctr_info {
	const char *name; /* in the reports of "stats" */
	enum ctr_group group; /* the report that shows it */
	const char *unit; /* a plural: "keys" */
	const char *text; /* starts with a small letter, has no full stop */
};

/* Returns the row of a counter. Static storage. */
const struct ctr_info *ctr_info(enum ctr counter);

#endif
