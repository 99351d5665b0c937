/* SPDX-License-Identifier: BSD-3-Clause */
/* A request's first step: the DRAM table and the index, under the key's stripe. */
#include "server/store/request/action_internal.h"

/* ---- execution ------------------------------------------------------------------------------- */

void store_foresee(struct store_worker *worker, const uint64_t *hashes, unsigned count)
{
	struct store *store = worker->context.store;

	for (unsigned i = 0; store->index && i < count; i++) {
		struct fidx_key key;

		fidx_key_of(store->index, hashes[i], &key);
		fidx_prefetch(store->index, &key);
	}
	stripes_foresee(store, hashes, count);
}

/* DRAM lacks the key, and its stripe is held. The answers are those of lookup_start. */
static inline enum lookup_answer execute_on_flash(struct store_worker *worker, struct store_request *request,
						  struct stripe *stripe, const struct fidx_key *key)
{
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;
	unsigned matches;
	bool has_extent;

	if (!flash_may_hold(worker->context.store, key, match, &matches, &extent, &has_extent) &&
	    !bins_may_hold(worker->context.store, key->hash))
		return LOOKUP_NOTHING;
	return lookup_start(worker, request, stripe, key, match, matches, has_extent ? &extent : NULL);
}

bool store_execute(struct store_worker *worker, struct store_request *request)
{
	struct store *store = worker->context.store;
	struct stripe *stripe = store_stripe(store, request->hash);
	struct action action = { .context = &worker->context,
				 .store = store,
				 .stripe = stripe,
				 .request = request,
				 .now_ms = worker->now_ms,
				 .now_seconds = worker->now_seconds };
	struct current current = { 0 };
	struct fidx_key key;
	/* A plain GET, which most requests are, takes no id and leaves nothing behind except an object that it found
	   dead. */
	bool reads = request->op == STORE_GET && __builtin_expect(!request->has_options, 1), unread = false;

	if (__builtin_expect(request->has_options, 0) && !options_prepare(&worker->context, request)) {
		request->result = STORE_NO_MEMORY;
		request->class_brought = 0;
		request->met = STORE_MET_UNKNOWN;
		count_result(&worker->context, request, false);
		return true;
	}
	if (store->index) {
		fidx_key_of(store->index, request->hash, &key);
		action.key = &key;
	}
	lock_acquire(&stripe->lock);
	if (!reads)
		action_begin(&action);
	current.item = action_find(&action);
	if (!current.item && store->index && (request->op == STORE_GET || request_needs_value(store, request))) {
		enum lookup_answer answer = execute_on_flash(worker, request, stripe, &key);

		if (answer == LOOKUP_STARTED) {
			for (unsigned i = 0; i < action.garbage_count; i++)
				item_release(&worker->context, action.garbage[i]);
			return false;
		}
		unread = answer == LOOKUP_REFUSED;
		ctr_add(CTR_flash_lookups_miss, 1);
	}
	if (reads)
		apply_get(&action, &current);
	else if (__builtin_expect(unread, 0))
		action_unread(&action, &current);
	else
		action_apply(&action, &current);
	lock_release(&stripe->lock);
	count_result(&worker->context, request, false);
	if (request->op != STORE_GET || action.garbage_count)
		action_finish(&action);
	if (__builtin_expect(store->losses == NULL, 1))
		return true;
	request->flash_reads = 0;
	request->flash_from_ns = 0;
	return !request_park(worker, request, key.tag);
}
