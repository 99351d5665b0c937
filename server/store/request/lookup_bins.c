/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of small objects, with the frugal index (flashindex/frugal/frugal.h). Nothing names a record there, so a lookup seeks: which
 * segment of bins, from the newest on, may have the key? It goes on as of its beginning: an object that is overwritten between two
 * of its reads answers a GET still, as it does where slots pin it.
 *
 *   seek      under the stripe: the next match in memory, or the chain record's place; pins its segment
 *   bin       one read; the key's record is there, or not, and then the search goes on below that segment
 *   chain     one read; under the stripe again, its next match, which is pinned
 *
 * The newest bin that has the key has its truth: a record that is dead there hides all older ones, and so does a bin that can't be
 * read. The slots of the key, if it has some, were read before.
 */
#include "server/store/request/lookup_internal.h"
#include "server/store/state/bins_search.h"

/* ---- seeking --------------------------------------------------------------------------------- */

void bins_begin_search(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	struct lookup_bins *bins = &lookup->bins;

	if (!store->frugal)
		return;
	must(bins->state != BINS_FOUND);
	if (bins->state == BINS_OFF)
		bins->ids_below = atomic_load_explicit(&store->cas_next, memory_order_relaxed);
	bins->state = BINS_TO_SEEK;
	bins->searched = false;
	bins->below = UINT64_MAX;
	frugal_key_of(store->frugal, lookup->key.hash, &bins->key);
	frugal_now(store->frugal, &bins->since);
}

void bins_leave(struct store_lookup *lookup)
{
	struct lookup_bins *bins = &lookup->bins;

	if (bins->state == BINS_FOUND)
		seg_unpin(lookup_segments(lookup), bins->found.segment);
	if (bins->state != BINS_OFF)
		bins->state = BINS_OVER;
}

/* Pins what was found. Fails only if the segment has gone since, and then everything older is hidden, or another chain has
   come. */
static bool bins_pin(struct store_lookup *lookup, bool chain)
{
	struct lookup_bins *bins = &lookup->bins;

	if (!seg_pin(lookup_segments(lookup), bins->found.segment, bins->found.sequence))
		return false;
	bins->state = BINS_FOUND;
	bins->chain = chain;
	return true;
}

bool bins_seek(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	struct lookup_bins *bins = &lookup->bins;
	uint64_t below = bins->below;

	if (bins->state != BINS_TO_SEEK)
		return false;
	if (below == UINT64_MAX) { /* nothing was searched yet */
		frugal_now(store->frugal, &bins->since);
		bins->below = bins->since.newest + 1; /* what comes later is no answer to this request */
	}
	bins->state = BINS_OVER;
	switch (frugal_find(store->frugal, &bins->key, below, &bins->found)) {
	case FRUGAL_MATCH:
		return bins_pin(lookup, false);
	case FRUGAL_CHAIN:
		/* A chain that was replaced between the two is dead only once this stripe was held by the cleaner. */
		return bins_pin(lookup, true);
	default:
		return false;
	}
}

bool bins_seek_locked(struct store_lookup *lookup)
{
	struct stripe *stripe;
	bool found;

	if (lookup->bins.state != BINS_TO_SEEK)
		return false;
	stripe = store_stripe(lookup->worker->context.store, lookup->key.hash);
	lock_acquire(&stripe->lock);
	found = bins_seek(lookup);
	lock_release(&stripe->lock);
	return found;
}

uint64_t bins_place(struct store_lookup *lookup, uint64_t *length)
{
	const struct lookup_bins *bins = &lookup->bins;
	struct seg_bin bin;

	must(bins->state == BINS_FOUND);
	if (bins->chain) {
		*length = bins->found.length;
		return bins->found.offset;
	}
	bin = seg_bin_of(lookup_segments(lookup), bins->found.segment, bins->key.x);
	*length = bin.bytes;
	return bin.offset;
}

/* ---- the end of a search ----------------------------------------------------------------------- */

bool bins_are_true(const struct store_lookup *lookup, bool found)
{
	const struct store *store = lookup->worker->context.store;
	const struct lookup_bins *bins = &lookup->bins;

	if (bins->state == BINS_OFF)
		return true;
	return frugal_is_true(store->frugal, &bins->key, found ? &bins->found : NULL, &bins->since);
}

void bins_note_absent(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;

	if (lookup->bins.state != BINS_OFF && lookup->bins.searched)
		frugal_note_absent(store->frugal, &lookup->bins.key);
}

void bins_note_absent_locked(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	const struct store_request *request = lookup->request;
	struct stripe *stripe;

	if (lookup->bins.state == BINS_OFF || !lookup->bins.searched)
		return;
	stripe = store_stripe(store, request->hash);
	lock_acquire(&stripe->lock);
	if (!stripe_find(stripe, request->hash, request->key, request->key_length) && bins_are_true(lookup, false))
		bins_note_absent(lookup);
	lock_release(&stripe->lock);
}

/* An object that was set later may not answer a GET: its connection may have set it. */
static bool bins_is_of_then(const struct store_lookup *lookup, uint64_t cas)
{
	return cas < lookup->bins.ids_below;
}

bool bins_has_moved(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	const struct store_request *request = lookup->request;
	const struct item *item;
	struct stripe *stripe;
	bool moved;

	if (lookup->bins.state == BINS_OFF || lookup->rounds + 1 >= LOOKUP_ROUNDS_MAX)
		return false;
	stripe = store_stripe(store, request->hash);
	lock_acquire(&stripe->lock);
	item = stripe_find(stripe, request->hash, request->key, request->key_length);
	moved = item ? item->state & ITEM_KEPT && bins_is_of_then(lookup, item->cas) : !bins_are_true(lookup, false);
	lock_release(&stripe->lock);
	return moved;
}

bool bins_is_too_new(const struct store_lookup *lookup, const struct seg_record *record)
{
	return lookup->bins.state != BINS_OFF && lookup->rounds > 0 && !bins_is_of_then(lookup, record->cas);
}

void bins_lose(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	struct lookup_bins *bins = &lookup->bins;
	struct stripe *stripe = store_stripe(store, lookup->key.hash);

	lock_acquire(&stripe->lock);
	/* Something newer of the key may have come meanwhile. */
	if (bins_are_true(lookup, !bins->chain))
		frugal_kill(store->frugal, &bins->key, true);
	lock_release(&stripe->lock);
	bins_leave(lookup);
	lookup_exhausted(lookup);
}

/* ---- what was read ----------------------------------------------------------------------------- */

static void bins_met_damage(struct store_lookup *lookup)
{
	ctr_add(CTR_flash_checksum_errors, 1);
	seg_report_corrupt(lookup_segments(lookup), lookup->bins.found.segment, lookup->position);
	reads_distrust(lookup->read);
	bins_lose(lookup);
}

/* Goes on below the segment whose bin lacks the key. */
static void bins_read_on(struct store_lookup *lookup)
{
	struct lookup_bins *bins = &lookup->bins;

	ctr_add(CTR_false_matches, 1);
	bins->below = bins->found.sequence;
	bins_leave(lookup);
	bins->state = BINS_TO_SEEK;
	reads_leave(lookup);
	lookup_read_next(lookup);
}

static void bins_look_into(struct store_lookup *lookup)
{
	const struct store_request *request = lookup->request;
	const struct seg_read *read = &lookup->read->read;
	struct lookup_bins *bins = &lookup->bins;
	struct seg_bin bin = seg_bin_of(lookup_segments(lookup), bins->found.segment, bins->key.x);
	struct seg_record record;
	uint64_t at;

	if (read->available < bin.bytes) {
		bins_met_damage(lookup);
		return;
	}
	switch (seg_bin_find(lookup_segments(lookup), bins->found.segment, bins->found.sequence, &bin, read->bytes,
			     request->key, request->key_length, &record, &at)) {
	case SEG_BIN_FOUND:
		lookup_found(lookup, &record);
		return;
	case SEG_BIN_ABSENT:
		bins_read_on(lookup);
		return;
	case SEG_BIN_EMPTY: /* nothing was ever there, or its bytes are lost, which the walk at reclaim tells */
		bins_lose(lookup);
		return;
	case SEG_BIN_DAMAGED:
		bins_met_damage(lookup);
		return;
	}
}

/* Is that the record of the key's partition, at an address as frugal_find_in asks for? */
static bool bins_read_chain(struct store_lookup *lookup, struct seg_record *out)
{
	const struct lookup_bins *bins = &lookup->bins;
	const struct seg_read *read = &lookup->read->read;
	uint64_t needed;

	return seg_record_read(lookup_segments(lookup), bins->found.segment, bins->found.sequence, bins->found.offset,
			       read->bytes, read->available, out, &needed) == FS_OK &&
	       bins_is_chain_record(out, bins->key.partition);
}

/* Under the stripe: the next match in the chain record takes its place, pinned. The chain record's pin goes. */
static enum frugal_answer bins_follow_chain(struct store_lookup *lookup, const struct seg_record *record)
{
	struct store *store = lookup->worker->context.store;
	struct stripe *stripe = store_stripe(store, lookup->key.hash);
	struct lookup_bins *bins = &lookup->bins;
	const struct frugal_found place = bins->found;
	enum frugal_answer answer;

	lock_acquire(&stripe->lock);
	answer = frugal_find_in(store->frugal, &bins->key, bins->below, &place, record->value, record->value_length,
				&bins->found);
	bins->state = answer == FRUGAL_AGAIN ? BINS_TO_SEEK : BINS_OVER;
	if (answer == FRUGAL_MATCH)
		(void)!bins_pin(lookup, false);
	if (answer == FRUGAL_DAMAGED) {
		bins->found = place;
		bins->state = BINS_FOUND;
	}
	lock_release(&stripe->lock);
	if (answer != FRUGAL_DAMAGED)
		seg_unpin(store->segments, place.segment);
	return answer;
}

static void bins_look_into_chain(struct store_lookup *lookup)
{
	struct seg_record record;

	ctr_add(CTR_frugal_chain_reads, 1);
	if (!bins_read_chain(lookup, &record) || bins_follow_chain(lookup, &record) == FRUGAL_DAMAGED) {
		bins_met_damage(lookup);
		return;
	}
	reads_leave(lookup);
	lookup_read_next(lookup);
}

void bins_look(struct store_lookup *lookup)
{
	lookup->bins.searched = true;
	if (lookup->bins.chain)
		bins_look_into_chain(lookup);
	else
		bins_look_into(lookup);
}
