/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work off the path of requests, for the rooms above: eviction (evict.c), scores (score.c), and the life of two
 * threads. The keeper keeps DRAM free and never does I/O; the cleaner moves objects to flash and waits for the device.
 */
#ifndef FS_STORE_CLEANER_H
#define FS_STORE_CLEANER_H

#include "server/store/dram/dram.h"

/* ---- score.c: which objects in DRAM are worth flash -------------------------------------------- */

/* Scores a linked item by the classifier (paper, 4.2) and marks or unmarks it as a candidate. The stripe is held. */
void candidate_score(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item,
		     uint32_t now_seconds);

/* ---- evict.c: CLOCK over both tiers (paper, 4.3) ----------------------------------------------- */

/* Makes room for so many bytes from the context's own hand, with bounded work; takes one stripe at a time. False:
   values under way hold too much, or -M forbids eviction. A worker. */
FS_MUST_CHECK bool evict_inline(struct store_context *context, uint64_t bytes);
/* Returns the bytes of hot data: all items, and the objects on flash above CLOCK zero. Any thread. */
uint64_t store_hot_bytes(const struct store *store);
/* Returns the hot data threshold in bytes. Any thread. */
uint64_t store_hot_threshold(const struct store *store);
/* Returns the number of linked items. Any thread. */
uint64_t store_dram_items(const struct store *store);

/* ---- keeper.c and cleaner.c -------------------------------------------------------------------- */

/* The two threads' data in the store, all zero. The first and the last of the functions here. */
void cleaner_create(struct store *store);
/* Frees them. */
void cleaner_destroy(struct store *store);

/* The keeper's context and background, once the stripes are there; fini: its thread doesn't run. */
void keeper_init(struct store *store);
void keeper_fini(struct store *store);
/* Starts the thread: FS_OK or FS_ESYS. stop returns when it has ended, at once if it was not started. */
FS_MUST_CHECK int keeper_start(struct store *store);
void keeper_stop(struct store *store);
/* One bounded step, some milliseconds. True: there is more to do at once. The keeper's thread, or without one the
   caller's. */
bool keeper_step(struct store *store);
/* Returns the flash bytes per second, smoothed. Any thread. */
uint64_t keeper_write_rate(const struct store *store);
/* Returns the innocent slots that sets have cleared, as expected, in millionths. Any thread. */
uint64_t keeper_innocent_millionths(const struct store *store);

/* The cleaner's, like the keeper's. Without flash no thread starts, and the result is FS_OK. */
void cleaner_init(struct store *store);
void cleaner_fini(struct store *store);
FS_MUST_CHECK int cleaner_start(struct store *store);
void cleaner_stop(struct store *store);
/* One step: writes a segment if one is due, and waits for the device. True: it wrote one. The cleaner's thread, or
   without one the caller's. */
bool cleaner_step(struct store *store);
/* Memory is short: keeper and cleaner look at once. Any thread, any lock but a leaf held. */
void cleaner_wake(struct store *store);

/* tables.c: gives back tables of the index that no segment needs any more, and brings index_bytes up to date. After
   segments have come or gone. Cleaner, and store_open. */
void tables_tidy(struct store *store);

#endif
