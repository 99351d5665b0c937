/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work off the path of requests, for the rooms above: eviction (evict.c), scores (score.c), and the life of the two threads,
 * keeper and cleaner.
 */
#ifndef FS_STORE_CLEANER_H
#define FS_STORE_CLEANER_H

#include "server/store/dram/dram.h"

/* ---- score.c: which objects in DRAM are worth flash (lock held) ------------------------------ */

void candidate_score(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item,
		     uint32_t now_seconds);

/* ---- evict.c --------------------------------------------------------------------------------- */

/* A worker is short of memory: evicts inline, with bounded work. False: too much is held by values
   under way, or -M. */
bool evict_inline(struct store_context *context, uint64_t bytes);
uint64_t store_hot_bytes(const struct store *store);
uint64_t store_hot_threshold(const struct store *store);
uint64_t store_dram_items(const struct store *store);

/* ---- keeper.c and cleaner.c ------------------------------------------------------------------ */

/* Memory for what both keep in the store, all zeros; comes before all else here. */
void cleaner_create(struct store *store);
void cleaner_destroy(struct store *store);

void keeper_init(struct store *store);
void keeper_fini(struct store *store);
int keeper_start(struct store *store);
void keeper_stop(struct store *store);
/* One step of it, in its thread, or in the caller's where there is none. True: there is more to do at once. */
bool keeper_step(struct store *store);
/* Flash bytes per second, smoothed; expected innocent slots cleared, in millionths. Any thread. */
uint64_t keeper_write_rate(const struct store *store);
uint64_t keeper_innocent_millionths(const struct store *store);

void cleaner_init(struct store *store);
void cleaner_fini(struct store *store);
int cleaner_start(struct store *store);
void cleaner_stop(struct store *store);
/* One step, as keeper_step. */
bool cleaner_step(struct store *store);
/* Memory is short: the keeper and the cleaner are to look at once. Any thread. */
void cleaner_wake(struct store *store);

/* tables.c. After segments have gone or come: gives back what nothing needs any more, and takes the index into the account. */
void tables_tidy(struct store *store);

#endif
