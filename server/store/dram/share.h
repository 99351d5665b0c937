/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The share of DRAM for clean copies, where it moves by itself (promotion.share 0, --promote-share=auto).
 *
 *   a copy is dropped for room -----> shadow "dropped" --+-- its key is read on flash: more room for copies had spared the read
 *   another object leaves DRAM -----> shadow "left"    --+-- its key is read on flash, or missed: more room for other objects
 *   (evicted, or moved to flash)                             had spared the read, or the miss
 *
 * Both sides are counted in reads of the drive, for each byte of room that would have been enough; the operator says how
 * many reads a miss is worth (miss_cost). The share is right where one more byte gains the same on either side:
 *
 *   reads of dropped ones / depth  =  (reads of ones that left + miss_cost * their misses) / depth
 *
 * A depth is the room within which a shadow's answer counts: a sixteenth of -m, and for copies at most half of their
 * share, as their first bytes are worth much more than later ones. The keeper compares both sides when enough was counted,
 * and moves the share by a factor, which depends on their ratio. (Marginal hits by shadow queues: Cliffhanger, Cidon et
 * al., NSDI 2016, 4.1.)
 *
 * Threads: share_note_* from any, with or without a key stripe; they take no lock. share_tick: the keeper. A hit in DRAM
 * calls none of them.
 */
#ifndef FS_STORE_SHARE_H
#define FS_STORE_SHARE_H

#include "server/store/dram/shadow.h"
#include "server/store/state/state.h"

struct share {
	struct shadow dropped, left;
	_Atomic uint32_t shift; /* one key in 2^shift is sampled; the keeper writes it */
	_Atomic uint64_t dropped_depth, left_depth; /* bytes of sampled keys; the keeper writes them */
	/* Of sampled keys, since the last move; any thread adds: */
	struct {
		_Atomic uint64_t dropped_reads; /* reads on flash of keys whose copy was dropped within the depth */
		_Atomic uint64_t left_reads; /* the same of other objects that had left DRAM ... */
		_Atomic uint64_t left_misses; /* ... and gets of them that missed */
	} counts;
	_Atomic bool refused; /* since the last move a copy was too large for the share; any thread */
	/* The keeper's: the counts that it has taken, older ones with less weight. */
	double dropped_reads, left_reads, left_misses;
};

/* Makes it where store->config asks for it, before other threads start; else store->share is NULL. */
void share_init(struct store *store);
void share_fini(struct store *store);

/* For the functions below, where store->share isn't NULL. */
void share_dropped(struct store *store, uint64_t hash, uint64_t bytes);
void share_left(struct store *store, uint64_t hash, uint64_t bytes);
void share_read(struct store *store, uint64_t hash);
void share_missed(struct store *store, uint64_t hash);

/* A clean copy of so many bytes was dropped for want of room. */
static inline void share_note_dropped(struct store *store, uint64_t hash, uint64_t bytes)
{
	if (store->share)
		share_dropped(store, hash, bytes);
}

/* A clean copy of so many bytes was not made, because the share is too small for it. */
static inline void share_note_refused(struct store *store, uint64_t hash, uint64_t bytes)
{
	if (store->share) {
		atomic_store_explicit(&store->share->refused, true, memory_order_relaxed);
		share_dropped(store, hash, bytes);
	}
}

/* Another object of so many bytes was evicted, or has moved to flash. */
static inline void share_note_left(struct store *store, uint64_t hash, uint64_t bytes)
{
	if (store->share)
		share_left(store, hash, bytes);
}

/* A get was answered from flash. */
static inline void share_note_read(struct store *store, uint64_t hash)
{
	if (__builtin_expect(store->share != NULL, 0))
		share_read(store, hash);
}

/* A get found nothing, in DRAM or on flash. */
static inline void share_note_missed(struct store *store, uint64_t hash)
{
	if (__builtin_expect(store->share != NULL, 0))
		share_missed(store, hash);
}

/* Moves the share, if enough was counted since it did. Once a second; the keeper. */
void share_tick(struct store *store);

#endif
