/* SPDX-License-Identifier: BSD-3-Clause */
/* A request's first step: the DRAM table and the index, under the key's stripe. */
#include "server/store/store_internal.h"

/* SET and GET know what to do without the stored value: a SET clears, a GET is served from the
   read buffer. Everything else must have read what flash holds. */
bool op_needs_value(enum store_op op)
{
	return op != STORE_SET && op != STORE_GET;
}

bool flash_may_hold(struct store *store, const struct fidx_key *key, struct fidx_match *match,
		    unsigned *matches, struct fidx_extent *extent, bool *has_extent)
{
	*matches = fidx_lookup(store->index, key, match);
	*has_extent = fidx_extent_find(store->index, key, extent);
	return *matches > 0 || *has_extent;
}

/* hits, misses and commands, as memcached counts them. */
struct op_counters {
	enum ctr command, hit, miss;
};

static const struct op_counters OP_COUNTERS[] = {
	[STORE_GET] = { CTR_cmd_get, CTR_get_hits, CTR_get_misses },
	[STORE_GAT] = { CTR_cmd_touch, CTR_touch_hits, CTR_touch_misses },
	[STORE_SET] = { CTR_cmd_set, CTR_COUNT, CTR_COUNT },
	[STORE_ADD] = { CTR_cmd_set, CTR_COUNT, CTR_COUNT },
	[STORE_REPLACE] = { CTR_cmd_set, CTR_COUNT, CTR_COUNT },
	[STORE_APPEND] = { CTR_cmd_set, CTR_COUNT, CTR_COUNT },
	[STORE_PREPEND] = { CTR_cmd_set, CTR_COUNT, CTR_COUNT },
	[STORE_CAS] = { CTR_cmd_set, CTR_cas_hits, CTR_cas_misses },
	[STORE_INCR] = { CTR_COUNT, CTR_incr_hits, CTR_incr_misses },
	[STORE_DECR] = { CTR_COUNT, CTR_decr_hits, CTR_decr_misses },
	[STORE_DELETE] = { CTR_COUNT, CTR_delete_hits, CTR_delete_misses },
	[STORE_TOUCH] = { CTR_cmd_touch, CTR_touch_hits, CTR_touch_misses },
};

static void count(enum ctr counter)
{
	if (counter != CTR_COUNT)
		ctr_add(counter, 1);
}

void count_result(const struct store_request *request, bool from_flash)
{
	const struct op_counters *counters = &OP_COUNTERS[request->op];

	count(counters->command);
	if (request->op == STORE_GAT)
		ctr_add(CTR_cmd_get, 1);
	switch (request->result) {
	case STORE_MISS:
		count(counters->miss);
		if (request->op == STORE_GAT)
			ctr_add(CTR_get_misses, 1);
		break;
	case STORE_HIT:
		if (request->op == STORE_GET)
			ctr_add(from_flash ? CTR_flash_hits : CTR_dram_hits, 1);
		if (request->op == STORE_GAT)
			ctr_add(CTR_get_hits, 1);
		count(counters->hit);
		break;
	case STORE_DELETED:
	case STORE_TOUCHED:
	case STORE_STORED:
		count(counters->hit);
		break;
	case STORE_EXISTS:
		ctr_add(CTR_cas_badval, 1);
		break;
	default:
		break;
	}
}

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

bool store_execute(struct store_worker *worker, struct store_request *request)
{
	struct store *store = worker->context.store;
	struct stripe *stripe = store_stripe(store, request->hash);
	struct action action = { .context = &worker->context, .store = store, .stripe = stripe,
				 .request = request, .now_ms = worker->now_ms,
				 .now_seconds = worker->now_seconds };
	struct current current = { 0 };
	struct fidx_key key;
	bool changes = request->op != STORE_GET;

	if (store->index) {
		fidx_key_of(store->index, request->hash, &key);
		action.key = &key;
	}
	lock_acquire(&stripe->lock);
	action_begin(&action);
	current.item = action_find(&action);
	if (!current.item && store->index && request->op != STORE_SET) {
		struct fidx_match match[FIDX_MAX_MATCHES];
		struct fidx_extent extent;
		unsigned matches;
		bool has_extent;

		if (flash_may_hold(store, &key, match, &matches, &extent, &has_extent) &&
		    lookup_start(worker, request, stripe, &key, match, matches, has_extent ? &extent : NULL)) {
			for (unsigned i = 0; i < action.garbage_count; i++)
				item_release(&worker->context, action.garbage[i]);
			return false;
		}
		ctr_add(CTR_flash_lookups_miss, 1);
	}
	action_apply(&action, &current);
	lock_release(&stripe->lock);
	count_result(request, false);
	if (changes || action.garbage_count)
		action_finish(&action);
	return true;
}

void store_invalidate(struct store_worker *worker, const char *key_text, size_t key_length)
{
	struct store *store = worker->context.store;
	uint64_t hash = store_hash(store, key_text, key_length);
	struct stripe *stripe = store_stripe(store, hash);
	struct fidx_key key;
	struct item *item;

	if (store->index)
		fidx_key_of(store->index, hash, &key);
	lock_acquire(&stripe->lock);
	item = stripe_find(stripe, hash, key_text, key_length);
	if (item)
		stripe_unlink(store, stripe, hash, item);
	if (store->index)
		fidx_clear(store->index, &key);
	lock_release(&stripe->lock);
	if (store->classifier)
		clf_note_deleted(store->classifier, hash, worker->now_ms);
	if (item)
		item_release(&worker->context, item);
}
