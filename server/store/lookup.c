/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flash reads for one request.
 *
 *   lookup_start: pin every segment that a matching slot names (stripe held), release the stripe
 *   read_next:    one aligned read for each, the youngest first, until the key is met
 *   on_read:      key and check compared; GET is answered from the buffer
 *   decide:       everything else: back under the stripe, is what was read still the whole truth?
 *                 then act, else read what is new, at most LOOKUP_ROUNDS_MAX times before the
 *                 stripe's commits wait
 *
 * Why a decision can trust what it read: inserts of slots that could match this key need the same
 * stripe (flashindex.h), so after the check and under the stripe no other record can be this key's.
 * Pins keep the segments from being overwritten from the lookup until each read is done.
 */
#include <sys/timerfd.h>
#include <unistd.h>

#include "server/store/action.h"

#define LOOKUPS_IDLE_MAX 256

static void read_next(struct store_lookup *lookup);

/* ---- the pool and the list of running ones --------------------------------------------------- */

static struct store_lookup *lookup_new(struct store_worker *worker)
{
	struct store_lookup *lookup = worker->free;

	if (lookup)
		worker->free = lookup->next;
	else
		lookup = mem_must_zalloc(sizeof(*lookup));
	memset(lookup, 0, offsetof(struct store_lookup, read));
	lookup->read.buffer = NULL;
	lookup->worker = worker;
	return lookup;
}

static void lookup_free(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	lookup->next = worker->free;
	worker->free = lookup;
}

static void run(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	lookup->running = true;
	lookup->prev = worker->newest;
	lookup->next = NULL;
	if (worker->newest)
		worker->newest->next = lookup;
	else
		worker->oldest = lookup;
	worker->newest = lookup;
}

static void unrun(struct store_lookup *lookup)
{
	struct store_worker *worker = lookup->worker;

	if (!lookup->running)
		return;
	lookup->running = false;
	if (lookup->prev)
		lookup->prev->next = lookup->next;
	else
		worker->oldest = lookup->next;
	if (lookup->next)
		lookup->next->prev = lookup->prev;
	else
		worker->newest = lookup->prev;
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
}

/* ---- the end of a request -------------------------------------------------------------------- */

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

/* Answers. The lookup stays with the value where that points into its buffer. */
static void answer(struct store_lookup *lookup, bool keep)
{
	struct store_request *request = lookup->request;
	struct store_worker *worker = lookup->worker;

	unrun(lookup);
	request->lookup = NULL;
	worker->pending--;
	if (!keep) {
		unpin_all(lookup);
		if (lookup->read.buffer)
			seg_read_release(worker->reader, &lookup->read);
		lookup_free(lookup);
	}
	request->done(request);
}

static struct action action_of(struct store_lookup *lookup, struct stripe *stripe)
{
	struct store_worker *worker = lookup->worker;

	return (struct action){ .context = &worker->context, .store = worker->context.store,
				.stripe = stripe, .request = lookup->request, .key = &lookup->key,
				.now_ms = worker->now_ms, .now_seconds = worker->now_seconds };
}

/* ---- GET ------------------------------------------------------------------------------------- */

static void touch_slot(struct store *store, struct store_lookup *lookup)
{
	if (lookup->extent_read)
		fidx_extent_touch(store->index, &lookup->key, lookup->extent.segment, lookup->extent.offset);
	else
		fidx_touch(store->index, &lookup->key, &lookup->match[lookup->at]);
}

/* A clean copy in DRAM: the slot stays, and any change of the copy clears it first. */
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

	request->value = (struct store_value){ .data = record->value, .length = record->value_length,
					       .client_flags = record->client_flags, .cas = record->cas,
					       .from_flash = true, .read = &lookup->read };
	request->result = STORE_HIT;
	if (request->extended)
		extended_found(request,
			       &(struct current){ .record = record, .packed_ms = packed_ms,
						  .read_on_flash = read_on_flash(lookup) },
			       lookup->worker->now_seconds, lookup->worker->now_ms);
	if (!quiet) {
		touch_slot(store, lookup);
		clf_note_read(store->classifier, request->hash, NULL, record->key_length + record->value_length,
			      store_ttl(expiry, lookup->worker->now_seconds), lookup->worker->now_ms);
	}
	if (fault_fires(FAULT_store_promote))
		promote(lookup, record, packed_ms);
	count_reads(lookup, true);
	count_result(&lookup->worker->context, request, true);
	unpin_all(lookup);
	lookup->matches = 0;
	lookup->has_extent = false;
	answer(lookup, true);
}

static void get_miss(struct store_lookup *lookup)
{
	lookup->request->result = STORE_MISS;
	clf_note_missed(lookup->worker->context.store->classifier, lookup->request->hash, lookup->worker->now_ms);
	count_reads(lookup, false);
	count_result(&lookup->worker->context, lookup->request, false);
	answer(lookup, false);
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
static bool still_true(struct store *store, struct store_lookup *lookup, bool found,
		       struct fidx_match *match, unsigned *matches, struct fidx_extent *extent, bool *has_extent)
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
static void again(struct store_lookup *lookup, struct stripe *stripe, const struct fidx_match *match,
		  unsigned matches, const struct fidx_extent *extent)
{
	struct store_worker *worker = lookup->worker;

	ctr_add(CTR_flash_revalidations, 1);
	if (++lookup->rounds == LOOKUP_ROUNDS_MAX) {
		stripe->frozen++;
		lookup->frozen = true;
		ctr_add(CTR_flash_freezes, 1);
	}
	unpin_all(lookup);
	lookup->matches = lookup->at = 0;
	lookup->has_extent = lookup->extent_read = lookup->extent_done = false;
	pin_all(lookup, match, matches, extent);
	lock_release(&stripe->lock);
	if (lookup->read.buffer)
		seg_read_release(worker->reader, &lookup->read);
	read_next(lookup);
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
		if (current.record)
			current.read_on_flash = read_on_flash(lookup);
	}
	action_apply(&action, &current);
	thaw(lookup, stripe);
	lock_release(&stripe->lock);
	count_reads(lookup, current.record != NULL);
	count_result(&worker->context, request, current.record != NULL);
	action_finish(&action);
	answer(lookup, false);
}

/* ---- reads ----------------------------------------------------------------------------------- */

static void exhausted(struct store_lookup *lookup)
{
	if (request_needs_value(lookup->request))
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

static void submit(struct store_lookup *lookup, uint64_t length)
{
	struct store_worker *worker = lookup->worker;

	lookup->read.segment = read_segment(lookup);
	lookup->read.offset = lookup->position;
	lookup->read.length = length;
	lookup->reads++;
	ctr_add(CTR_flash_reads, 1);
	seg_read_submit(worker->reader, &lookup->read);
}

/* The answer to a request whose read can't come in time has gone; the read itself holds its buffer
   and its pins until it completes. */
static void abandon(struct store_lookup *lookup)
{
	unpin_all(lookup);
	seg_read_release(lookup->worker->reader, &lookup->read);
	lookup_free(lookup);
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
	seg_read_release(lookup->worker->reader, &lookup->read);
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
	return request_needs_value(lookup->request) &&
	       (lookup->frozen ||
		!extended_unchanged(lookup->request, record->expiry, lookup->worker->now_seconds));
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
	return record->key_length == request->key_length &&
	       memcmp(record->key, request->key, request->key_length) == 0;
}

static void met_other_key(struct store_lookup *lookup, const struct seg_record *record)
{
	struct store *store = lookup->worker->context.store;

	ctr_add(CTR_false_matches, 1);
	if (!lookup->extent_read)
		fidx_learn(store->index, &lookup->key, &lookup->match[lookup->at],
			   store_hash(store, record->key, record->key_length));
	read_on(lookup);
}

static void on_read(struct seg_read *read)
{
	struct store_lookup *lookup = read->context;
	struct store *store = lookup->worker->context.store;
	struct seg_record record;
	uint64_t needed = 0;
	int result = read->result;

	ctr_add(CTR_flash_pages_read, read->pages);
	if (!lookup->request) {
		abandon(lookup);
		return;
	}
	if (!lookup->extent_read)
		fidx_touch_soon(store->index, &lookup->key, &lookup->match[lookup->at]);
	if (result == FS_OK)
		result = seg_record_read(store->segments, read_segment(lookup), read_sequence(lookup),
					 lookup->position, read->bytes, read->available, &record, &needed);
	if (result == FS_ESHORT && !lookup->extent_read && needed > slot_record_max(store))
		result = FS_ECORRUPT; /* no such record gets a slot: the length is not to be believed */
	if (result == FS_ESHORT && needed > read->available &&
	    (record.key_length == 0 || is_key(lookup->request, &record))) {
		seg_read_release(lookup->worker->reader, read);
		submit(lookup, needed); /* longer than L, or a key that straddles it */
	} else if (result == FS_ESHORT) {
		ctr_add(CTR_false_matches, 1); /* unchecked bytes teach nothing */
		read_on(lookup);
	} else if (result == FS_ECORRUPT) {
		ctr_add(CTR_flash_checksum_errors, 1);
		seg_report_corrupt(store->segments, read_segment(lookup), lookup->position);
		drop_slot(lookup);
		read_on(lookup);
	} else if (result != FS_OK) {
		/* A failed read is a miss (segments counted the error); what a command answers about
		   an absent key must be true from then on. */
		if (request_needs_value(lookup->request))
			drop_slot(lookup);
		read_on(lookup);
	} else if (is_key(lookup->request, &record)) {
		found(lookup, &record);
	} else {
		met_other_key(lookup, &record);
	}
}

/* Extents know their key by all 64 bits of its hash: asked first, they are nearly always right. */
static void read_next(struct store_lookup *lookup)
{
	struct store *store = lookup->worker->context.store;
	uint64_t length;

	if (lookup->has_extent && !lookup->extent_done) {
		lookup->extent_read = true;
		lookup->position = lookup->extent.offset;
		length = lookup->extent.length;
	} else if (lookup->at < lookup->matches) {
		const struct fidx_match *match = &lookup->match[lookup->at];

		lookup->position = seg_position(store->segments, match->segment, lookup->key.place, match->function);
		length = seg_read_length(store->segments, match->segment);
	} else {
		exhausted(lookup);
		return;
	}
	lookup->read.done = on_read;
	lookup->read.context = lookup;
	submit(lookup, length);
}

bool lookup_start(struct store_worker *worker, struct store_request *request, struct stripe *stripe,
		  const struct fidx_key *key, const struct fidx_match *match, unsigned matches,
		  const struct fidx_extent *extent)
{
	struct store_lookup *lookup = lookup_new(worker);

	pin_all(lookup, match, matches, extent);
	if (lookup->matches == 0 && !lookup->has_extent) {
		lookup_free(lookup);
		return false;
	}
	lock_release(&stripe->lock);
	lookup->request = request;
	lookup->key = *key;
	lookup->started_us = worker->now_us;
	request->lookup = lookup;
	worker->pending++;
	run(lookup);
	read_next(lookup);
	return true;
}

void store_value_release(struct store_worker *worker, struct store_value *value)
{
	if (value->item) {
		item_release(&worker->context, value->item);
	} else if (value->read) {
		struct store_lookup *lookup = value->read->context;

		seg_read_release(worker->reader, value->read);
		lookup_free(lookup);
	}
	*value = (struct store_value){ 0 };
}

/* ---- time-outs and the event loop ------------------------------------------------------------ */

static void time_out(struct store_lookup *lookup)
{
	struct store_request *request = lookup->request;
	struct store_worker *worker = lookup->worker;
	struct store *store = worker->context.store;
	struct stripe *stripe = store_stripe(store, request->hash);
	struct action action = action_of(lookup, stripe);
	struct current current = { 0 };

	ctr_add(CTR_flash_read_timeouts, 1);
	unrun(lookup);
	lock_acquire(&stripe->lock);
	action_begin(&action);
	/* A GET took effect when it looked at DRAM: what a later command of its connection has stored
	   since is not its answer. */
	if (request_needs_value(request))
		current.item = action_find(&action);
	/* What a command answers about an absent key must be true from then on. */
	if (!current.item && request_needs_value(request))
		fidx_clear(store->index, &lookup->key);
	action_apply(&action, &current);
	thaw(lookup, stripe);
	lock_release(&stripe->lock);
	count_reads(lookup, false);
	count_result(&worker->context, request, false);
	action_finish(&action);
	lookup->request = NULL;
	request->lookup = NULL;
	worker->pending--;
	request->done(request);
}

static uint32_t read_timeout_ms(const struct store_worker *worker)
{
	return atomic_load_explicit(&worker->context.store->tuning.read_timeout_ms, memory_order_relaxed);
}

static void arm_timer(struct store_worker *worker)
{
	uint64_t ns = read_timeout_ms(worker) * 500000ull;
	struct itimerspec when = { 0 };

	if (worker->timer_armed || !worker->oldest)
		return;
	when.it_value = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
	if (timerfd_settime(worker->timer_fd, 0, &when, NULL) == 0) {
		worker->timer_armed = true;
		worker->timer_due_us = worker->now_us + ns / 1000;
	}
}

/* Read buffers are cache memory too. */
static void account_buffers(struct store_worker *worker)
{
	uint64_t bytes = seg_reader_memory(worker->reader);

	if (bytes != worker->buffer_bytes) {
		atomic_fetch_add_explicit(&worker->context.store->reader_bytes, bytes - worker->buffer_bytes,
					  memory_order_relaxed);
		worker->buffer_bytes = bytes;
	}
}

void store_worker_flush(struct store_worker *worker)
{
	if (worker->reader) {
		seg_reader_flush(worker->reader);
		arm_timer(worker);
		account_buffers(worker);
	}
	context_settle(&worker->context);
}

void store_worker_poll(struct store_worker *worker)
{
	uint64_t fires;
	uint64_t limit_us = read_timeout_ms(worker) * 1000ull;

	if (!worker->reader)
		return;
	seg_reader_poll(worker->reader);
	if (worker->timer_armed && worker->now_us >= worker->timer_due_us &&
	    read(worker->timer_fd, &fires, sizeof(fires)) == (ssize_t)sizeof(fires))
		worker->timer_armed = false;
	while (worker->oldest && worker->now_us > worker->oldest->started_us + limit_us)
		time_out(worker->oldest);
}
