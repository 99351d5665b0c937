/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a command does to its key: one critical section of the key's stripe, the same code whether
 * the object lies in DRAM, was read from flash, or is not there. Whatever changes a value or its
 * expiry clears the key's slots before the stripe is released: nobody can see the new value, and
 * no command is answered, while flash still offers the old one (DESIGN section 4).
 */
#include "server/store/store_internal.h"

#define NUMBER_DIGITS_MAX 20 /* of 2^64 - 1 */

static uint32_t record_expiry(const struct current *current)
{
	return current->item ? current->item->expiry : current->record->expiry;
}

static bool present(const struct current *current)
{
	return current->item || current->record;
}

static void garbage(struct action *action, struct item *item)
{
	must(action->garbage_count < 2);
	action->garbage[action->garbage_count++] = item;
}

static void clear_slots(struct action *action)
{
	if (action->key)
		fidx_clear(action->store->index, action->key);
}

struct item *item_from_record(struct store_context *context, const struct seg_record *record,
			      uint64_t packed_ms)
{
	struct item *item = item_new(context, record->key, record->key_length, record->client_flags,
				     record->expiry, record->value_length);
	struct clf_features_packed packed;

	if (!item)
		return NULL;
	memcpy(item_value(item), record->value, record->value_length);
	memcpy(&packed, record->features, sizeof(packed));
	clf_features_unpack(&packed, packed_ms, &item->features);
	item->cas = record->cas;
	if (record->item_flags & 1)
		item->state |= ITEM_FETCHED;
	return item;
}

/* What a command itself brings into DRAM: under -M only while there is room, as nothing would ever
   evict it. Elsewhere the cleaner or the next set makes room. */
static bool room_for(const struct action *action, size_t bytes)
{
	return action->store->config.evict || store_free_bytes(action->store) >= (int64_t)bytes;
}

/* Links new as the key's value with a new id; whatever was there before is gone from both tiers. */
static void put(struct action *action, const struct current *current, struct item *new, uint64_t cas)
{
	new->cas = cas;
	if (item_clock(new) == 0)
		item_set_clock(new, 1);
	if (current->item) {
		bool clean = current->item->state & ITEM_CLEAN;

		if (clean) /* a changed object has no slot: see the invariant in README.md */
			clear_slots(action);
		stripe_replace(action->store, action->stripe, action->request->hash, current->item, new);
		garbage(action, current->item);
	} else {
		clear_slots(action);
		stripe_link(action->store, action->stripe, action->request->hash, new);
	}
	action->request->cas = cas;
}

static void note_written(struct action *action, struct item *item)
{
	struct store *store = action->store;

	ctr_add(CTR_app_bytes_written, item_object_bytes(item));
	if (!store->classifier)
		return;
	clf_note_written(store->classifier, action->request->hash, &item->features, item_object_bytes(item),
			 store_ttl(item->expiry, action->now_seconds), action->now_ms);
	if (store->config.admission != CLF_ADMIT_SVM || item->features.history_short || item->features.history_long)
		candidate_score(store, action->stripe, action->request->hash, item, action->now_seconds);
}

/* SET and what ends like it. The object is the request's, taken over. */
static void store_new(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	struct item *new = request->item;

	request->item = NULL;
	clf_features_written(&new->features, action->now_ms);
	put(action, current, new, action->cas);
	note_written(action, new);
	ctr_add(CTR_total_items, 1);
	request->result = STORE_STORED;
}

/* ---- reads ----------------------------------------------------------------------------------- */

static void give_value(struct action *action, struct item *item)
{
	struct store_value *value = &action->request->value;

	item_ref(item);
	value->data = item_value(item);
	value->length = item->value_length;
	value->client_flags = item_client_flags(item);
	value->cas = item->cas;
	value->from_flash = false;
	value->item = item;
	value->read = NULL;
	action->request->result = STORE_HIT;
}

static bool power_of_two(unsigned n)
{
	return (n & (n - 1)) == 0;
}

/* CLOCK, LRU-like or MFU-like (paper, 4.3). */
static void note_hit(struct action *action, struct item *item)
{
	if (action->store->config.clock_mode == FIDX_CLOCK_LRU)
		item_set_clock(item, 3);
	else if (item_clock(item) < 3)
		item_set_clock(item, item_clock(item) + 1);
}

static void note_read(struct action *action, struct item *item)
{
	struct store *store = action->store;

	item->state |= ITEM_FETCHED;
	note_hit(action, item);
	clf_features_read(&item->features, action->now_ms);
	if (!store->classifier)
		return;
	clf_note_read(store->classifier, action->request->hash, &item->features, item_object_bytes(item),
		      store_ttl(item->expiry, action->now_seconds), action->now_ms);
	if (power_of_two(item->features.reads))
		candidate_score(store, action->stripe, action->request->hash, item, action->now_seconds);
}

/* GET is called with a DRAM item or nothing: a hit on flash is served from its read buffer. */
static void apply_get(struct action *action, const struct current *current)
{
	if (!current->item) {
		if (action->store->classifier)
			clf_note_missed(action->store->classifier, action->request->hash, action->now_ms);
		action->request->result = STORE_MISS;
		return;
	}
	note_read(action, current->item);
	give_value(action, current->item);
}

/* ---- expiry ---------------------------------------------------------------------------------- */

/*
 * The key's object in DRAM with a new expiry, changed so that nothing old is left: in place where
 * the cleaner isn't writing it, else by a copy. NULL without memory. The id stays, as touching is
 * no write.
 */
static struct item *touched(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	struct item *item = current->item, *copy;

	if (item && !(item->state & ITEM_PLANNED)) {
		if (item->state & ITEM_CLEAN) {
			clear_slots(action);
			item->state &= (uint8_t)~ITEM_CLEAN;
		}
		item->expiry = request->expiry;
		return item;
	}
	if (item) {
		copy = item_new(action->context, item_key(item), item->key_length, item_client_flags(item),
				request->expiry, item->value_length);
		if (!copy)
			return NULL;
		memcpy(item_value(copy), item_value(item), item->value_length);
		copy->features = item->features;
		copy->state |= item->state & (ITEM_FETCHED | ITEM_CLOCK);
		put(action, current, copy, item->cas);
	} else {
		if (!room_for(action, seg_record_length(current->record->key_length, current->record->value_length)))
			return NULL;
		copy = item_from_record(action->context, current->record, current->packed_ms);
		if (!copy)
			return NULL;
		copy->expiry = request->expiry;
		put(action, current, copy, copy->cas);
	}
	return copy;
}

static void apply_touch(struct action *action, const struct current *current)
{
	struct item *item;

	action->request->result = STORE_MISS;
	if (!present(current)) {
		if (action->request->op == STORE_GAT && action->store->classifier)
			clf_note_missed(action->store->classifier, action->request->hash, action->now_ms);
		return;
	}
	item = touched(action, current);
	if (!item) {
		action->request->result = STORE_NO_MEMORY;
		return;
	}
	action->request->result = STORE_TOUCHED;
	note_hit(action, item);
	if (action->request->op == STORE_GAT) {
		note_read(action, item);
		give_value(action, item);
	}
}

/* ---- conditional and joining writes ---------------------------------------------------------- */

static void apply_cas(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	uint64_t cas;

	if (!present(current)) {
		request->result = STORE_MISS;
		return;
	}
	cas = current->item ? current->item->cas : current->record->cas;
	if (cas != request->cas && action->store->config.cas)
		request->result = STORE_EXISTS;
	else
		store_new(action, current);
}

static void apply_join(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	struct item *piece = request->item, *joined;
	const char *old;
	uint32_t old_length, flags;

	if (!present(current)) {
		request->result = STORE_NOT_STORED;
		return;
	}
	old = current->item ? item_value(current->item) : current->record->value;
	old_length = current->item ? current->item->value_length : current->record->value_length;
	flags = current->item ? item_client_flags(current->item) : current->record->client_flags;
	if (store_too_large(action->store, piece->key_length, (uint64_t)old_length + piece->value_length)) {
		request->result = STORE_TOO_LARGE;
		return;
	}
	joined = !room_for(action, (size_t)old_length + piece->value_length) ? NULL :
		 item_new(action->context, item_key(piece), piece->key_length, flags, record_expiry(current),
			  (uint64_t)old_length + piece->value_length);
	if (!joined) {
		request->result = STORE_NO_MEMORY;
		return;
	}
	bool append = request->op == STORE_APPEND;
	memcpy(item_value(joined) + (append ? 0 : piece->value_length), old, old_length);
	memcpy(item_value(joined) + (append ? old_length : 0), item_value(piece), piece->value_length);
	garbage(action, piece);
	request->item = joined;
	store_new(action, current);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/*
 * What memcached takes for a number, which is what strtoull does: blanks and a plus may come first,
 * and behind the digits anything after a blank (such as the spaces that a shrinking decr leaves).
 */
static bool parse_number(const char *text, uint32_t length, uint64_t *number)
{
	uint64_t n = 0;
	uint32_t i = 0, first;

	while (i < length && is_blank(text[i]))
		i++;
	if (i < length && text[i] == '+')
		i++;
	for (first = i; i < length && text[i] >= '0' && text[i] <= '9'; i++) {
		uint64_t digit = (uint64_t)(text[i] - '0');

		if (n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*number = n;
	return i > first && (i == length || is_blank(text[i]));
}

static unsigned format_number(uint64_t number, char out[NUMBER_DIGITS_MAX])
{
	char reversed[NUMBER_DIGITS_MAX];
	unsigned digits = 0;

	do
		reversed[digits++] = (char)('0' + number % 10);
	while (number /= 10);
	for (unsigned i = 0; i < digits; i++)
		out[i] = reversed[digits - 1 - i];
	return digits;
}

/* Only the table refers to it and no plan: then nobody else can be reading it. */
static bool exclusive(const struct item *item)
{
	return !(item->state & (ITEM_PLANNED | ITEM_CLEAN)) &&
	       atomic_load_explicit(&item->refs, memory_order_acquire) == 1;
}

static void apply_number(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	const char *old;
	char digits[NUMBER_DIGITS_MAX];
	uint32_t old_length, flags, length;
	uint64_t number;
	struct item *item = current->item;

	request->result = STORE_MISS;
	if (!present(current))
		return;
	old = item ? item_value(item) : current->record->value;
	old_length = item ? item->value_length : current->record->value_length;
	flags = item ? item_client_flags(item) : current->record->client_flags;
	if (!parse_number(old, old_length, &number)) {
		request->result = STORE_NOT_NUMBER;
		return;
	}
	if (request->op == STORE_INCR)
		number += request->delta;
	else
		number = request->delta > number ? 0 : number - request->delta;
	request->number = number;
	request->result = STORE_HIT;

	unsigned count = format_number(number, digits);
	length = count > old_length ? count : old_length; /* a shorter number keeps its length, with spaces */
	if (!item || !exclusive(item) || length != old_length) {
		struct item *new = !room_for(action, length) ? NULL :
				   item_new(action->context, request->key, request->key_length, flags,
					    record_expiry(current), length);

		if (!new) {
			request->result = STORE_NO_MEMORY;
			return;
		}
		clf_features_written(&new->features, action->now_ms);
		put(action, current, new, action->cas);
		item = new;
	} else {
		item->cas = action->cas;
		clf_features_written(&item->features, action->now_ms);
		candidate_clear(action->store, action->stripe, item);
		request->cas = item->cas;
	}
	memcpy(item_value(item), digits, count);
	memset(item_value(item) + count, ' ', length - count);
	note_written(action, item);
}

/* ---- delete ---------------------------------------------------------------------------------- */

static void apply_delete(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;

	if (!present(current)) {
		request->result = STORE_MISS;
		return;
	}
	if (!current->item || current->item->state & ITEM_CLEAN)
		clear_slots(action);
	if (current->item) {
		stripe_unlink(action->store, action->stripe, request->hash, current->item);
		garbage(action, current->item);
	}
	if (action->store->classifier)
		clf_note_deleted(action->store->classifier, request->hash, action->now_ms);
	request->result = STORE_DELETED;
}

/* ---- the table of commands ------------------------------------------------------------------- */

void action_apply(struct action *action, const struct current *current)
{
	lock_assert_held(&action->stripe->lock);
	switch (action->request->op) {
	case STORE_GET:
		apply_get(action, current);
		break;
	case STORE_GAT:
	case STORE_TOUCH:
		apply_touch(action, current);
		break;
	case STORE_SET:
		store_new(action, current);
		break;
	case STORE_ADD:
		if (present(current))
			action->request->result = STORE_NOT_STORED;
		else
			store_new(action, current);
		break;
	case STORE_REPLACE:
		if (!present(current))
			action->request->result = STORE_NOT_STORED;
		else
			store_new(action, current);
		break;
	case STORE_CAS:
		apply_cas(action, current);
		break;
	case STORE_APPEND:
	case STORE_PREPEND:
		apply_join(action, current);
		break;
	case STORE_INCR:
	case STORE_DECR:
		apply_number(action, current);
		break;
	case STORE_DELETE:
		apply_delete(action, current);
		break;
	}
}

/*
 * A write takes its id before it looks at what is there. flush_all reads the newest id and then
 * publishes it as the mark; with the id first, a write that found the old value alive either has an
 * id that the mark covers, or the mark was out when it looked. So nothing derived from a flushed
 * value survives the flush.
 */
void action_begin(struct action *action)
{
	enum store_op op = action->request->op;

	if (op == STORE_GET || op == STORE_GAT || op == STORE_TOUCH || op == STORE_DELETE)
		return;
	action->cas = store_next_cas(action->store);
	store_await_flush(action->store);
}

static void count_dead(const struct action *action, const struct item *item)
{
	bool flushed = item->cas <= atomic_load_explicit(&action->store->flush_cas, memory_order_acquire);

	if (action->request->op == STORE_GET || action->request->op == STORE_GAT)
		ctr_add(flushed ? CTR_get_flushed : CTR_get_expired, 1);
	if (!(item->state & ITEM_FETCHED))
		ctr_add(CTR_expired_unfetched, 1);
}

struct item *action_find(struct action *action)
{
	struct store_request *request = action->request;
	struct item *item = stripe_find(action->stripe, request->hash, request->key, request->key_length);

	if (!item || store_alive(action->store, item->expiry, item->cas, action->now_seconds))
		return item;
	count_dead(action, item);
	if (item->state & ITEM_CLEAN)
		clear_slots(action);
	stripe_unlink(action->store, action->stripe, request->hash, item);
	garbage(action, item);
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
