/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects in DRAM, for the rooms above: items (item.h, item.c), the account of -m (memory.c), the stripes (stripes.c) and
 * their tables (table.h), candidates for flash (candidate.c), size classes (classes.h), and compaction (compact.c).
 * Nothing here does I/O.
 */
#ifndef FS_STORE_DRAM_H
#define FS_STORE_DRAM_H

#include "base/error.h"
#include "server/store/dram/classes.h"
#include "server/store/dram/item.h"
#include "server/store/dram/table.h"
#include "server/store/state/state.h"

/* ---- item.c: items ----------------------------------------------------------------------------- */

/* Adds the cost of a new item of so many bytes to the context's account. For item_make alone. */
void item_account_made(struct store_context *context, size_t bytes);
/* Frees new memory that no link can lead to. For item_has_address alone. */
FS_MUST_CHECK bool item_learn_address(struct item *item);
/* Can a link lead to this new memory? Otherwise it is freed. */
static inline bool item_has_address(struct item *item)
{
	debug_must((uintptr_t)item % 16 == 0);
	return __builtin_expect(address_is_known(item), 1) || item_learn_address(item);
}

/* Does what item_new does, for an item of this shape and of so many bytes (item_bytes). Inline, as each set makes an
   item. */
static inline struct item *item_make(struct store_context *context, enum item_shape shape, size_t bytes,
				     const char *key, size_t key_length, uint32_t client_flags, uint32_t expiry,
				     uint64_t value_length)
{
	struct item *item = mem_alloc(bytes);
	char *at;

	must(value_length <= ITEM_VALUE_MAX); /* -I, or a record's length */
	if (!item || !item_has_address(item))
		return NULL;
	*item = (struct item){ .shape = shape & 7u,
			       .key_length = (uint8_t)key_length,
			       .refs = 1,
			       .value_length = (uint32_t)value_length,
			       .expiry = expiry };
	at = item->data + item_parts_bytes[shape];
	if (shape >= ITEM_READS)
		memset(item->data, 0, sizeof(struct clf_reads));
	if (shape >= ITEM_GAPS)
		memset(item->data + sizeof(struct clf_reads), 0, sizeof(struct clf_gaps));
	if (__builtin_expect(shape_has_extra(shape), 0))
		*item_extra(item) = (struct item_extra){ 0 };
	if (shape_has_flags(shape))
		memcpy(at - sizeof(client_flags), &client_flags, sizeof(client_flags));
	memcpy(at, key, key_length);
	item_account_made(context, bytes);
	return item;
}

/* Returns a new item with one reference, not linked, its value not filled; NULL when the allocator fails. item_release
   frees it. value_length <= ITEM_VALUE_MAX. Its cost goes to the context's account. The context's thread; takes no
   lock. */
struct item *item_new(struct store_context *context, const char *key, size_t key_length, uint32_t client_flags,
		      uint32_t expiry, uint64_t value_length);
/* Returns the same with room for marks and for an id of the client's, all zero. */
struct item *item_new_extra(struct store_context *context, const char *key, size_t key_length, uint32_t client_flags,
			    uint32_t expiry, uint64_t value_length);
/* Returns the bytes of an item of the store, without extra. No lock. */
static inline size_t store_item_bytes(const struct store *store, size_t key_length, uint32_t client_flags,
				      uint64_t value_length)
{
	return item_bytes(item_shape_of(store->plain_shape, client_flags != 0, false), key_length, value_length);
}
/* Returns the bytes that an object on flash would take as an item. No lock. */
static inline size_t record_item_bytes(const struct store *store, const struct seg_record *record)
{
	return store_item_bytes(store, record->key_length, record->client_flags, record->value_length);
}
/* Drops a reference, and frees the item with the last one; it is neither linked nor planned then. The context's
   thread, with or without a stripe held. */
void item_release(struct store_context *context, struct item *item);
/* Returns an object on flash as a new item, like item_new, with the features of its record. packed_ms: when its segment
   was written. NULL without memory. */
struct item *item_from_record(struct store_context *context, const struct seg_record *record, uint64_t packed_ms);

/* ---- memory.c: the account of -m --------------------------------------------------------------- */

/* Makes a context of the calling thread. The store has its stripes by then. */
void context_init(struct store_context *context, struct store *store, uint64_t seed);
/* Adds the context's batches to the store's account. The context's thread. */
void context_settle(struct store_context *context);

/* Sets -m from the configuration, and makes this room's own data in the store. */
void memory_init(struct store *store);
/* Frees that data, when no context is left. */
void memory_fini(struct store *store);
/* Returns the bytes that items may cost now: -m without the other parts that it pays for, at least an eighth of it. Any
   thread. */
uint64_t store_item_budget(const struct store *store);
/* Returns the bytes that items may still take before workers evict; negative above the budget. Any thread. */
int64_t store_free_bytes(const struct store *store);
/* Looks at resident memory and at the allocator's holes, and sets excess_bytes. Keeper. */
void store_watch_memory(struct store *store);
/* Returns the bytes that items must have at least under this limit. */
uint64_t memory_least_for_items(const struct store *store, uint64_t limit);
/* Would items have that many bytes under this limit? */
FS_MUST_CHECK bool memory_suffices(const struct store *store, uint64_t limit);
/* Returns the sum of all parts of -m together, in bytes. Any thread. */
uint64_t store_used_bytes(const struct store *store);

/* ---- stripes.c --------------------------------------------------------------------------------- */

/* Makes all stripes, as many as -m and the tag suggest. FS_OK, or FS_ENOMEM, and then none is left. To be called before other
   threads start. */
FS_MUST_CHECK int stripes_init(struct store *store);
/* Frees stripes and items. All contexts are settled, and the table's reference of each item is its last. */
void stripes_fini(struct store *store);
/* Returns the number of linked items. Any thread, no lock. */
uint64_t store_dram_items(const struct store *store);
/* Brings stripes, lines and items of these hashes into the cache: see store_foresee. Takes each lock that is free. */
void stripes_foresee(struct store *store, const uint64_t *hashes, unsigned count);

/* ---- items whose records are in segments of bins --------------------------------------------- */

/* The item changes, or goes, by a command: a record of it that is on flash, or in the plan, doesn't count any more. Without a
   frugal index nothing is done. The stripe is held. */
static inline void bins_disown(struct store *store, struct item *item, uint64_t hash)
{
	if (__builtin_expect(store->frugal && item->state & (ITEM_PLANNED | ITEM_KEPT), 0)) {
		bins_kill(store, hash, true);
		item->state &= (uint8_t)~ITEM_KEPT;
	}
}

/* ---- copies.c: clean copies of objects on flash ---------------------------------------------- */

/* Makes the account of clean copies, and the queue by which they make room for each other within this share of -m; 0: no
   rule promotes, or the share moves by itself (share.h). Before other threads start. */
void copies_init(struct store *store, double share);
/* Returns the share now. Any thread, no lock. */
double copies_share(const struct store *store);
/* Returns the same in bytes. */
uint64_t copies_share_bytes(const struct store *store);
/* Sets the share: above 0, at most 0.5. Copies beyond it go when further ones are made. Keeper, or before other threads
   start. */
void copies_set_share(struct store *store, double share);
/* Frees both, when no item is left. */
void copies_fini(struct store *store);
/* Adds the bytes of a clean copy, or, below zero, takes them off. The stripe of the copy is held. For table.c. */
void copies_account(struct store *store, int64_t bytes);
/* Returns the bytes that clean copies cost, and their number. Any thread, no lock. */
uint64_t copies_bytes(const struct store *store);
uint64_t copies_count(const struct store *store);
/* Makes a clean copy, linked or not, an object without a slot. Stripe held. */
void copy_ends(struct store *store, struct item *item);
/* Drops copies that were not read of late until one of this cost, of the key with this hash, fits into the share. False: it
   doesn't, after a bounded search, or memory is short. No stripe is held. */
FS_MUST_CHECK bool copies_make_room(struct store_context *context, uint64_t hash, uint64_t cost);
/* Puts a copy, by its key's hash, into the queue. False: the queue is full, and there may be no such copy. The stripe may
   be held. */
FS_MUST_CHECK bool copies_note(struct store *store, uint64_t hash);

/* ---- candidate.c: marks of candidates in DRAM (the stripe's lock held, unless said otherwise) -- */

/* Returns the item's size group, GROUP_SMALL .. GROUP_LARGE. No lock. */
unsigned item_group(const struct store *store, const struct item *item);
/* Marks a linked item that is in no plan; without effect on a marked one. */
void candidate_set(struct store *store, struct stripe *stripe, struct item *item);
/* Takes the mark away; without effect on an unmarked item. */
void candidate_clear(struct store *store, struct stripe *stripe, struct item *item);
/* Sums of candidate_unmark that candidate_settle has not yet subtracted from the store's. The caller's own. */
struct candidate_sums {
	uint64_t bytes[GROUPS];
	int64_t count;
};
/* Takes the mark of a marked item away, one of many, and adds it to sums. */
void candidate_unmark(const struct store *store, struct stripe *stripe, struct item *item, struct candidate_sums *sums);
/* Subtracts sums from the store's and zeroes them. No lock. */
void candidate_settle(struct store *store, struct candidate_sums *sums);
/* Returns the bytes of all candidates' records. Any thread, no lock. candidate_by_group gives them by size group. */
uint64_t candidate_total(const struct store *store);
void candidate_by_group(const struct store *store, uint64_t out[GROUPS]);

/* ---- compact.c: small items are moved together, so that the memory between them is free -------- */

/* Asks for a pass over all classes, once items are within -m. Any thread. */
void compaction_ask(struct store *store);
/* Begins a pass over these sparse classes, if none is under way and the last one is some time ago, or it is urgent.
   Keeper. */
void compaction_thin(struct store *store, const bool sparse[MEM_CLASSES], bool urgent);
/* Is a pass that was asked for not finished? Resident memory above its limit is no reason to evict then. Any thread. */
bool compaction_pending(const struct store *store);
/* Does a step of the pass, over some thousand objects, with one stripe held at a time. True: there is more to do at
   once. Keeper. */
bool keeper_compact(struct store *store, uint64_t now_ms);

#endif
