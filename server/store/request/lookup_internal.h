/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lookup under way, and what the files that carry it out share: lookup.c (reads), lookup_pool.c (its memory and lists),
 * lookup_end.c (answers), promote.c. All of it belongs to the worker's thread; no stripe is held at a call unless it says so.
 */
#ifndef FS_STORE_LOOKUP_INTERNAL_H
#define FS_STORE_LOOKUP_INTERNAL_H

#include "server/store/request/action_internal.h"

static inline struct seg *lookup_segments(const struct store_lookup *lookup)
{
	return lookup->worker->context.store->segments;
}

/* The match that is being read, where it is no extent. */
static inline struct fidx_match *lookup_match(struct store_lookup *lookup)
{
	must(lookup->at < lookup->matches);
	return &lookup->match[lookup->at];
}

/* The segment that is being read, and its sequence number. */
static inline uint32_t lookup_segment(struct store_lookup *lookup)
{
	return lookup->extent_read ? lookup->extent.segment : lookup_match(lookup)->segment;
}

static inline uint64_t lookup_sequence(struct store_lookup *lookup)
{
	return lookup->extent_read ? lookup->extent.sequence : lookup_match(lookup)->sequence;
}

static inline bool lookup_needs_value(const struct store_lookup *lookup)
{
	return request_needs_value(lookup->worker->context.store, lookup->request);
}

/* The read that the lookup began was never sent. */
static inline void lookup_uncount_read(struct store_lookup *lookup)
{
	must(lookup->reads > 0);
	lookup->reads--;
}

/* How long a request may wait for flash: --flash-read-timeout. */
static inline uint64_t timeout_us(const struct store_worker *worker)
{
	return atomic_load_explicit(&worker->context.store->tuning.read_timeout_ms, memory_order_relaxed) * 1000ull;
}

/* ---- lookup_pool.c --------------------------------------------------------------------------- */

/* A lookup with room for that many matches, of which it has none yet. NULL: no memory. */
struct store_lookup *lookup_new(struct store_worker *worker, unsigned matches);
void lookup_free(struct store_lookup *lookup);
/* Room for so many matches in a lookup that has none at the moment. False: no memory. */
bool lookup_make_room(struct store_lookup *lookup, unsigned matches);
/* Into the worker's list of running lookups, and out of it. */
void lookup_run(struct store_lookup *lookup);
void lookup_unrun(struct store_lookup *lookup);
/* The lookup's bytes are there already: the worker's next poll looks at them. take: the first of these; there is one. */
void lookup_make_ready(struct store_lookup *lookup);
struct store_lookup *lookup_take_ready(struct store_worker *worker);

/* ---- lookup.c -------------------------------------------------------------------------------- */

/* The read that the lookup waits for is done, or could not be begun. */
void lookup_on_read(struct store_lookup *lookup);
/* Reads where the next match leads; after the last match the lookup ends. */
void lookup_read_next(struct store_lookup *lookup);

/* ---- lookup_end.c ---------------------------------------------------------------------------- */

/* Keeps those matches whose segments could be pinned: a segment that is gone took its slots along. extent may be NULL. */
void lookup_pin(struct store_lookup *lookup, const struct fidx_match *match, unsigned matches,
		const struct fidx_extent *extent);
void lookup_unpin(struct store_lookup *lookup);
/* Each of these answers the request and frees the lookup; decide may begin another round of reads instead.
   record: what was found on flash; NULL: every match was another key's, dead or unreadable. */
void lookup_hit(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms);
void lookup_miss(struct store_lookup *lookup);
void lookup_decide(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms);
/* What flash holds of the key won't be known in time. */
void lookup_give_up(struct store_lookup *lookup);

/* ---- promote.c ------------------------------------------------------------------------------- */

#ifdef FS_FAULTS
/* Makes a clean copy of the record in DRAM, if the key has no object there. */
void lookup_promote(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms);
#endif

#endif
