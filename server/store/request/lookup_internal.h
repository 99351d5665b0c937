/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lookup under way. The files that carry it out share it: lookup.c (reads), lookup_pool.c (memory and lists),
 * lookup_end.c (answers), promote.c. Everything here belongs to the worker's thread. No stripe is held at a call
 * unless a comment says so, and nothing waits for the device.
 */
#ifndef FS_STORE_LOOKUP_INTERNAL_H
#define FS_STORE_LOOKUP_INTERNAL_H

#include "server/store/request/action_internal.h"

/* Returns the store's segments. */
static inline struct segments *lookup_segments(const struct store_lookup *lookup)
{
	return lookup->worker->context.store->segments;
}

/* Returns the match that is being read, where it is a slot's. */
static inline struct fidx_match *lookup_match(struct store_lookup *lookup)
{
	must(lookup->what == LOOKUP_SLOT && lookup->at < lookup->matches);
	return &lookup->match[lookup->at];
}

/* Does it read in a segment of bins, or in the chain? */
static inline bool lookup_in_bins(const struct store_lookup *lookup)
{
	return lookup->what >= LOOKUP_BIN;
}

/* Return the segment that is being read, and its sequence number. */
static inline uint32_t lookup_segment(struct store_lookup *lookup)
{
	return lookup->what == LOOKUP_EXTENT ? lookup->extent.segment
	       : lookup_in_bins(lookup)      ? lookup->bins.found.segment
					     : lookup_match(lookup)->segment;
}

static inline uint64_t lookup_sequence(struct store_lookup *lookup)
{
	return lookup->what == LOOKUP_EXTENT ? lookup->extent.sequence
	       : lookup_in_bins(lookup)      ? lookup->bins.found.sequence
					     : lookup_match(lookup)->sequence;
}

/* Returns request_needs_value of the lookup's request. */
static inline bool lookup_needs_value(const struct store_lookup *lookup)
{
	return request_needs_value(lookup->worker->context.store, lookup->request);
}

/* Takes the lookup's read back out of its count, as the read was never sent. */
static inline void lookup_uncount_read(struct store_lookup *lookup)
{
	must(lookup->reads > 0);
	lookup->reads--;
}

/* Notes when the drive got the read that the lookup waits for, and that it was answered at to_ns. */
static inline void lookup_note_times(struct store_lookup *lookup, uint64_t to_ns)
{
	if (lookup->from_ns == 0)
		lookup->from_ns = lookup->read->read.sent_ns;
	lookup->to_ns = to_ns;
}

/* Returns how long a request may wait for flash, in us: --flash-read-timeout. */
static inline uint64_t timeout_us(const struct store_worker *worker)
{
	return atomic_load_explicit(&worker->context.store->tuning.read_timeout_ms, memory_order_relaxed) * 1000ull;
}

/* ---- lookup_pool.c --------------------------------------------------------------------------- */

/* Returns a lookup without matches, with room for so many. NULL: no memory. The stripe may be held. */
struct store_lookup *lookup_new(struct store_worker *worker, unsigned matches);
/* Gives a lookup back to the pool. It is in no list, and has neither pins nor a read. The stripe may be held. */
void lookup_free(struct store_lookup *lookup);
/* Makes room for so many matches in a lookup that has none at the moment. False: no memory. The stripe may be held. */
FS_MUST_CHECK bool lookup_make_room(struct store_lookup *lookup, unsigned matches);
/* Put a lookup into the worker's list of running lookups, as the newest, and take it out again. */
void lookup_run(struct store_lookup *lookup);
void lookup_unrun(struct store_lookup *lookup);
/* lookup_make_ready notes that a running lookup's bytes are there already: the worker's next poll looks at them.
   lookup_take_ready takes the first such lookup, of which there is one at least, off the list. */
void lookup_make_ready(struct store_lookup *lookup);
struct store_lookup *lookup_take_ready(struct store_worker *worker);

/* ---- lookup.c -------------------------------------------------------------------------------- */

/* Goes on after the read that the lookup waited for is done, or could not be begun. May answer the request and free the
   lookup. */
void lookup_on_read(struct store_lookup *lookup);
/* Reads the record of the next match; after the last match answers the request and frees the lookup. */
void lookup_read_next(struct store_lookup *lookup);
/* Nothing is left to be read: answers the request, or begins another round, and may free the lookup. */
void lookup_exhausted(struct store_lookup *lookup);
/* The key's record was read: answers the request by it, or, if it has expired or was flushed, goes on. */
void lookup_found(struct store_lookup *lookup, const struct seg_record *record);

/* ---- lookup_bins.c --------------------------------------------------------------------------- */

/* Sets out to search the segments of bins, from the newest one on, where there is a frugal index. */
void bins_begin_search(struct store_lookup *lookup);
/* Finds the next bin or chain record to be read, and pins its segment. False: there is none any more. The stripe is held. */
FS_MUST_CHECK bool bins_seek(struct store_lookup *lookup);
/* The same; takes the stripe. */
FS_MUST_CHECK bool bins_seek_locked(struct store_lookup *lookup);
/* Gives the pin back, and ends the search. The stripe may be held. */
void bins_leave(struct store_lookup *lookup);
/* Returns the offset of what is to be read, and its length. */
uint64_t bins_place(struct store_lookup *lookup, uint64_t *length);
/* Looks at the bytes that were read: goes on with the lookup. */
void bins_look(struct store_lookup *lookup);
/* The bytes can't be read, or are damaged: nothing on flash counts as the key's any more, if they might have had it. */
void bins_lose(struct store_lookup *lookup);
/* Is what the search has come to still true? found: its record. The stripe is held, and DRAM lacks the key. */
FS_MUST_CHECK bool bins_are_true(const struct store_lookup *lookup, bool found);
/* Of a GET whose search was in vain: has its object left the place in which it was, for DRAM or a newer segment, before that was
   pinned? No matter how often it does so, true only a few times. Takes the stripe. */
FS_MUST_CHECK bool bins_has_moved(struct store_lookup *lookup);
/* Of a GET that has searched again: was this record's object set since it looked at DRAM first? */
FS_MUST_CHECK bool bins_is_too_new(const struct store_lookup *lookup, const struct seg_record *record);
/* The key was searched in vain: if that cost reads and is true, notes it for the next search. The first one is called under the
   stripe, where DRAM lacks the key; the other one takes the stripe. */
void bins_note_absent(struct store_lookup *lookup);
void bins_note_absent_locked(struct store_lookup *lookup);

/* ---- lookup_end.c ---------------------------------------------------------------------------- */

/* Pins the segments of the matches, and keeps the matches whose segments it could pin: a segment that is gone took its
   slots along. The lookup has no pins before. extent may be NULL. The stripe is held, so that no slot appears
   meanwhile. */
void lookup_pin(struct store_lookup *lookup, const struct fidx_match *match, unsigned matches,
		const struct fidx_extent *extent);
/* Gives all pins back; the lookup has no matches then. The stripe may be held. */
void lookup_unpin(struct store_lookup *lookup);
/* Each of these answers the request, calls its done, and frees the lookup; decide may begin another round of reads
   instead. decide and give_up take the stripe. record: the key's record on flash, packed_ms: when its segment was
   written; NULL: every match was another key's, dead or unreadable. */
void lookup_hit(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms);
void lookup_miss(struct store_lookup *lookup);
void lookup_decide(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms);
/* Ends a lookup whose key can't be read from flash in time: a GET misses, a change acts as action_unread says. */
void lookup_give_up(struct store_lookup *lookup);

/* ---- promote.c ------------------------------------------------------------------------------- */

/* Makes the sketch of a worker with flash, if the rule needs one. */
void promote_init(struct store_worker *worker);
/* Notes that a GET is answered from flash, unless it is quiet, and asks the rule: is the object to get a clean copy? was_read: it
   was read on flash before. A fault point asks for a copy too. */
bool promote_wants(struct store_lookup *lookup, bool quiet, bool was_read);
/* Makes a clean copy of the record in DRAM, if the key has no object there, the slot that led to the record is still there,
   and the share of copies has room or can make some. Takes stripes, one at a time. */
void lookup_promote(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms);

#endif
