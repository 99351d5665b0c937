/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET, GAT and TOUCH under the stripe. A plain GET is called with a DRAM item or nothing: a hit on
 * flash is served from its read buffer.
 */
#include "server/store/dram/share.h"
#include "server/store/request/action_internal.h"

/*
 * So many values of the item are being sent that its references are used up: a copy takes its place, and the item goes
 * with the last of its values. Some 65,000 answers under way pay for one copy. NULL without memory.
 */
static __attribute__((cold, noinline)) struct item *item_relieved(struct action *action, struct item *item)
{
	bool candidate = item->state & ITEM_CANDIDATE;
	struct item *copy = (item_has_extra(item) ? item_new_extra : item_new)(
		action->context, item_key(item), item->key_length, item_client_flags(item), item->expiry,
		item->value_length);

	if (!copy)
		return NULL;
	item_copy_meta(copy, item);
	if (item_has_extra(item))
		*item_extra(copy) = *item_extra(item);
	memcpy(item_value(copy), item_value(item), item->value_length);
	copy->state |= item->state & ITEM_CLEAN;
	bins_disown(action->store, item, action->request->hash);
	stripe_replace(action->store, action->stripe, action->request->hash, item, copy);
	action_garbage(action, item);
	if (candidate)
		candidate_set(action->store, action->stripe, copy);
	return copy;
}

static inline __attribute__((always_inline)) void answer_with_value(struct action *action, struct item *item)
{
	struct store_value *value = &action->request->value;

	if (__builtin_expect(!item_try_ref(item), 0)) {
		item = item_relieved(action, item);
		if (!item) {
			action->request->result = STORE_NO_MEMORY;
			return;
		}
		item_ref(item);
	}
	value->data = item_value(item);
	value->length = item->value_length;
	value->client_flags = item_client_flags(item);
	value->cas = item_shown_cas(item);
	value->from_flash = false;
	value->item = item;
	value->read = NULL;
	action->request->result = STORE_HIT;
}

void answer_with_record(struct store_request *request, const struct seg_record *record)
{
	request->value = (struct store_value){ .data = record->value,
					       .length = record->value_length,
					       .client_flags = record->client_flags,
					       .cas = record->cas,
					       .from_flash = true };
	request->result = STORE_HIT;
}

/* The binary protocol answers a touch with flags and id. */
static void answer_touched(struct store_request *request, const struct item *item)
{
	request->value.client_flags = item_client_flags(item);
	request->value.cas = item_shown_cas(item);
}

static bool is_power_of_two(unsigned n)
{
	return (n & (n - 1)) == 0;
}

/* CLOCK, LRU-like or MFU-like (paper, 4.3). */
static void item_note_hit(struct action *action, struct item *item)
{
	if (action->store->config.clock_mode == FIDX_CLOCK_LRU)
		item_set_clock(item, 3);
	else if (item_clock(item) < 3)
		item_set_clock(item, item_clock(item) + 1);
}

/* Tells the classifier of a read. Only mode paper, in which items keep gaps, asks for features. */
static inline void item_tell_read(struct action *action, const struct item *item)
{
	struct clf_features features;
	bool asks = item->shape >= ITEM_GAPS;

	if (__builtin_expect(asks, 0))
		features = item_features(item);
	clf_note_read(action->store->classifier, action->request->hash, asks ? &features : NULL, action->now_ms);
}

static void item_note_read(struct action *action, struct item *item)
{
	struct store *store = action->store;

	item->state |= ITEM_FETCHED;
	item_note_hit(action, item);
	if (item->state & ITEM_CLEAN)
		ctr_add(CTR_flash_copy_hits, 1);
	if (!store->classifier) {
		item->accessed_ms = (uint32_t)action->now_ms;
		return;
	}
	clf_read(&item->accessed_ms, item_reads(item), item_gaps(item), action->now_ms);
	item_tell_read(action, item);
	if (is_power_of_two(item_reads(item)->count))
		candidate_score(store, action->stripe, action->request->hash, item);
}

static void action_note_missed(struct action *action)
{
	if (!action->store->classifier)
		return;
	clf_note_missed(action->store->classifier, action->request->hash, action->now_ms);
	share_note_missed(action->store, action->request->hash);
}

void apply_get(struct action *action, const struct current *current)
{
	if (!current->item) {
		action_note_missed(action);
		action->request->result = STORE_MISS;
		return;
	}
	item_note_read(action, current->item);
	answer_with_value(action, current->item);
}

/* ---- expiry ---------------------------------------------------------------------------------- */

/*
 * The key's object in DRAM with a new expiry, and no slot with the old one: changed in place, or by a copy while the
 * cleaner writes it. NULL without memory. The id stays, because a touch is no write.
 */
static struct item *item_touched(struct action *action, const struct current *current, uint32_t expiry)
{
	struct item *item = current->item, *copy;

	if (item && !(item->state & ITEM_PLANNED)) {
		action_disown(action, item);
		if (item->state & ITEM_CLEAN)
			copy_ends(action->store, item);
		item->expiry = expiry;
		return item;
	}
	if (item) {
		copy = item_new(action->context, item_key(item), item->key_length, item_client_flags(item), expiry,
				item->value_length);
		if (!copy)
			return NULL;
		memcpy(item_value(copy), item_value(item), item->value_length);
		item_copy_meta(copy, item);
	} else {
		if (!action_room_for(action,
				     seg_record_length(current->record->key_length, current->record->value_length)))
			return NULL;
		copy = item_from_record(action->context, current->record, current->packed_ms);
		if (!copy)
			return NULL;
		copy->expiry = expiry;
	}
	return action_put(action, current, copy, copy->cas) ? copy : NULL;
}

/* Is the expiry before the other one? 0 is never. */
static bool expiry_is_sooner(uint32_t expiry, uint32_t than)
{
	return expiry != 0 && (than == 0 || expiry < than);
}

/* No memory for the new expiry. Whatever is answered, the object doesn't live longer than the client asked for. */
static void apply_untouched(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;

	request->result = STORE_NO_MEMORY;
	if (!request->never_refused || request->op != STORE_GAT)
		return;
	if (current->item)
		answer_with_value(action, current->item);
	else
		answer_with_record(request, current->record);
	if (request->result == STORE_HIT && expiry_is_sooner(request->expiry, current_expiry(current)))
		action_remove(action, current);
}

void apply_touch(struct action *action, const struct current *current)
{
	struct item *item;

	action->request->result = STORE_MISS;
	if (!current_present(current)) {
		if (action->request->op == STORE_GAT)
			action_note_missed(action);
		return;
	}
	item = item_touched(action, current, action->request->expiry);
	if (!item) {
		apply_untouched(action, current);
		return;
	}
	action->request->result = STORE_TOUCHED;
	item->state |= ITEM_FETCHED;
	item_note_hit(action, item);
	if (action->request->op == STORE_GAT) {
		item_note_read(action, item);
		answer_with_value(action, item);
	} else {
		answer_touched(action->request, item);
	}
}

/* ---- with options ---------------------------------------------------------------------------- */

static bool request_touches(const struct store_request *request)
{
	return request->op != STORE_GET || request->options.touch;
}

/* Hit with the value, or touched with flags and id. */
static void answer_read(struct action *action, struct item *item)
{
	if (action->request->op == STORE_TOUCH) {
		action->request->result = STORE_TOUCHED;
		answer_touched(action->request, item);
	} else {
		answer_with_value(action, item);
	}
}

/* Puts an empty object where there was none. This caller has won it, and the next ones learn that another has. */
static void vivify_object(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	struct item *item = !action_room_for(action, sizeof(*item) + request->key_length)
				    ? NULL
				    : item_new_extra(action->context, request->key, request->key_length, 0, 0, 0);

	if (request->op != STORE_TOUCH)
		action_note_missed(action);
	if (!item) {
		request->result = STORE_NO_MEMORY;
		return;
	}
	item_extra(item)->marks = ITEM_WIN_SENT;
	item_extra(item)->shown_cas = options_own_cas(request);
	item->expiry = options_made(action, request_touches(request));
	if (!request->options.keep_clock)
		item->state |= ITEM_FETCHED;
	item_features_written(item, action->now_ms);
	action_note_made(action, NULL, item);
	if (!action_put(action, current, item, action->cas)) {
		request->result = STORE_NO_MEMORY;
		return;
	}
	ctr_add(CTR_total_items, 1);
	request->found.won = request->made = true;
	answer_read(action, item);
}

/* Is this caller to make the value anew? If so the object is marked with ITEM_WIN_SENT. */
static bool request_wins(const struct action *action, uint32_t expiry)
{
	const struct store_request *request = action->request;

	if (request->op == STORE_TOUCH || request->found.win_sent || request->options.uncounted)
		return false;
	return request->found.stale || options_recaches(request, expiry, action->now_seconds);
}

void apply_read_with_options(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	struct current now = *current;
	uint32_t before;

	request->result = STORE_MISS;
	if (!current_present(current)) {
		if (request->options.vivify)
			vivify_object(action, current);
		else if (request->op != STORE_TOUCH)
			action_note_missed(action);
		return;
	}
	before = current_expiry(current);
	if (request_touches(request) || now.record) {
		uint32_t expiry = request_touches(request) ? request->expiry : before;

		now = (struct current){ .item = item_touched(action, current, expiry) };
		if (now.item && request_touches(request) && !request->options.keep_clock)
			now.item->state |= ITEM_FETCHED;
		options_expires(action, expiry);
	}
	if (now.item && request_wins(action, request->options.recache_first ? before : now.item->expiry)) {
		struct item *marked = options_markable(action, &now);

		if (marked) {
			item_extra(marked)->marks |= ITEM_WIN_SENT;
			request->found.won = true;
		}
		/* Without memory the request is refused; one that has changed the expiry already is answered, and another
		   client wins. */
		if (marked || !request_touches(request))
			now.item = marked;
	}
	if (!now.item) {
		request->result = STORE_NO_MEMORY;
		return;
	}
	if (request->op == STORE_TOUCH)
		item_note_hit(action, now.item);
	else if (!request->options.keep_clock && !request->options.uncounted)
		item_note_read(action, now.item);
	answer_read(action, now.item);
}
