/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A command's effect on its key: one critical section of the key's stripe, the same code whether the object lies in
 * DRAM, was read from flash, or is not there. A change of a value or its expiry clears the key's slots before the
 * stripe is released: while flash still offers the old value nobody can see the new one, and no command is answered.
 */
#include "base/events.h"
#include "server/store/request/action_internal.h"

void action_garbage(struct action *action, struct item *item)
{
	must(action->garbage_count < sizeof(action->garbage) / sizeof(action->garbage[0]));
	action->garbage[action->garbage_count++] = item;
}

static bool action_remove_own(struct action *action)
{
	struct fidx *index = action->store->index;

	if (action->own_slot)
		return fidx_remove(index, action->key, action->own_slot);
	if (action->own_extent)
		return fidx_extent_remove(index, action->key, action->own_extent->segment, action->own_extent->offset);
	return false;
}

static unsigned action_clear_own(struct action *action)
{
	unsigned cleared;

	if (fault_fires(FAULT_store_slots_kept))
		return 0;
	if (store_proves_slots(action->store))
		return action_remove_own(action);
	cleared = fidx_clear(action->store->index, action->key);
	if (__builtin_expect(action->store->frugal != NULL, 0))
		cleared += bins_kill(action->store, action->key->hash, false);
	return cleared;
}

unsigned action_clear_slots(struct action *action)
{
	unsigned cleared;

	if (!action->key)
		return 0;
	fault_kill(FAULT_killed_at_slot_clear);
	cleared = action_clear_own(action);
	fault_kill(FAULT_killed_at_slot_clear);
	return cleared;
}

bool action_room_for(const struct action *action, size_t bytes)
{
	return action->store->config.evict || store_free_bytes(action->store) >= (int64_t)bytes;
}

bool action_put(struct action *action, const struct current *current, struct item *new, uint64_t cas)
{
	debug_must(new != current->item);
	item_set_cas(new, cas);
	if (item_clock(new) == 0)
		item_set_clock(new, 1);
	if (current->item) {
		action_disown(action, current->item); /* see the invariant in README.md */
		stripe_replace(action->store, action->stripe, action->request->hash, current->item, new);
		action_garbage(action, current->item);
	} else {
		bool linked = stripe_link(action->store, action->stripe, action->request->hash, new);

		if (__builtin_expect(!linked, 0))
			action_garbage(action, new);
		if ((linked || action->store->config.evict) && action_clear_slots(action) > 0 &&
		    action->request->met == STORE_MET_NOTHING)
			action->request->met = STORE_MET_ON_FLASH;
		if (__builtin_expect(!linked, 0))
			return false;
	}
	action->request->cas = item_shown_cas(new);
	return true;
}

void action_remove(struct action *action, const struct current *current)
{
	struct clf_features features;

	if (!current->item) {
		action_clear_slots(action);
	} else {
		action_disown(action, current->item);
		stripe_unlink(action->store, action->stripe, action->request->hash, current->item);
		action_garbage(action, current->item);
	}
	if (action->store->classifier)
		clf_note_deleted(action->store->classifier, action->request->hash,
				 current_features(action, current, &features), action->now_ms);
}

void action_note_made(struct action *action, const struct clf_features *old, struct item *item)
{
	if (action->store->classifier)
		clf_note_made(action->store->classifier, action->request->hash, old, &item->past, action->now_ms);
}

void action_note_written(struct action *action, const struct clf_features *old, struct item *item)
{
	struct store *store = action->store;

	ctr_add(CTR_app_bytes_written, item_object_bytes(item));
	if (!store->classifier)
		return;
	clf_note_written(store->classifier, action->request->hash, old, &item->past, action->now_ms);
	if (clf_get_admission(store->classifier) != CLF_ADMIT_SVM)
		candidate_score(store, action->stripe, action->request->hash, item);
}

/* ---- the table of commands ------------------------------------------------------------------- */

static void (*const COMMANDS[])(struct action *, const struct current *) = {
	[STORE_GET] = apply_get,      [STORE_GAT] = apply_touch,   [STORE_TOUCH] = apply_touch,
	[STORE_SET] = apply_store,    [STORE_ADD] = apply_add,     [STORE_REPLACE] = apply_replace,
	[STORE_CAS] = apply_compared, [STORE_APPEND] = apply_join, [STORE_PREPEND] = apply_join,
	[STORE_INCR] = apply_number,  [STORE_DECR] = apply_number, [STORE_DELETE] = apply_delete,
};

static void apply_with_options(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;

	options_found(request, current, action->now_seconds, action->now_ms);
	if (request->op == STORE_GET || request->op == STORE_GAT || request->op == STORE_TOUCH)
		apply_read_with_options(action, current);
	else if (request->options.compare_cas && (request->op == STORE_SET || request->op == STORE_REPLACE))
		apply_compared(action, current);
	else
		COMMANDS[request->op](action, current);
}

#define LOOKUP_STREAMS (1u << EVENT_FETCHERS | 1u << EVENT_DELETIONS)

/* Notes where the old object is, and its sizes. */
static void action_note_met(const struct store *store, struct store_request *request, const struct current *current)
{
	request->met = STORE_MET_NOTHING;
	if (current->item) {
		request->met = STORE_MET_IN_DRAM;
		request->class_met = (uint8_t)size_class(item_allocated_bytes(current->item));
	} else if (current->record) {
		request->met = STORE_MET_ON_FLASH;
		request->class_met = (uint8_t)size_class(record_item_bytes(store, current->record));
	}
	request->met_bytes = current_present(current) ? current_length(current) : 0;
}

/* Notes the sizes of the old and of the new object, for counts by size class and for watchers. The command comes
   after, and may take the objects away. */
static void action_note_objects(const struct store *store, struct store_request *request, const struct current *current)
{
	request->class_brought = request->class_met = 0;
	request->met = STORE_MET_UNKNOWN;
	if (request->item) {
		request->class_brought = (uint8_t)size_class(item_allocated_bytes(request->item));
		request->number = request->item->value_length;
		request->expiry = request->item->expiry;
	}
	if (request->op >= STORE_CAS || request->has_options || events_on_any(LOOKUP_STREAMS))
		action_note_met(store, request, current);
}

void action_apply(struct action *action, const struct current *current)
{
	must((unsigned)action->request->op < sizeof(COMMANDS) / sizeof(COMMANDS[0]));
	lock_assert_held(&action->stripe->lock);
	if (action->request->op != STORE_GET)
		action_note_objects(action->store, action->request, current);
	if (__builtin_expect(action->store->losses != NULL, 0) && atomic_load(&action->store->losses->rebuilding))
		losses_touch(action->store, action->key);
	if (__builtin_expect(action->request->has_options, 0))
		apply_with_options(action, current);
	else
		COMMANDS[action->request->op](action, current);
}

/* A set that was refused for a reason of its own keeps that reason. */
static enum store_result action_refusal(const struct store_request *request)
{
	return request->has_options && request->options.refused ? request->options.refused : STORE_NO_MEMORY;
}

void action_unread(struct action *action, const struct current *current)
{
	bool changes = !current->item && request_needs_value(action->store, action->request);

	if (changes && store_proves_slots(action->store)) {
		action_note_objects(action->store, action->request, current);
		action->request->result = action_refusal(action->request);
		return;
	}
	if (changes)
		action_clear_slots(action);
	action_apply(action, current);
}

/* ---- before and after ------------------------------------------------------------------------ */

static bool request_takes_id(const struct store_request *request)
{
	const struct store_options *options = &request->options;

	switch (request->op) {
	case STORE_GET:
	case STORE_GAT:
	case STORE_TOUCH:
		return request->has_options && options->vivify;
	case STORE_DELETE:
		return request->has_options && (options->invalidate || options->drop_value);
	default:
		return true;
	}
}

/* While saved objects are loaded: does the request change the key, or answer that it is absent, so that an older object
   may not come after it? A get that finds nothing promises nothing. */
static bool request_bars_saved(const struct store_request *request)
{
	return request->op != STORE_GET || (request->has_options && request->options.vivify);
}

/*
 * A write takes its id before it looks at what is there. flush_all reads the newest id and then
 * publishes it as the mark; with the id first, a write that found the old value alive either has an
 * id that the mark covers, or the mark was out when it looked. So nothing derived from a flushed
 * value survives the flush.
 */
void action_begin(struct action *action)
{
	struct changed_keys *changed = atomic_load_explicit(&action->store->changed, memory_order_relaxed);

	if (__builtin_expect(changed != NULL, 0) && request_bars_saved(action->request))
		changed_note(changed, action->request->hash);
	if (!request_takes_id(action->request))
		return;
	action->cas = store_next_cas(action->store);
	store_await_flush(action->store);
}

static void action_count_dead(const struct action *action, const struct item *item)
{
	bool flushed = item->cas <= atomic_load_explicit(&action->store->flush_cas, memory_order_acquire);

	ctr_add(flushed ? CTR_get_flushed : CTR_get_expired, 1);
}

struct item *action_find(struct action *action)
{
	struct store_request *request = action->request;
	struct item *item = stripe_find(action->stripe, request->hash, request->key, request->key_length);

	if (!item || store_alive(action->store, item->expiry, item->cas, action->now_seconds))
		return item;
	action_count_dead(action, item);
	action_disown(action, item);
	stripe_unlink(action->store, action->stripe, request->hash, item);
	action_garbage(action, item);
	return NULL;
}

void action_finish(struct action *action)
{
	struct store_request *request = action->request;

	for (unsigned i = 0; i < action->garbage_count; i++)
		item_release(action->context, action->garbage[i]);
	if (request->item) { /* the condition was not met */
		item_release(action->context, request->item);
		request->item = NULL;
	}
}
