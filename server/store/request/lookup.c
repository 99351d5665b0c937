/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flash reads for one request.
 *
 *   lookup_start: will the drive answer in time? If so, pins every segment that a matching slot names (stripe held),
 *                 and releases the stripe
 *   read_next:    one aligned read for each match, the youngest first, until the key is met (reads_internal.h)
 *   on_read:      compares key and check; answers a GET from the buffer
 *   decide:       for everything else: back under the stripe, is the record read still the whole truth? Then acts; else
 *                 reads the new matches, at most LOOKUP_ROUNDS_MAX times before commits pass the stripe by
 *   give_up:      the answer can't come in time: a GET misses; a change first clears the key's slots, and then acts as
 *                 if flash had nothing
 *
 * Why a decision can trust the record: an insert of a slot that could match this key needs the same stripe
 * (flashindex.h), so after the check and under the stripe no other record can be this key's. Pins keep the segments
 * from being overwritten from the lookup until each read is done.
 */
#include "server/store/request/lookup_internal.h"
#include "server/store/state/sizing.h"

/* ---- reads ----------------------------------------------------------------------------------- */

static void lookup_ask(struct store_lookup *lookup, uint64_t length)
{
	struct store_worker *worker = lookup->worker;
	const struct reads_wanted wanted = { .segment = lookup_segment(lookup),
					     .sequence = lookup_sequence(lookup),
					     .offset = lookup->position,
					     .length = length,
					     .expires_ns = (lookup->started_us + timeout_us(worker)) * 1000 };
	enum reads_answer answer = reads_ask(&worker->reads, lookup, &wanted, &lookup->made);

	if (answer == READS_NONE)
		lookup->unread = true;
	else if (lookup->made)
		lookup->reads++;
	else
		ctr_add(CTR_flash_reads_shared, 1);
	if (answer != READS_WAIT)
		lookup_make_ready(lookup);
}

static void lookup_drop_slot(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	struct stripe *stripe = store_stripe(store, lookup->key.hash);

	lock_acquire(&stripe->lock);
	if (lookup->what == LOOKUP_EXTENT)
		fidx_extent_remove(store->index, &lookup->key, lookup->extent.segment, lookup->extent.offset);
	else
		fidx_remove(store->index, &lookup->key, lookup_match(lookup));
	lock_release(&stripe->lock);
}

/* The record is not the key's: goes on with the next match. */
static void lookup_read_on(struct store_lookup *lookup)
{
	if (lookup->read)
		reads_leave(lookup);
	if (lookup->what == LOOKUP_EXTENT)
		lookup->extent_done = true;
	else
		lookup->at++;
	lookup_read_next(lookup);
}

/* A frozen lookup goes through decide, because it has to thaw its stripe. */
static bool lookup_to_be_decided(const struct store_lookup *lookup, const struct seg_record *record)
{
	return lookup_needs_value(lookup) &&
	       (lookup->frozen || !options_unchanged(lookup->request, record->expiry, lookup->worker->now_seconds));
}

void lookup_found(struct store_lookup *lookup, const struct seg_record *record)
{
	struct store *store = lookup->worker->context.store;
	uint64_t packed_ms = seg_written_at_ms(store->segments, lookup_segment(lookup));

	if (!store_alive(store, record->expiry, record->cas, lookup->worker->now_seconds)) {
		if (lookup_in_bins(lookup)) { /* nothing older counts */
			bins_leave(lookup);
			lookup_exhausted(lookup);
			return;
		}
		lookup_drop_slot(lookup); /* an expired or flushed flash object is dropped when met */
		lookup_read_on(lookup);
	} else if (!lookup_needs_value(lookup) && bins_is_too_new(lookup, record)) {
		lookup_miss(lookup);
	} else if (lookup_to_be_decided(lookup, record)) {
		lookup_decide(lookup, record, packed_ms);
	} else {
		lookup_hit(lookup, record, packed_ms);
	}
}

static bool lookup_is_key(const struct store_request *request, const struct seg_record *record)
{
	return record->key_length == request->key_length && memcmp(record->key, request->key, request->key_length) == 0;
}

static void lookup_met_other_key(struct store_lookup *lookup, const struct seg_record *record)
{
	struct store *store = lookup->worker->context.store;

	ctr_add(CTR_false_matches, 1);
	if (lookup->what == LOOKUP_SLOT) {
		fidx_learn(store->index, lookup_match(lookup), store_hash(store, record->key, record->key_length));
		fidx_note_warm(store->index, &lookup->key);
	}
	lookup_read_on(lookup);
}

/*
 * The record is longer than the bytes read. Its header and key are unchecked, so a different key in them proves
 * nothing: a GET takes the record for another key's, at worst a miss; a request that must know reads all of it.
 */
static bool lookup_is_worth_the_rest(const struct store_lookup *lookup, const struct seg_record *record)
{
	return record->key_length == 0 || lookup_is_key(lookup->request, record) || lookup_needs_value(lookup);
}

static void lookup_met_short(struct store_lookup *lookup, const struct seg_record *record, uint64_t needed)
{
	if (lookup_is_worth_the_rest(lookup, record)) {
		reads_leave(lookup);
		lookup_ask(lookup, needed);
	} else {
		ctr_add(CTR_false_matches, 1); /* unchecked bytes teach nothing */
		lookup_read_on(lookup);
	}
}

static void lookup_met_corrupt(struct store_lookup *lookup)
{
	ctr_add(CTR_flash_checksum_errors, 1);
	seg_report_corrupt(lookup_segments(lookup), lookup_segment(lookup), lookup->position);
	reads_distrust(lookup->read);
	lookup_drop_slot(lookup);
	lookup_read_on(lookup);
}

/* Bytes are there: looks at their record. */
static void lookup_look(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	const struct seg_read *read = &lookup->read->read;
	struct seg_record record;
	uint64_t needed = 0;
	int result = seg_record_read(store->segments, lookup_segment(lookup), lookup_sequence(lookup), lookup->position,
				     read->bytes, read->available, &record, &needed);

	/* A record of this length gets no slot: the length is wrong. */
	if (result == FS_ESHORT && lookup->what == LOOKUP_SLOT && needed > store->slot_record_bytes)
		result = FS_ECORRUPT;
	if (result == FS_ESHORT && needed <= read->available)
		result = FS_ECORRUPT;
	if (result == FS_ESHORT)
		lookup_met_short(lookup, &record, needed);
	else if (result != FS_OK)
		lookup_met_corrupt(lookup);
	else if (lookup_is_key(lookup->request, &record))
		lookup_found(lookup, &record);
	else
		lookup_met_other_key(lookup, &record);
}

/* A failed read is a miss (segments counted the error), and the object goes: a bad block would fail each further get as
   well, and a command's answer about an absent key must be true from then on. */
static void lookup_met_error(struct store_lookup *lookup, int result)
{
	if (result == FS_ELATE || result == FS_EOFFLINE || result == FS_ENOMEM) {
		if (result == FS_ELATE)
			ctr_add(CTR_flash_reads_shed, 1);
		if (lookup->made)
			lookup_uncount_read(lookup); /* it was never sent */
		lookup_give_up(lookup);
		return;
	}
	if (lookup_in_bins(lookup)) {
		bins_lose(lookup);
		return;
	}
	lookup_drop_slot(lookup);
	lookup_read_on(lookup);
}

void lookup_on_read(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;

	must(lookup->magic == LOOKUP_MAGIC && lookup->worker->magic == WORKER_MAGIC);
	must(lookup->running && !lookup->ready && !lookup->waits);
	if (lookup->unread) {
		lookup_give_up(lookup);
		return;
	}
	lookup_note_times(lookup, lookup->read->read.answered_ns);
	if (lookup->made)
		lookup->pages += lookup->read->read.pages;
	if (lookup->what == LOOKUP_SLOT)
		fidx_touch_soon(store->index, &lookup->key, lookup_match(lookup));
	if (lookup->read->read.result == FS_OK)
		lookup_in_bins(lookup) ? bins_look(lookup) : lookup_look(lookup);
	else
		lookup_met_error(lookup, lookup->read->read.result);
}

void reads_done(struct store_lookup *lookup)
{
	lookup_on_read(lookup);
}

/* Fills position and length of what is to be read next. An extent comes first: it knows all 64 bits of its key's hash
   and is nearly always right. Bins come last. False: nothing is known that is left. */
static bool lookup_choose_next(struct store_lookup *lookup, uint64_t *length)
{
	struct store *store = lookup->worker->context.store;

	lookup->what = LOOKUP_SLOT;
	if (lookup->has_extent && !lookup->extent_done) {
		lookup->what = LOOKUP_EXTENT;
		lookup->position = lookup->extent.offset;
		*length = lookup->extent.length;
	} else if (lookup->at < lookup->matches) {
		const struct fidx_match *match = lookup_match(lookup);

		lookup->position = seg_position(store->segments, match->segment, match->place, match->function);
		*length = seg_read_length(store->segments, match->segment, lookup->position);
	} else if (lookup->bins.state == BINS_FOUND) {
		lookup->what = lookup->bins.chain ? LOOKUP_CHAIN : LOOKUP_BIN;
		lookup->position = bins_place(lookup, length);
	} else {
		return false;
	}
	return true;
}

void lookup_exhausted(struct store_lookup *lookup)
{
	if (lookup_needs_value(lookup) || bins_has_moved(lookup)) {
		lookup_decide(lookup, NULL, 0);
		return;
	}
	bins_note_absent_locked(lookup);
	lookup_miss(lookup);
}

void lookup_read_next(struct store_lookup *lookup)
{
	uint64_t length;

	if (lookup_choose_next(lookup, &length) || (bins_seek_locked(lookup) && lookup_choose_next(lookup, &length)))
		lookup_ask(lookup, length);
	else
		lookup_exhausted(lookup);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* A quarter of the room for lookups is for commands that have begun. */
static bool lookup_has_room(const struct store_worker *worker, bool begun)
{
	return worker->lookups < (begun ? worker->lookups_most : worker->lookups_most / 4 * 3);
}

/* A GET is refused sooner than a change, because a change that is refused costs the object. A record that other
   lookups are reading, or have just read, costs the drive nothing. */
static bool lookup_may_begin(const struct store_worker *worker, const struct store_request *request, bool shared)
{
	struct store_fate *fate = request->fate;
	bool begun = request_needs_value(worker->context.store, request) || (fate && fate->taken), admitted;

	if (shared)
		return lookup_has_room(worker, begun);
	if (fate && fate->refused)
		return false;
	admitted = lookup_has_room(worker, begun) && seg_reader_admits(worker->reader, begun, worker->now_us * 1000);
	if (fate) {
		fate->taken |= admitted;
		fate->refused |= !admitted && !fate->taken;
	}
	return admitted;
}

static bool lookup_is_shared(struct store_lookup *lookup)
{
	uint64_t length;

	return lookup_choose_next(lookup, &length) &&
	       !reads_would_read(&lookup->worker->reads, &(struct reads_wanted){ .segment = lookup_segment(lookup),
										 .sequence = lookup_sequence(lookup),
										 .offset = lookup->position,
										 .length = length });
}

enum lookup_answer lookup_start(struct store_worker *worker, struct store_request *request, struct stripe *stripe,
				const struct fidx_key *key, const struct fidx_match *match, unsigned matches,
				const struct fidx_extent *extent)
{
	struct store_lookup *lookup = seg_offline(worker->context.store->segments) ? NULL : lookup_new(worker, matches);
	enum lookup_answer refused = LOOKUP_REFUSED;

	if (!lookup)
		return LOOKUP_REFUSED;
	lookup->key = *key;
	lookup_pin(lookup, match, matches, extent);
	bins_begin_search(lookup);
	if (lookup->matches == 0 && !lookup->has_extent && !bins_seek(lookup)) {
		refused = LOOKUP_NOTHING;
	} else if (lookup_may_begin(worker, request, lookup_is_shared(lookup))) {
		lock_release(&stripe->lock);
		lookup->request = request;
		lookup->started_us = worker->now_us;
		request->lookup = lookup;
		worker->pending++;
		lookup_run(lookup);
		lookup_read_next(lookup);
		return LOOKUP_STARTED;
	} else {
		ctr_add(CTR_flash_reads_shed, 1);
	}
	lookup_unpin(lookup);
	lookup_free(lookup);
	return refused;
}
