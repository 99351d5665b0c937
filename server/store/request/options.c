/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of meta and binary commands: marks, clients' own ids, and the object that was found. Marks and such ids lie
 * in an item's extra; an object that first needs one gets it by a copy.
 */
#include "server/store/request/action_internal.h"

/* ---- room for marks -------------------------------------------------------------------------- */

static struct item *item_copy_with_extra(struct store_context *context, struct item *item)
{
	struct item *copy = item_new_extra(context, item_key(item), item->key_length, item_client_flags(item),
					   item->expiry, item->value_length);

	if (!copy)
		return NULL;
	memcpy(item_value(copy), item_value(item), item->value_length);
	item_copy_meta(copy, item);
	return copy;
}

bool options_prepare(struct store_context *context, struct store_request *request)
{
	const struct store_options *options = &request->options;
	struct item *item = request->item;

	if (!item || !(options->own_cas || (options->invalidate && options->compare_cas)))
		return true;
	request->item = item_copy_with_extra(context, item);
	item_release(context, item);
	return request->item != NULL;
}

struct item *options_item(struct action *action, uint32_t client_flags, uint32_t expiry, uint64_t length)
{
	const struct store_request *request = action->request;
	struct item *item;

	if (!action_room_for(action, length))
		return NULL;
	if (!options_own_cas(request))
		return item_new(action->context, request->key, request->key_length, client_flags, expiry, length);
	item = item_new_extra(action->context, request->key, request->key_length, client_flags, expiry, length);
	if (item)
		item_extra(item)->shown_cas = options_own_cas(request);
	return item;
}

struct item *options_markable(struct action *action, const struct current *current)
{
	struct item *item = current->item, *copy;

	if (item && item_has_extra(item) && !(item->state & (ITEM_PLANNED | ITEM_CLEAN))) {
		bins_disown(action->store, item, action->request->hash);
		candidate_clear(action->store, action->stripe, item);
		return item;
	}
	if (!action_room_for(action, current_length(current)))
		return NULL;
	if (item) {
		copy = item_copy_with_extra(action->context, item);
	} else {
		struct item *plain = item_from_record(action->context, current->record, current->packed_ms);

		copy = plain ? item_copy_with_extra(action->context, plain) : NULL;
		if (plain)
			item_release(action->context, plain);
	}
	return copy && action_put(action, current, copy, copy->cas) ? copy : NULL;
}

/* ---- ids ------------------------------------------------------------------------------------- */

bool options_differs(const struct action *action, const struct current *current)
{
	const struct store_request *request = action->request;

	if (!request->has_options || !request->options.compare_cas)
		return false;
	return request->cas != (action->store->config.cas ? current_shown_cas(current) : 0);
}

/* ---- the object found ------------------------------------------------------------------------ */

static int64_t options_seconds_left(uint32_t expiry, uint32_t now_seconds)
{
	return expiry == 0 ? -1 : (int64_t)store_ttl(expiry, now_seconds);
}

void options_found(struct store_request *request, const struct current *current, uint32_t now_seconds, uint64_t now_ms)
{
	struct store_found *found = &request->found;
	uint32_t accessed_ms;

	*found = (struct store_found){ 0 };
	request->made = false;
	if (!current_present(current))
		return;
	if (current->item) {
		accessed_ms = current->item->accessed_ms;
	} else {
		struct clf_features_packed packed;
		struct clf_features features;

		memcpy(&packed, current->record->features, sizeof(packed));
		clf_features_unpack(&packed, current->packed_ms, &features);
		accessed_ms = features.accessed_ms;
	}
	found->ttl_seconds = found->ttl_before_seconds = options_seconds_left(current_expiry(current), now_seconds);
	found->idle_seconds = item_idle_seconds(accessed_ms, now_ms);
	found->fetched = current_fetched(current);
	if (current->item && item_has_extra(current->item)) {
		found->stale = item_extra(current->item)->marks & ITEM_STALE;
		found->win_sent = item_extra(current->item)->marks & ITEM_WIN_SENT;
	}
}

uint32_t options_made(struct action *action, bool touch)
{
	struct store_request *request = action->request;
	const struct store_options *options = &request->options;
	uint32_t first = options->vivify_expiry, last = first;

	if (touch && options->vivify_last)
		first = request->expiry;
	else if (touch)
		last = request->expiry;
	options_expires(action, last);
	request->found.ttl_before_seconds = options_seconds_left(first, action->now_seconds);
	return last;
}

void options_expires(struct action *action, uint32_t expiry)
{
	action->request->found.ttl_seconds = options_seconds_left(expiry, action->now_seconds);
}

/* ---- recache --------------------------------------------------------------------------------- */

bool options_recaches(const struct store_request *request, uint32_t expiry, uint32_t now_seconds)
{
	return request->options.recache && expiry != 0 &&
	       store_ttl(expiry, now_seconds) < request->options.recache_seconds;
}

bool options_unchanged(const struct store_request *request, uint32_t expiry, uint32_t now_seconds)
{
	return request->op == STORE_GET && !request->options.touch && !options_recaches(request, expiry, now_seconds);
}
