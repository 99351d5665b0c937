/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work off the path of requests, for the rooms above: eviction (evict.c), scores (score.c), and the life of two
 * threads. The keeper keeps DRAM free and never does I/O; the cleaner moves objects to flash and waits for the device.
 */
#ifndef FS_STORE_CLEANER_H
#define FS_STORE_CLEANER_H

#include "server/store/dram/dram.h"
#include "server/store/dram/limits.h"

/* ---- score.c: which objects in DRAM are worth flash -------------------------------------------- */

/* Scores a linked item by the classifier (paper, 4.2) and marks or unmarks it as a candidate. The stripe is held. */
void candidate_score(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item);
/* Returns the item as the classifier is asked about it; its features are the caller's. */
struct clf_object item_as_clf_object(const struct store *store, const struct item *item,
				     const struct clf_features *features, uint64_t hash, uint64_t now_ms);
/* Under a rule that asks when an object would be evicted: is it a candidate, or does it become one now? The stripe is
   held. */
bool candidate_offer(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item, uint64_t now_ms);

/* ---- evict.c: CLOCK over both tiers (paper, 4.3) ----------------------------------------------- */

/* Evicts at the context's own hand until so many bytes have room, with bounded work; takes one stripe at a time. False:
   values under way hold too much, or -M forbids eviction. A worker. */
FS_MUST_CHECK bool evict_inline(struct store_context *context, uint64_t bytes);
/* Makes room below the ceiling of the key's application for an object of so many bytes, among its own objects, with
   bounded work: it may not find enough. False: the object is larger than the ceiling. The store has limits. A worker. */
FS_MUST_CHECK bool ceiling_make_room(struct store_context *context, const char *key, size_t key_length, uint64_t cost);
/* Does the same, at next to no cost without limits. */
FS_MUST_CHECK static inline bool ceiling_allows(struct store_context *context, const char *key, size_t key_length,
						uint64_t cost)
{
	return __builtin_expect(!store_limits(context->store), 1) || ceiling_make_room(context, key, key_length, cost);
}
/* Returns the bytes of hot data: all items, and the objects on flash above CLOCK zero. Any thread. */
uint64_t store_hot_bytes(const struct store *store);
/* Returns the hot data threshold in bytes. Any thread. */
uint64_t store_hot_threshold(const struct store *store);

/* ---- keeper.c and cleaner.c -------------------------------------------------------------------- */

/* Makes the two threads' data in the store, all zero, before any other function here is called. */
void cleaner_create(struct store *store);
/* Frees that data, after every other function here. */
void cleaner_destroy(struct store *store);

/* Make and free the keeper's context and background. The stripes exist at keeper_init; the keeper's thread doesn't run
   at keeper_fini. */
void keeper_init(struct store *store);
void keeper_fini(struct store *store);
/* keeper_start starts the thread: FS_OK or FS_ESYS. keeper_stop returns when the thread has ended, at once if it was
   not started. */
FS_MUST_CHECK int keeper_start(struct store *store);
void keeper_stop(struct store *store);
/* Does one bounded step of some milliseconds. True: there is more to do at once. The keeper's thread, or without one
   the caller's. */
bool keeper_step(struct store *store);
/* Did the last second lose objects although the flash had room, as the cleaner came too late? Any thread. */
bool keeper_sees_losses(const struct store *store);
/* Returns the flash bytes per second, smoothed. Any thread. */
uint64_t keeper_write_rate(const struct store *store);
/* Returns the innocent slots that sets have cleared, as expected, in millionths. Any thread. */
uint64_t keeper_innocent_millionths(const struct store *store);

/* These four do for the cleaner what the keeper's functions do for the keeper. Without flash no thread starts, and the
   result is FS_OK. */
void cleaner_init(struct store *store);
void cleaner_fini(struct store *store);
FS_MUST_CHECK int cleaner_start(struct store *store);
void cleaner_stop(struct store *store);
/* Does one step: writes a segment if one is due, and waits for the device. True: it wrote one. The cleaner's thread, or
   without one the caller's. */
bool cleaner_step(struct store *store);
/* Returns what holds writes back now. Where limit and ratio are both set and admission keeps the lower one, it is said to be
   the ratio. Any thread. */
enum store_hold cleaner_hold(const struct store *store);
/* Makes keeper and cleaner look at once, as memory is short. Any thread, with any lock but a leaf held. */
void cleaner_wake(struct store *store);

/* tables.c. Gives back tables of the index that no segment needs any more, and brings index_bytes up to date. To be
   called after segments have come or gone, by the cleaner and by store_open. */
void tables_tidy(struct store *store);
/* tables.c. At a start: logs which options of filters have no effect, as there are no filters, or small ones, or units. Later
   tables of the index may bring filters. */
void tables_tell_filters(const struct store *store);
/* tables.c. After a warm start, in place of tables_tidy: notes which tables there are, and their bytes. */
void tables_resume(struct store *store);
/* tables.c. Counts the bytes of that index as those of the store's, for a judgement before it is made. frugal: beside it,
   or NULL. */
void tables_account_of(struct store *store, const struct fidx *index, const struct frugal *frugal);

/* sample.c. Make and free the data of samples, if config.samples asks for them. The stripes exist; no thread runs. */
void samples_init(struct store *store);
void samples_fini(struct store *store);

/* load_filters.c. Returns the segments whose filters are still to be looked for on flash. Any thread. */
uint32_t load_filters_left(const struct store *store);
/* units.c. Returns the filter units in memory; 0 without --filter-units. Any thread. */
uint64_t units_resident(const struct store *store);

/* rebuild.c. Plans the rebuild of the index that losses_judge allows, of a fresh index and free segments. FS_OK, also
   without any segment to walk; codes of journal_read, fidx_shape_tables and seg_adopt_begin: then the index may have to be
   made anew. store_open. */
FS_MUST_CHECK int rebuild_plan(struct store *store);
/* rebuild.c. Drops the plan, if there is one. store_open and store_close. */
void rebuild_cancel(struct store *store);

#endif
