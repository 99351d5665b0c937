/* SPDX-License-Identifier: BSD-3-Clause */
/* The ends of a lookup: a GET is answered from the read buffer, everything else is decided under the stripe, and a
   request that flash can't answer in time is given up. */
#include "server/store/dram/share.h"
#include "server/store/request/lookup_internal.h"
#include "server/store/state/bins.h"

#define SMALL_RECORD 1024u /* bytes: of records below, most pages of a read are others' */

/* ---- pins ------------------------------------------------------------------------------------ */

void lookup_pin(struct store_lookup *lookup, const struct fidx_match *match, unsigned matches,
		const struct fidx_extent *extent)
{
	must(lookup->matches == 0 && !lookup->has_extent);
	must(matches <= LOOKUP_FEW || lookup->match != lookup->few);
	for (unsigned i = 0; i < matches; i++)
		if (seg_pin(lookup_segments(lookup), match[i].segment, match[i].sequence))
			lookup->match[lookup->matches++] = match[i];
	if (extent && seg_pin(lookup_segments(lookup), extent->segment, extent->sequence)) {
		lookup->extent = *extent;
		lookup->has_extent = true;
	}
}

void lookup_unpin(struct store_lookup *lookup)
{
	must(lookup->at <= lookup->matches);
	for (unsigned i = 0; i < lookup->matches; i++)
		seg_unpin(lookup_segments(lookup), lookup->match[i].segment);
	if (lookup->has_extent)
		seg_unpin(lookup_segments(lookup), lookup->extent.segment);
	lookup->matches = 0;
	lookup->has_extent = false;
	bins_leave(lookup);
}

/* ---- the end of a request -------------------------------------------------------------------- */

static void lookup_thaw(struct store_lookup *lookup, struct stripe *stripe)
{
	if (lookup->frozen) {
		lock_assert_held(&stripe->lock);
		must(stripe->frozen > 0);
		stripe->frozen--;
		lookup->frozen = false;
	}
}

static void lookup_count_reads(const struct store_lookup *lookup, bool found)
{
	ctr_add(found ? CTR_flash_lookups_hit : CTR_flash_lookups_miss, 1);
	ctr_add(found ? CTR_flash_reads_on_hit : CTR_flash_reads_on_miss, lookup->reads);
}

/* Answers the request and frees the lookup. */
static void lookup_end(struct store_lookup *lookup)
{
	struct store_request *request = lookup->request;
	struct store_worker *worker = lookup->worker;
	uint32_t tag = lookup->key.tag;

	lookup_unrun(lookup);
	lookup_unpin(lookup);
	if (lookup->read)
		reads_leave(lookup);
	must(request->lookup == lookup && worker->pending > 0);
	request->lookup = NULL;
	request->flash_from_ns = lookup->from_ns ? lookup->from_ns : UINT64_MAX;
	request->flash_to_ns = lookup->to_ns;
	request->flash_reads = lookup->reads < UINT8_MAX ? (uint8_t)lookup->reads : UINT8_MAX;
	worker->pending--;
	lookup_free(lookup);
	if (__builtin_expect(worker->context.store->losses == NULL, 1) || !request_park(worker, request, tag))
		request->done(request);
}

static struct action lookup_action(struct store_lookup *lookup, struct stripe *stripe)
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

static void lookup_touch_slot(struct store *store, struct store_lookup *lookup)
{
	if (lookup_in_bins(lookup)) {
		bins_set_read(store, lookup_segment(lookup), lookup->key.hash);
		return;
	}
	if (lookup->what == LOOKUP_EXTENT)
		fidx_extent_touch(store->index, &lookup->key, lookup->extent.segment, lookup->extent.offset);
	else
		fidx_touch(store->index, &lookup->key, lookup_match(lookup));
	fidx_note_warm(store->index, &lookup->key);
}

static bool lookup_was_read_on_flash(struct store_lookup *lookup)
{
	if (lookup_in_bins(lookup))
		return bins_was_read(lookup->worker->context.store, lookup_segment(lookup), lookup->key.hash);
	return lookup->what == LOOKUP_EXTENT ? lookup->extent.read_on_flash : lookup_match(lookup)->read_on_flash;
}

void lookup_hit(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms)
{
	struct store_request *request = lookup->request;
	struct store *store = lookup->worker->context.store;
	bool quiet = request->has_options && (request->options.keep_clock || request->options.uncounted);
	bool was_read = lookup_was_read_on_flash(lookup);

	answer_with_record(request, record);
	request->value.read = reads_pass_on(lookup);
	if (request->has_options)
		options_found(request,
			      &(struct current){ .record = record, .packed_ms = packed_ms, .read_on_flash = was_read },
			      lookup->worker->now_seconds, lookup->worker->now_ms);
	if (!quiet) {
		lookup_touch_slot(store, lookup);
		clf_note_read_on_flash(store->classifier, request->hash, lookup->worker->now_ms);
		share_note_read(store, request->hash);
	}
	if (promote_wants(lookup, quiet, was_read))
		lookup_promote(lookup, record, packed_ms);
	lookup_count_reads(lookup, true);
	if (lookup->reads > 0 && seg_record_length(record->key_length, record->value_length) < SMALL_RECORD) {
		ctr_add(CTR_flash_small_hits, 1);
		ctr_add(CTR_flash_small_pages_read, lookup->pages);
	}
	count_result(&lookup->worker->context, request, true);
	lookup_end(lookup);
}

void lookup_miss(struct store_lookup *lookup)
{
	lookup->request->result = STORE_MISS;
	share_note_missed(lookup->worker->context.store, lookup->request->hash);
	clf_note_missed(lookup->worker->context.store->classifier, lookup->request->hash, lookup->worker->now_ms);
	lookup_count_reads(lookup, false);
	count_result(&lookup->worker->context, lookup->request, false);
	lookup_end(lookup);
}

/* ---- read-modify-write ----------------------------------------------------------------------- */

static bool lookup_has_read(const struct store_lookup *lookup, const struct fidx_match *match)
{
	for (unsigned i = 0; i < lookup->matches; i++)
		if (fidx_same(&lookup->match[i], match))
			return true;
	return false;
}

/*
 * Under the stripe, with DRAM lacking the key: is the result of the reads still true? found: the slot of the record
 * must be there still; otherwise every present match must be one that was read.
 */
static bool lookup_still_true(struct store *store, struct store_lookup *lookup, bool found, struct fidx_match *match,
			      unsigned *matches, struct fidx_extent *extent, bool *has_extent)
{
	if (found && lookup_in_bins(lookup)) {
		if (bins_are_true(lookup, true))
			return true;
		flash_may_hold(store, &lookup->key, match, matches, extent, has_extent);
		return false;
	}
	if (found && lookup->what == LOOKUP_SLOT) {
		struct fidx_match own = *lookup_match(lookup);

		if (fidx_find(store->index, &lookup->key, &own))
			return true;
	}
	flash_may_hold(store, &lookup->key, match, matches, extent, has_extent);
	bool same_extent = *has_extent && lookup->has_extent && extent->segment == lookup->extent.segment &&
			   extent->sequence == lookup->extent.sequence && extent->offset == lookup->extent.offset;
	if (found)
		return lookup->what == LOOKUP_EXTENT && same_extent;
	if (*has_extent && !same_extent)
		return false;
	for (unsigned i = 0; i < *matches; i++)
		if (!lookup_has_read(lookup, &match[i]))
			return false;
	return bins_are_true(lookup, false);
}

/* Another round: pins the present matches and reads anew. The stripe is held at the call, and released. */
static void lookup_read_anew(struct store_lookup *lookup, struct stripe *stripe, const struct fidx_match *match,
			     unsigned matches, const struct fidx_extent *extent)
{
	bool room;

	ctr_add(CTR_flash_revalidations, 1);
	if (++lookup->rounds == LOOKUP_ROUNDS_MAX) {
		must(!lookup->frozen);
		lock_assert_held(&stripe->lock);
		stripe->frozen++;
		lookup->frozen = true;
		ctr_add(CTR_flash_freezes, 1);
	}
	lookup_unpin(lookup);
	lookup->at = 0;
	lookup->extent_done = false;
	room = lookup_make_room(lookup, matches);
	if (room) {
		lookup_pin(lookup, match, matches, extent);
		bins_begin_search(lookup);
	}
	lock_release(&stripe->lock);
	if (lookup->read)
		reads_leave(lookup);
	if (room)
		lookup_read_next(lookup);
	else
		lookup_give_up(lookup);
}

void lookup_decide(struct store_lookup *lookup, const struct seg_record *record, uint64_t packed_ms)
{
	struct store_worker *worker = lookup->worker;
	struct store *store = worker->context.store;
	struct store_request *request = lookup->request;
	struct stripe *stripe = store_stripe(store, request->hash);
	struct action action = lookup_action(lookup, stripe);
	struct current current = { .packed_ms = packed_ms };
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;
	unsigned matches = 0;
	bool has_extent = false, has_own = record != NULL;

	lock_acquire(&stripe->lock);
	action_begin(&action);
	current.item = action_find(&action);
	if (record && !store_alive(store, record->expiry, record->cas, worker->now_seconds))
		record = NULL; /* flushed since it was read; its slot is there all the same */
	if (!current.item) {
		bool truth = lookup_still_true(store, lookup, record != NULL, match, &matches, &extent, &has_extent);

		/* No slot can have come to a frozen stripe; but the table of known collisions forgets, so a slot that
		   it rejected may match again. Then a record that was found is enough. Of bins nothing is forgotten. */
		bool enough = lookup->frozen && record && !lookup_in_bins(lookup);

		if ((!truth && !enough) || (!lookup->frozen && fault_fires(FAULT_store_revalidation_fails))) {
			if (truth) /* the fault point: read the same again */
				flash_may_hold(store, &lookup->key, match, &matches, &extent, &has_extent);
			lookup_read_anew(lookup, stripe, match, matches, has_extent ? &extent : NULL);
			for (unsigned i = 0; i < action.garbage_count; i++)
				item_release(&worker->context, action.garbage[i]);
			return;
		}
		if (truth)
			current.record = record;
		if (truth && has_own) {
			action.own_extent = lookup->what == LOOKUP_EXTENT ? &lookup->extent : NULL;
			action.own_slot = lookup->what == LOOKUP_SLOT ? lookup_match(lookup) : NULL;
		}
		if (current.record)
			current.read_on_flash = lookup_was_read_on_flash(lookup);
		else if (truth)
			bins_note_absent(lookup);
	}
	action_apply(&action, &current);
	lookup_thaw(lookup, stripe);
	lock_release(&stripe->lock);
	if (request->op == STORE_GAT && request->result == STORE_HIT && request->value.from_flash)
		request->value.read = reads_pass_on(lookup);
	lookup_count_reads(lookup, current.record != NULL);
	count_result(&worker->context, request, current.record != NULL);
	action_finish(&action);
	lookup_end(lookup);
}

/* ---- too late --------------------------------------------------------------------------------- */

void lookup_give_up(struct store_lookup *lookup)
{
	struct store_request *request = lookup->request;
	struct store_worker *worker = lookup->worker;
	struct stripe *stripe = store_stripe(worker->context.store, request->hash);
	struct action action = lookup_action(lookup, stripe);
	struct current current = { 0 };

	lock_acquire(&stripe->lock);
	action_begin(&action);
	/* A plain GET took effect when it looked at DRAM: an object that a later command of its connection has stored
	   since is not its answer. */
	if (lookup_needs_value(lookup))
		current.item = action_find(&action);
	action_unread(&action, &current);
	lookup_thaw(lookup, stripe);
	lock_release(&stripe->lock);
	lookup_count_reads(lookup, false);
	count_result(&worker->context, request, false);
	action_finish(&action);
	lookup_end(lookup);
}
