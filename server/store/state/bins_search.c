/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/bins_search.h"

#include <string.h>

#include "base/alloc.h"

void bins_searcher_init(struct bins_searcher *searcher, struct store *store, bool cleaner)
{
	*searcher = (struct bins_searcher){ .store = store, .cleaner = cleaner };
}

void bins_searcher_fini(struct bins_searcher *searcher)
{
	mem_free(searcher->pages);
	mem_free(searcher->chain_pages);
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Makes room for so many bytes that begin anywhere in a page. */
static bool make_room(uint8_t **pages, uint64_t *room, uint64_t bytes)
{
	uint64_t needed = (bytes / SEG_PAGE + 2) * SEG_PAGE;

	if (needed <= *room)
		return true;
	mem_free(*pages);
	*pages = mem_aligned(SEG_PAGE, needed);
	*room = *pages ? needed : 0;
	return *pages != NULL;
}

bool bins_read_chain_record(struct bins_searcher *searcher, const struct frugal_found *at, uint32_t partition,
			    const struct seg_record **out)
{
	struct segments *segments = searcher->store->segments;
	struct frugal_found *had = &searcher->chain_at;
	uint64_t from, needed;
	bool read;

	*out = &searcher->chain;
	if (had->sequence == at->sequence && had->segment == at->segment && had->offset == at->offset)
		return bins_is_chain_record(&searcher->chain, partition);
	had->sequence = 0;
	if (!make_room(&searcher->chain_pages, &searcher->chain_room, at->length) ||
	    !seg_pin(segments, at->segment, at->sequence))
		return false;
	ctr_add(CTR_frugal_search_reads, 1);
	read = seg_read_now(segments, at->segment, at->offset, at->length, searcher->cleaner, searcher->chain_pages,
			    searcher->chain_room, &from) == FS_OK &&
	       seg_record_read(segments, at->segment, at->sequence, at->offset, searcher->chain_pages + from,
			       at->length, &searcher->chain, &needed) == FS_OK &&
	       bins_is_chain_record(&searcher->chain, partition);
	seg_unpin(segments, at->segment);
	if (read)
		*had = *at;
	return read;
}

/* Looks into the bin of a match. */
static enum seg_bin_says read_bin(struct bins_searcher *searcher, const struct bins_record *record, uint64_t x,
				  const struct frugal_found *match)
{
	struct segments *segments = searcher->store->segments;
	enum seg_bin_says says = SEG_BIN_DAMAGED;
	struct seg_record found;
	struct seg_bin bin;
	uint64_t from, at;

	if (!seg_pin(segments, match->segment, match->sequence))
		return SEG_BIN_DAMAGED;
	ctr_add(CTR_frugal_search_reads, 1);
	bin = seg_bin_of(segments, match->segment, x);
	searcher->bytes += bin.bytes;
	if (make_room(&searcher->pages, &searcher->room, bin.bytes) &&
	    seg_read_now(segments, match->segment, bin.offset, bin.bytes, searcher->cleaner, searcher->pages,
			 searcher->room, &from) == FS_OK)
		says = seg_bin_find(segments, match->segment, match->sequence, &bin, searcher->pages + from,
				    record->key, record->key_length, &found, &at);
	seg_unpin(segments, match->segment);
	return says;
}

/* ---- searches -------------------------------------------------------------------------------- */

/* Finds the next match below, in memory or in the chain. */
static enum frugal_answer next_match(struct bins_searcher *searcher, const struct frugal_key *key,
				     struct stripe *stripe, uint64_t below, struct frugal_found *out)
{
	struct frugal *frugal = searcher->store->frugal;
	const struct seg_record *chain;
	enum frugal_answer answer;

	do {
		struct frugal_found place;

		lock_acquire(&stripe->lock);
		answer = frugal_find(frugal, key, below, out);
		lock_release(&stripe->lock);
		if (answer != FRUGAL_CHAIN)
			return answer;
		place = *out;
		if (!bins_read_chain_record(searcher, &place, key->partition, &chain)) {
			if (seg_sequence(searcher->store->segments, place.segment) == place.sequence)
				return FRUGAL_DAMAGED;
			answer = FRUGAL_AGAIN; /* its segment is gone, and the chain was replaced before */
			continue;
		}
		lock_acquire(&stripe->lock);
		answer = frugal_find_in(frugal, key, below, &place, chain->value, chain->value_length, out);
		lock_release(&stripe->lock);
	} while (answer == FRUGAL_AGAIN);
	return answer;
}

bool bins_is_current(struct bins_searcher *searcher, const struct bins_record *record, struct frugal_since *since)
{
	struct store *store = searcher->store;
	struct stripe *stripe = store_stripe(store, record->hash);
	uint64_t below = UINT64_MAX;
	struct frugal_found found;
	struct frugal_key key;

	frugal_key_of(store->frugal, record->hash, &key);
	lock_acquire(&stripe->lock);
	frugal_now(store->frugal, since);
	lock_release(&stripe->lock);
	for (;;) {
		if (next_match(searcher, &key, stripe, below, &found) != FRUGAL_MATCH ||
		    found.sequence < record->sequence)
			return false;
		if (found.sequence == record->sequence)
			return true;
		if (read_bin(searcher, record, key.x, &found) != SEG_BIN_ABSENT)
			return false;
		below = found.sequence;
	}
}
