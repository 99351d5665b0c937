/* SPDX-License-Identifier: BSD-3-Clause */
/* Under the stripe: commands that store an object, join a piece to one, invalidate or delete it. */
#include "server/store/request/action_internal.h"

void apply_store(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	struct item *new = request->item;
	struct clf_features old;

	request->item = NULL;
	if (options_own_cas(request))
		item_extra(new)->shown_cas = request->options.new_cas;
	new->accessed_ms = (uint32_t)action->now_ms; /* its other features are 0: it is new */
	if (!action_put(action, current, new, action->cas)) {
		request->result = STORE_NO_MEMORY;
		return;
	}
	action_note_written(action, current_features(action, current, &old), new);
	ctr_add(CTR_total_items, 1);
	if (request->has_options)
		options_expires(action, new->expiry);
	request->number = new->value_length;
	request->expiry = new->expiry;
	request->result = STORE_STORED;
}

void apply_add(struct action *action, const struct current *current)
{
	if (current_present(current))
		action->request->result = STORE_NOT_STORED;
	else
		apply_store(action, current);
}

void apply_replace(struct action *action, const struct current *current)
{
	if (!current_present(current))
		action->request->result = STORE_NOT_STORED;
	else
		apply_store(action, current);
}

/* Without ids (-C) no id compares as the same. */
void apply_compared(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	uint64_t cas;

	if (!current_present(current)) {
		request->result = STORE_MISS;
		return;
	}
	cas = current_shown_cas(current);
	request->result = STORE_EXISTS;
	if (!action->store->config.cas)
		return;
	if (cas == request->cas) {
		apply_store(action, current);
	} else if (request->has_options && request->options.invalidate && cas > request->cas) {
		/* The new value comes from an older one than the present: it is stale. A client that was told to make
		   the value anew has not done so yet. */
		item_extra(request->item)->marks = ITEM_STALE | (request->found.win_sent ? ITEM_WIN_SENT : 0);
		request->item->expiry = current_expiry(current);
		apply_store(action, current);
	}
}

/* ---- append, prepend ------------------------------------------------------------------------- */

static struct item *join_piece(struct action *action, const struct current *current)
{
	const struct item *piece = action->request->item;
	bool append = action->request->op == STORE_APPEND;
	uint32_t length = current_length(current);
	struct item *joined = options_item(action, current_flags(current), current_expiry(current),
					   (uint64_t)length + piece->value_length);

	if (!joined)
		return NULL;
	memcpy(item_value(joined) + (append ? 0 : piece->value_length), current_value(current), length);
	memcpy(item_value(joined) + (append ? length : 0), item_value(action->request->item), piece->value_length);
	return joined;
}

void apply_join(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	struct item *piece = request->item, *joined;

	request->result = STORE_NOT_STORED;
	if (!current_present(current)) {
		if (request->has_options && request->options.vivify) {
			piece->expiry = request->options.vivify_expiry;
			apply_store(action, current);
		}
		return;
	}
	if (action->store->config.cas && options_differs(action, current)) {
		request->result = STORE_EXISTS;
		return;
	}
	if (store_too_large(action->store, piece->key_length,
			    (uint64_t)current_length(current) + piece->value_length)) {
		request->result = STORE_TOO_LARGE;
		return;
	}
	joined = join_piece(action, current);
	if (!joined) {
		request->result = STORE_NO_MEMORY;
		return;
	}
	action_garbage(action, piece);
	request->item = joined;
	apply_store(action, current);
}

/* ---- delete ---------------------------------------------------------------------------------- */

/* Replaces the object by one without a value; the caller gives it id and marks. */
static struct item *empty_object(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	struct clf_features old;
	struct item *item = !action_room_for(action, sizeof(*item) + request->key_length)
				    ? NULL
				    : item_new_extra(action->context, request->key, request->key_length, 0,
						     current_expiry(current), 0);

	if (!item)
		return NULL;
	item_features_written(item, action->now_ms);
	action_note_made(action, current_features(action, current, &old), item);
	if (!action_put(action, current, item, action->cas))
		return NULL;
	ctr_add(CTR_total_items, 1);
	return item;
}

/* The object stays: stale, empty, or both. */
static void invalidate_object(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	struct item *item =
		request->options.drop_value ? empty_object(action, current) : options_markable(action, current);

	if (!item) {
		request->result = STORE_NO_MEMORY;
		return;
	}
	item_set_cas(item, action->cas);
	item_extra(item)->shown_cas = options_own_cas(request);
	item_extra(item)->marks = request->options.invalidate ? ITEM_STALE : 0;
	if (request->options.touch && request->options.invalidate)
		item->expiry = request->expiry;
	options_expires(action, item->expiry);
	request->cas = item_shown_cas(item);
	request->result = STORE_DELETED;
}

/* Flash was not read: its slots may be the key's. */
static void delete_unseen_object(struct action *action)
{
	struct store_request *request = action->request;

	if (request_needs_value(action->store, request) || action_clear_slots(action) == 0)
		return;
	clf_note_deleted(action->store->classifier, request->hash, NULL, action->now_ms);
	request->met = STORE_MET_ON_FLASH;
	request->result = STORE_DELETED;
}

static void delete_object(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;

	request->result = STORE_MISS;
	if (!current_present(current)) {
		delete_unseen_object(action);
		return;
	}
	if (options_differs(action, current)) {
		request->result = STORE_EXISTS;
		return;
	}
	if (request->has_options && (request->options.invalidate || request->options.drop_value)) {
		invalidate_object(action, current);
		return;
	}
	action_remove(action, current);
	request->result = STORE_DELETED;
}

void apply_delete(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;

	delete_object(action, current);
	if (request->has_options && request->options.refused)
		request->result = request->options.refused;
}
