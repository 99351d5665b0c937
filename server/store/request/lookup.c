/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flash reads for one request.
 *
 *   lookup_start: will it be answered in time? pin every segment that a matching slot names (stripe held),
 *                 release the stripe
 *   read_next:    one aligned read for each, the youngest first, until the key is met (reads.h)
 *   on_read:      key and check compared; GET is answered from the buffer
 *   decide:       everything else: back under the stripe, is what was read still the whole truth?
 *                 then act, else read what is new, at most LOOKUP_ROUNDS_MAX times before the
 *                 stripe's commits wait
 *   give_up:      the answer can't come in time: a GET misses, a change acts as if flash had nothing, which it
 *                 makes true first
 *
 * Why a decision can trust what it read: inserts of slots that could match this key need the same
 * stripe (flashindex.h), so after the check and under the stripe no other record can be this key's.
 * Pins keep the segments from being overwritten from the lookup until each read is done.
 */
#include <sys/timerfd.h>
#include <unistd.h>

#include "server/store/request/action_internal.h"

#define LOOKUPS_IDLE_MOST 64u

static void on_read(struct store_lookup *lookup);
static void read_next(struct store_lookup *lookup);
static void give_up(struct store_lookup *lookup);

/* ---- the pool and the list of running ones --------------------------------------------------- */

/* For so many matches, of which there are none at the moment. False: no memory. */
static bool make_room(struct store_lookup *lookup, unsigned matches)
{
	struct fidx_match *match;

	if (matches <= LOOKUP_FEW || lookup->match != lookup->few)
		return true;
	match = mem_alloc(FIDX_MAX_MATCHES * sizeof(*match));
	if (match)
		lookup->match = match;
	return match != NULL;
}

static void lookup_free(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	if (lookup->match != lookup->few)
		mem_free(lookup->match);
	if (worker->free_count >= LOOKUPS_IDLE_MOST) {
		mem_free(lookup);
		return;
	}
	lookup->next = worker->free;
	worker->free = lookup;
	worker->free_count++;
}

/* Room for that many matches. NULL: no memory. */
static struct store_lookup *lookup_new(struct store_worker *worker, unsigned matches)
{
	struct store_lookup *lookup = worker->free;

	if (lookup) {
		worker->free = lookup->next;
		worker->free_count--;
	} else {
		lookup = mem_alloc(sizeof(*lookup));
	}
	if (!lookup)
		return NULL;
	memset(lookup, 0, offsetof(struct store_lookup, key));
	lookup->worker = worker;
	lookup->match = lookup->few;
	if (make_room(lookup, matches))
		return lookup;
	lookup_free(lookup);
	return NULL;
}

void lookups_fini(struct store_worker *worker)
{
	must(worker->lookups == 0);
	while (worker->free) {
		struct store_lookup *lookup = worker->free;

		worker->free = lookup->next;
		mem_free(lookup);
	}
}

static void run(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	lookup->prev = worker->newest;
	lookup->next = NULL;
	if (worker->newest)
		worker->newest->next = lookup;
	else
		worker->oldest = lookup;
	worker->newest = lookup;
	worker->lookups++;
}

static void unrun(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	if (lookup->prev)
		lookup->prev->next = lookup->next;
	else
		worker->oldest = lookup->next;
	if (lookup->next)
		lookup->next->prev = lookup->prev;
	else
		worker->newest = lookup->prev;
	worker->lookups--;
}

/* ---- those whose bytes are there already ----------------------------------------------------- */

/* done() is never called from store_execute: it is the next poll's turn. */
static void make_ready(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	lookup->ready = true;
	lookup->next_waiting = NULL;
	if (worker->ready_last)
		worker->ready_last->next_waiting = lookup;
	else
		worker->ready_first = lookup;
	worker->ready_last = lookup;
}

static struct store_lookup *take_ready(struct store_worker *worker)
{
	struct store_lookup *lookup = worker->ready_first;

	worker->ready_first = lookup->next_waiting;
	if (!worker->ready_first)
		worker->ready_last = NULL;
	lookup->ready = false;
	return lookup;
}

/* One step of each: what becomes ready meanwhile is the next poll's. */
static void poll_ready(struct store_worker *worker)
{
	struct store_lookup *last = worker->ready_last;

	while (last) {
		struct store_lookup *lookup = take_ready(worker);

		if (lookup == last)
			last = NULL;
		on_read(lookup);
	}
}

bool store_worker_has_work(const struct store_worker *worker)
{
	return worker->ready_first != NULL;
}

/* ---- pins ------------------------------------------------------------------------------------ */

static struct seg *segments_of(const struct store_lookup *lookup)
{
	return lookup->worker->context.store->segments;
}

/* Keeps those matches whose segments could be pinned; a segment that is gone took its slots along. */
static void pin_all(struct store_lookup *lookup, const struct fidx_match *match, unsigned matches,
		    const struct fidx_extent *extent)
{
	for (unsigned i = 0; i < matches; i++)
		if (seg_pin(segments_of(lookup), match[i].segment, match[i].sequence))
			lookup->match[lookup->matches++] = match[i];
	if (extent && seg_pin(segments_of(lookup), extent->segment, extent->sequence)) {
		lookup->extent = *extent;
		lookup->has_extent = true;
	}
}

static void unpin_all(struct store_lookup *lookup)
{
	for (unsigned i = 0; i < lookup->matches; i++)
		seg_unpin(segments_of(lookup), lookup->match[i].segment);
	if (lookup->has_extent)
		seg_unpin(segments_of(lookup), lookup->extent.segment);
	lookup->matches = 0;
	lookup->has_extent = false;
}

/* ---- the end of a request -------------------------------------------------------------------- */

static bool needs_value(const struct store_lookup *lookup)
{
	return request_needs_value(lookup->worker->context.store, lookup->request);
}

static void thaw(struct store_lookup *lookup, struct stripe *stripe)
{
	if (lookup->frozen) {
		must(stripe->frozen > 0);
		stripe->frozen--;
		lookup->frozen = false;
	}
}

static void count_reads(const struct store_lookup *lookup, bool found)
{
	ctr_add(found ? CTR_flash_lookups_hit : CTR_flash_lookups_miss, 1);
	ctr_add(found ? CTR_flash_reads_on_hit : CTR_flash_reads_on_miss, lookup->reads);
}

/* Answers; the lookup is no more. */
static void answer(struct store_lookup *lookup)
{
	struct store_request *request = lookup->request;
	struct store_worker *worker = lookup->worker;

	unrun(lookup);
	unpin_all(lookup);
	if (lookup->read)
		reads_leave(lookup);
	request->lookup = NULL;
	worker->pending--;
	lookup_free(lookup);
	request->done(request);
}

static struct action action_of(struct store_lookup *lookup, struct stripe *stripe)
{
	struct store_worker *worker = lookup->worker;

	return (struct action){ .context = &worker->context,
				.store = worker->context.store,
				.stripe = stripe,
				.request = lookup->request,
				.key = &lookup->key,
				.now_ms = worker->now_ms,
				.now_seconds = worker->now_seconds };
}

/* ---- GET ------------------------------------------------------------------------------------- */

static void touch_slot(struct store *store, struct store_lookup *lookup)
{
	if (lookup->extent_read)
		fidx_extent_touch(store->index, &lookup->key, lookup->extent.segment, lookup->extent.offset);
	else
		fidx_touch(store->index, &lookup->key, &lookup->match[lookup->at]);
}

/* A clean copy in DRAM: the slot stays, and any change of the copy clears it first, without knowing which it is. */
static void promote(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms)
{
	struct store_worker *worker = lookup->worker;
	struct store *store = worker->context.store;
	uint64_t hash = lookup->request->hash;
	struct stripe *stripe = store_stripe(store, hash);
	struct item *item = item_from_record(&worker->context, record, packed_ms);
	struct fidx_match match = lookup->match[lookup->at];

	if (!item)
		return;
	item->state |= ITEM_CLEAN;
	item_set_clock(item, 1);
	lock_acquire(&stripe->lock);
	if (!lookup->extent_read && !stripe_find(stripe, hash, record->key, record->key_length) &&
	    fidx_find(store->index, &lookup->key, &match)) {
		stripe_link(store, stripe, hash, item);
		item = NULL;
	}
	lock_release(&stripe->lock);
	if (item)
		item_release(&worker->context, item);
	else
		ctr_add(CTR_flash_promotions, 1);
}

static bool read_on_flash(const struct store_lookup *lookup)
{
	return lookup->extent_read ? lookup->extent.read_on_flash : lookup->match[lookup->at].read_on_flash;
}

static void get_hit(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms)
{
	struct store_request *request = lookup->request;
	struct store *store = lookup->worker->context.store;
	uint32_t expiry = record->expiry;
	bool quiet = request->extended && (request->options.keep_clock || request->options.uncounted);

	request->value = (struct store_value){ .data = record->value,
					       .length = record->value_length,
					       .client_flags = record->client_flags,
					       .cas = record->cas,
					       .from_flash = true,
					       .read = reads_pass_on(lookup) };
	request->result = STORE_HIT;
	if (request->extended)
		extended_found(request,
			       &(struct current){ .record = record,
						  .packed_ms = packed_ms,
						  .read_on_flash = read_on_flash(lookup) },
			       lookup->worker->now_seconds, lookup->worker->now_ms);
	if (!quiet) {
		touch_slot(store, lookup);
		clf_note_read(store->classifier, request->hash, NULL, record->key_length + record->value_length,
			      store_ttl(expiry, lookup->worker->now_seconds), lookup->worker->now_ms);
	}
	if (!store_proves_slots(store) && fault_fires(FAULT_store_promote))
		promote(lookup, record, packed_ms);
	count_reads(lookup, true);
	count_result(&lookup->worker->context, request, true);
	answer(lookup);
}

static void get_miss(struct store_lookup *lookup)
{
	lookup->request->result = STORE_MISS;
	clf_note_missed(lookup->worker->context.store->classifier, lookup->request->hash, lookup->worker->now_ms);
	count_reads(lookup, false);
	count_result(&lookup->worker->context, lookup->request, false);
	answer(lookup);
}

/* ---- read-modify-write ----------------------------------------------------------------------- */

static bool was_read(const struct store_lookup *lookup, const struct fidx_match *match)
{
	for (unsigned i = 0; i < lookup->matches; i++)
		if (fidx_same(&lookup->match[i], match))
			return true;
	return false;
}

/*
 * Under the stripe, DRAM lacking the key: do the slots still say what was read? found: the slot
 * of the record must be there still; otherwise every match must be among those that were read.
 */
static bool still_true(struct store *store, struct store_lookup *lookup, bool found, struct fidx_match *match,
		       unsigned *matches, struct fidx_extent *extent, bool *has_extent)
{
	if (found && !lookup->extent_read) {
		struct fidx_match own = lookup->match[lookup->at];

		if (fidx_find(store->index, &lookup->key, &own))
			return true;
	}
	flash_may_hold(store, &lookup->key, match, matches, extent, has_extent);
	bool same_extent = *has_extent && lookup->has_extent && extent->segment == lookup->extent.segment &&
			   extent->sequence == lookup->extent.sequence && extent->offset == lookup->extent.offset;
	if (found)
		return lookup->extent_read && same_extent;
	if (*has_extent && !same_extent)
		return false;
	for (unsigned i = 0; i < *matches; i++)
		if (!was_read(lookup, &match[i]))
			return false;
	return true;
}

/* Another round: what matches now is pinned and read anew. Stripe held at the call. */
static void again(struct store_lookup *lookup, struct stripe *stripe, const struct fidx_match *match, unsigned matches,
		  const struct fidx_extent *extent)
{
	bool room;

	ctr_add(CTR_flash_revalidations, 1);
	if (++lookup->rounds == LOOKUP_ROUNDS_MAX) {
		stripe->frozen++;
		lookup->frozen = true;
		ctr_add(CTR_flash_freezes, 1);
	}
	unpin_all(lookup);
	lookup->at = 0;
	lookup->extent_read = lookup->extent_done = false;
	room = make_room(lookup, matches);
	if (room)
		pin_all(lookup, match, matches, extent);
	lock_release(&stripe->lock);
	if (lookup->read)
		reads_leave(lookup);
	if (room)
		read_next(lookup);
	else
		give_up(lookup);
}

/* record: what was found on flash, NULL when every match was another key's, dead or unreadable. */
static void decide(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms)
{
	struct store_worker *worker = lookup->worker;
	struct store *store = worker->context.store;
	struct store_request *request = lookup->request;
	struct stripe *stripe = store_stripe(store, request->hash);
	struct action action = action_of(lookup, stripe);
	struct current current = { .packed_ms = packed_ms };
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;
	unsigned matches = 0;
	bool has_extent = false;

	lock_acquire(&stripe->lock);
	action_begin(&action);
	current.item = action_find(&action);
	if (record && !store_alive(store, record->expiry, record->cas, worker->now_seconds))
		record = NULL; /* flushed since it was read */
	if (!current.item) {
		bool truth = still_true(store, lookup, record != NULL, match, &matches, &extent, &has_extent);

		/* Frozen, no slot can have come; but one that the table of known collisions rejected may
		   match again, as that table forgets. What was found is enough to know then. */
		if (lookup->frozen ? !truth && !record : !truth || fault_fires(FAULT_store_revalidation_fails)) {
			if (truth) /* the fault: read the same again */
				flash_may_hold(store, &lookup->key, match, &matches, &extent, &has_extent);
			again(lookup, stripe, match, matches, has_extent ? &extent : NULL);
			for (unsigned i = 0; i < action.garbage_count; i++)
				item_release(&worker->context, action.garbage[i]);
			return;
		}
		if (truth)
			current.record = record;
		if (current.record) {
			current.read_on_flash = read_on_flash(lookup);
			action.own_extent = lookup->extent_read ? &lookup->extent : NULL;
			action.own_slot = lookup->extent_read ? NULL : &lookup->match[lookup->at];
		}
	}
	action_apply(&action, &current);
	thaw(lookup, stripe);
	lock_release(&stripe->lock);
	count_reads(lookup, current.record != NULL);
	count_result(&worker->context, request, current.record != NULL);
	action_finish(&action);
	answer(lookup);
}

/* ---- reads ----------------------------------------------------------------------------------- */

static void exhausted(struct store_lookup *lookup)
{
	if (needs_value(lookup))
		decide(lookup, NULL, 0);
	else
		get_miss(lookup);
}

static uint32_t read_segment(const struct store_lookup *lookup)
{
	return lookup->extent_read ? lookup->extent.segment : lookup->match[lookup->at].segment;
}

static uint64_t read_sequence(const struct store_lookup *lookup)
{
	return lookup->extent_read ? lookup->extent.sequence : lookup->match[lookup->at].sequence;
}

static uint64_t timeout_us(const struct store_worker *worker)
{
	return atomic_load_explicit(&worker->context.store->tuning.read_timeout_ms, memory_order_relaxed) * 1000ull;
}

static void ask(struct store_lookup *lookup, uint64_t length)
{
	struct store_worker *worker = lookup->worker;
	const struct reads_wanted wanted = { .segment = read_segment(lookup),
					     .sequence = read_sequence(lookup),
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
		make_ready(lookup);
}

static void drop_slot(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	struct stripe *stripe = store_stripe(store, lookup->key.hash);

	lock_acquire(&stripe->lock);
	if (lookup->extent_read)
		fidx_extent_remove(store->index, &lookup->key, lookup->extent.segment, lookup->extent.offset);
	else
		fidx_remove(store->index, &lookup->key, &lookup->match[lookup->at]);
	lock_release(&stripe->lock);
}

/* This place was not it. */
static void read_on(struct store_lookup *lookup)
{
	if (lookup->read)
		reads_leave(lookup);
	if (lookup->extent_read) {
		lookup->extent_read = false;
		lookup->extent_done = true;
	} else {
		lookup->at++;
	}
	read_next(lookup);
}

/* A frozen lookup has its stripe to thaw: it goes through decide. */
static bool to_be_decided(const struct store_lookup *lookup, const struct seg_record *record)
{
	return needs_value(lookup) &&
	       (lookup->frozen || !extended_unchanged(lookup->request, record->expiry, lookup->worker->now_seconds));
}

static void found(struct store_lookup *lookup, const struct seg_record *record)
{
	struct store *store = lookup->worker->context.store;
	uint64_t packed_ms = seg_written_at_ms(store->segments, read_segment(lookup));

	if (!store_alive(store, record->expiry, record->cas, lookup->worker->now_seconds)) {
		drop_slot(lookup); /* an expired or flushed flash object is dropped when met */
		read_on(lookup);
	} else if (to_be_decided(lookup, record)) {
		decide(lookup, record, packed_ms);
	} else {
		get_hit(lookup, record, packed_ms);
	}
}

static bool is_key(const struct store_request *request, const struct seg_record *record)
{
	return record->key_length == request->key_length && memcmp(record->key, request->key, request->key_length) == 0;
}

static void met_other_key(struct store_lookup *lookup, const struct seg_record *record)
{
	struct store *store = lookup->worker->context.store;

	ctr_add(CTR_false_matches, 1);
	if (!lookup->extent_read)
		fidx_learn(store->index, &lookup->match[lookup->at],
			   store_hash(store, record->key, record->key_length));
	read_on(lookup);
}

/*
 * The record is longer than what was read. Its header and key have not been checked, so that another key in it proves
 * nothing: a GET takes it for another's, which at worst is a miss; whoever must know reads all of it.
 */
static bool is_worth_the_rest(const struct store_lookup *lookup, const struct seg_record *record)
{
	return record->key_length == 0 || is_key(lookup->request, record) || needs_value(lookup);
}

static void met_short(struct store_lookup *lookup, const struct seg_record *record, uint64_t needed)
{
	if (is_worth_the_rest(lookup, record)) {
		reads_leave(lookup);
		ask(lookup, needed);
	} else {
		ctr_add(CTR_false_matches, 1); /* unchecked bytes teach nothing */
		read_on(lookup);
	}
}

static void met_corrupt(struct store_lookup *lookup)
{
	ctr_add(CTR_flash_checksum_errors, 1);
	seg_report_corrupt(segments_of(lookup), read_segment(lookup), lookup->position);
	reads_distrust(lookup->read);
	drop_slot(lookup);
	read_on(lookup);
}

/* Bytes are there: what do they hold? */
static void look(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	const struct seg_read *read = &lookup->read->read;
	struct seg_record record;
	uint64_t needed = 0;
	int result = seg_record_read(store->segments, read_segment(lookup), read_sequence(lookup), lookup->position,
				     read->bytes, read->available, &record, &needed);

	/* No such record gets a slot: the length is not to be believed. */
	if (result == FS_ESHORT && !lookup->extent_read && needed > slot_record_max(store))
		result = FS_ECORRUPT;
	if (result == FS_ESHORT && needed <= read->available)
		result = FS_ECORRUPT;
	if (result == FS_ESHORT)
		met_short(lookup, &record, needed);
	else if (result != FS_OK)
		met_corrupt(lookup);
	else if (is_key(lookup->request, &record))
		found(lookup, &record);
	else
		met_other_key(lookup, &record);
}

/* A failed read is a miss (segments counted the error); what a command answers about an absent key must be true from
   then on. */
static void met_error(struct store_lookup *lookup, int result)
{
	if (result == FS_ELATE || result == FS_EOFFLINE || result == FS_ENOMEM) {
		if (result == FS_ELATE)
			ctr_add(CTR_flash_reads_shed, 1);
		if (lookup->made)
			lookup->reads--; /* it was never sent */
		give_up(lookup);
		return;
	}
	if (needs_value(lookup))
		drop_slot(lookup);
	read_on(lookup);
}

static void on_read(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;

	if (lookup->unread) {
		give_up(lookup);
		return;
	}
	if (!lookup->extent_read)
		fidx_touch_soon(store->index, &lookup->key, &lookup->match[lookup->at]);
	if (lookup->read->read.result == FS_OK)
		look(lookup);
	else
		met_error(lookup, lookup->read->read.result);
}

void reads_done(struct store_lookup *lookup)
{
	on_read(lookup);
}

/* Where the next match leads. Extents know their key by all 64 bits of its hash: asked first, they are nearly always
   right. False: there is none left. */
static bool choose_next(struct store_lookup *lookup, uint64_t *length)
{
	struct store *store = lookup->worker->context.store;

	lookup->extent_read = lookup->has_extent && !lookup->extent_done;
	if (lookup->extent_read) {
		lookup->position = lookup->extent.offset;
		*length = lookup->extent.length;
	} else if (lookup->at < lookup->matches) {
		const struct fidx_match *match = &lookup->match[lookup->at];

		lookup->position = seg_position(store->segments, match->segment, match->place, match->function);
		*length = seg_read_length(store->segments, match->segment);
	} else {
		return false;
	}
	return true;
}

static void read_next(struct store_lookup *lookup)
{
	uint64_t length;

	if (choose_next(lookup, &length))
		ask(lookup, length);
	else
		exhausted(lookup);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* A part of the room for lookups is left to what has begun. */
static bool has_room(const struct store_worker *worker, bool begun)
{
	return worker->lookups < (begun ? worker->lookups_most : worker->lookups_most / 4 * 3);
}

/* A GET is refused sooner than a change, which would cost the object that it can't read. What others are reading, or
   have read just now, costs the drive nothing. */
static bool may_begin(const struct store_worker *worker, const struct store_request *request, bool shared)
{
	struct store_fate *fate = request->fate;
	bool begun = request_needs_value(worker->context.store, request) || (fate && fate->taken), admitted;

	if (shared)
		return has_room(worker, begun);
	if (fate && fate->refused)
		return false;
	admitted = has_room(worker, begun) && seg_reader_admits(worker->reader, begun, worker->now_us * 1000);
	if (fate) {
		fate->taken |= admitted;
		fate->refused |= !admitted && !fate->taken;
	}
	return admitted;
}

static bool is_shared(struct store_lookup *lookup)
{
	uint64_t length;

	return choose_next(lookup, &length) &&
	       !reads_would_read(&lookup->worker->reads, &(struct reads_wanted){ .segment = read_segment(lookup),
										 .sequence = read_sequence(lookup),
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
	pin_all(lookup, match, matches, extent);
	if (lookup->matches == 0 && !lookup->has_extent) {
		refused = LOOKUP_NOTHING;
	} else if (may_begin(worker, request, is_shared(lookup))) {
		lock_release(&stripe->lock);
		lookup->request = request;
		lookup->started_us = worker->now_us;
		request->lookup = lookup;
		worker->pending++;
		run(lookup);
		read_next(lookup);
		return LOOKUP_STARTED;
	} else {
		ctr_add(CTR_flash_reads_shed, 1);
	}
	unpin_all(lookup);
	lookup_free(lookup);
	return refused;
}

void store_value_release(struct store_worker *worker, struct store_value *value)
{
	if (value->item)
		item_release(&worker->context, value->item);
	else if (value->read)
		reads_release(value->read);
	*value = (struct store_value){ 0 };
}

/* ---- time-outs and the event loop ------------------------------------------------------------ */

/* What flash holds of the key won't be known in time. */
static void give_up(struct store_lookup *lookup)
{
	struct store_request *request = lookup->request;
	struct store_worker *worker = lookup->worker;
	struct stripe *stripe = store_stripe(worker->context.store, request->hash);
	struct action action = action_of(lookup, stripe);
	struct current current = { 0 };

	lock_acquire(&stripe->lock);
	action_begin(&action);
	/* A GET took effect when it looked at DRAM: what a later command of its connection has stored
	   since is not its answer. */
	if (needs_value(lookup))
		current.item = action_find(&action);
	action_unread(&action, &current);
	thaw(lookup, stripe);
	lock_release(&stripe->lock);
	count_reads(lookup, false);
	count_result(&worker->context, request, false);
	action_finish(&action);
	answer(lookup);
}

static void time_out(struct store_lookup *lookup)
{
	ctr_add(CTR_flash_read_timeouts, 1);
	if (reads_leave(lookup) && lookup->made)
		lookup->reads--;
	give_up(lookup);
}

static void arm_timer(struct store_worker *worker)
{
	uint64_t ns = timeout_us(worker) * 500;
	struct itimerspec when = { 0 };

	if (worker->timer_armed || (!worker->oldest && seg_reader_in_flight(worker->reader) == 0))
		return;
	when.it_value = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
	if (timerfd_settime(worker->timer_fd, 0, &when, NULL) == 0) {
		worker->timer_armed = true;
		worker->timer_due_us = worker->now_us + ns / 1000;
	}
}

/* What clients' requests for flash take is cache memory too. */
static void account_reads(struct store_worker *worker)
{
	uint64_t bytes =
		reads_memory(&worker->reads) + (worker->lookups + worker->free_count) * sizeof(struct store_lookup);

	if (bytes != worker->accounted_bytes) {
		atomic_fetch_add_explicit(&worker->context.store->reader_bytes, bytes - worker->accounted_bytes,
					  memory_order_relaxed);
		worker->accounted_bytes = bytes;
	}
}

void store_worker_flush(struct store_worker *worker)
{
	if (worker->reader) {
		seg_reader_set_patience(worker->reader, timeout_us(worker) * 1000);
		seg_reader_flush(worker->reader);
		arm_timer(worker);
		account_reads(worker);
	}
	context_settle(&worker->context);
}

void store_worker_poll(struct store_worker *worker)
{
	uint64_t fires;
	uint64_t limit_us = timeout_us(worker);

	if (!worker->reader)
		return;
	poll_ready(worker);
	seg_reader_poll(worker->reader);
	if (worker->timer_armed && worker->now_us >= worker->timer_due_us &&
	    read(worker->timer_fd, &fires, sizeof(fires)) == (ssize_t)sizeof(fires))
		worker->timer_armed = false;
	while (worker->oldest && !worker->oldest->ready && worker->now_us > worker->oldest->started_us + limit_us)
		time_out(worker->oldest);
}
