/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frugal index of a store (flashindex/frugal/frugal.h), with --index=frugal: small objects lie in segments of bins and have no slot.
 * Larger ones have slots or extents, and where segments of both kinds are, a key's record is valid in at most one of them.
 * What a change of a key must do is one step (action_clear_slots), whichever the index.
 */
#ifndef FS_STORE_BINS_H
#define FS_STORE_BINS_H

#include "server/store/state/sizing.h"
#include "server/store/state/state.h"

/* The longest record in bytes that lies in a bin: a longer one costs little for a slot, and would leave gaps. */
#define BINS_RECORD_MOST 1024u

/* Does the index go with the other options? FS_OK; FS_ERANGE: with the reason. */
FS_MUST_CHECK int bins_judge_options(const struct store *store, char reason[256]);
/* Fills in store->frugal_config, for store->hash_seed, and small_max. */
void bins_configure(struct store *store, const struct sizing *sizing);
/* Fills in the address space that the index wants in the region, where the store has it. After bins_configure. */
void bins_region_most(const struct store *store, uint64_t most[REGION_AREAS]);
/* Makes an empty one, where the store is to have one, in place of any that it has. FS_OK, FS_ENOMEM. */
FS_MUST_CHECK int bins_create(struct store *store);
/*
 * Returns the sequences of all segments, 0 for one that isn't LIVE, and behind them those of the segments with slots alone: what
 * the two indexes are loaded by. NULL: memory is out. The caller frees them. Before other threads run.
 */
FS_MUST_CHECK uint64_t *bins_sequences(const struct store *store, uint32_t segments);
/* Frees its handle, and the memory of its area, for one that is made in its place. */
void bins_empty(struct store *store);
/* Gives up the merge that is under way, if there is one. The cleaner, or the only thread. */
void bins_cancel_merge(struct store *store);
/* Frees its handle, if there is one. */
void bins_destroy(struct store *store);
/*
 * Which objects were read while on flash, for rules that don't ask for the worth of an object again at reclaim, and for
 * --promote=second: a bit for each record of a segment, by the key's hash, so that keys may share one. After a start nothing counts as read.
 */
/* Makes the bits of a segment with so many records, before it is written: a walk may pin it as soon as it is LIVE. Without memory it has
   none. The cleaner. */
void bins_note_reads(struct store *store, uint32_t segment, uint64_t records);
/* Frees them, when no reader has the segment pinned. Without effect where there are none. The cleaner. */
void bins_forget_reads(struct store *store, uint32_t segment);
/* The key was read there. Any thread that has pinned the segment. */
void bins_set_read(struct store *store, uint32_t segment, uint64_t hash);
/* Was a key with this bit read there? Called likewise, or by the cleaner. */
FS_MUST_CHECK bool bins_was_read(const struct store *store, uint32_t segment, uint64_t hash);

/* Once there are stripes, and before other threads run: readers of the index are waited for from now on. */
void bins_begin(struct store *store);

#endif
