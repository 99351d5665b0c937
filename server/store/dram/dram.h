/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects in DRAM, for the rooms above: items and the account of -m (memory.c), the tables of the stripes (table.c), which
 * objects are marked as candidates for flash (candidate.c), classes of sizes (classes.h), holes that are closed (compact.c).
 */
#ifndef FS_STORE_DRAM_H
#define FS_STORE_DRAM_H

#include "server/store/dram/classes.h"
#include "server/store/dram/item.h"
#include "server/store/state/state.h"

/* ---- memory.c: items and the account of -m --------------------------------------------------- */

void context_init(struct store_context *context, struct store *store, uint64_t seed);
void context_settle(struct store_context *context); /* adds its batch to the store's account */

/* A new item with one reference, not linked; NULL when the allocator fails. Takes no lock. */
struct item *item_new(struct store_context *context, const char *key, size_t key_length, uint32_t client_flags,
		      uint32_t expiry, uint64_t value_length);
/* The same with room for marks and an id of the client's, none yet. */
struct item *item_new_extra(struct store_context *context, const char *key, size_t key_length, uint32_t client_flags,
			    uint32_t expiry, uint64_t value_length);
void item_release(struct store_context *context, struct item *item);

/* The limit and what follows from it, by the configuration; what this room keeps for itself in the store. fini: no context
   is left. */
void memory_init(struct store *store);
void memory_fini(struct store *store);
/* What items may cost now: -m less everything else that it pays for. */
uint64_t store_item_budget(const struct store *store);
/* Bytes that items may still take before workers evict; negative when over. */
int64_t store_free_bytes(const struct store *store);
/* Looks at resident memory and at the allocator's holes, and sets excess_bytes. Keeper. */
void store_watch_memory(struct store *store);
/* With this limit, what items must have at the least, and do they? */
uint64_t memory_least_for_items(const struct store *store, uint64_t limit);
bool memory_suffices(const struct store *store, uint64_t limit);
uint64_t store_used_bytes(const struct store *store);
/* An object that lies on flash comes into DRAM as its record says; unlinked, NULL without memory. */
struct item *item_from_record(struct store_context *context, const struct seg_record *record, uint64_t packed_ms);

/* ---- table.c: the DRAM table of one stripe (lock held) --------------------------------------- */

int stripes_init(struct store *store);
void stripes_fini(struct store *store);
void stripes_foresee(struct store *store, const uint64_t *hashes, unsigned count); /* see store_foresee */
/* The chain of a stripe whose mask this is or was. The stripe is the tag; what chooses the chain must not depend on it
   alone. */
static inline uint32_t stripe_bucket(uint64_t hash, uint32_t mask)
{
	return (uint32_t)((hash * 0x9e3779b97f4a7c15ull) >> 32) & mask;
}
/* Keeper. Gives memory of the stripe's chains back where its objects have become few. Buckets have other numbers then: those of
   the upper half are in the lower one. */
void stripe_shrink(struct store *store, struct stripe *stripe);
struct item *stripe_find(const struct stripe *stripe, uint64_t hash, const char *key, size_t key_length);
/* Links an item that is not there. The table's reference is the one given. */
void stripe_link(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item);
/* Takes it out; the table's reference passes to the caller. */
void stripe_unlink(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item);
/* Puts new in the place of old (linked): links new, unlinks old. */
void stripe_replace(struct store *store, struct stripe *stripe, uint64_t hash, struct item *old, struct item *new);

/* ---- candidate.c: which objects in DRAM are marked for flash (lock held) --------------------- */

/* The longest record that gets a slot; longer ones are large objects, with an extent. */
uint64_t slot_record_max(const struct store *store);
unsigned item_group(const struct store *store, const struct item *item);
void candidate_set(struct store *store, struct stripe *stripe, struct item *item);
void candidate_clear(struct store *store, struct stripe *stripe, struct item *item);
/* Many at once: unmarks a candidate and adds it to sums; settle takes them off the store's, no lock held. */
struct candidate_sums {
	uint64_t bytes[GROUPS];
	int64_t count;
};
void candidate_unmark(const struct store *store, struct stripe *stripe, struct item *item, struct candidate_sums *sums);
void candidate_settle(struct store *store, struct candidate_sums *sums);
uint64_t candidate_total(const struct store *store);

/* ---- compact.c -------------------------------------------------------------------------------- */

/* compact.c: once items are within -m, the small ones are moved together, so that the memory between them is free.
   The keeper does so in steps; true: there is more to do at once. Asked for from any thread. While one is pending,
   resident memory is over its limit for no reason to evict. compaction_thin: the keeper begins one of these classes, if
   none is under way and the last one is some time ago, or it is urgent. */
void compaction_ask(struct store *store);
void compaction_thin(struct store *store, const bool sparse[MEM_CLASSES], bool urgent);
bool compaction_pending(const struct store *store);
bool keeper_compact(struct store *store, uint64_t now_ms);

#endif
