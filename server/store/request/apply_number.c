/* SPDX-License-Identifier: BSD-3-Clause */
/* INCR and DECR under the stripe: which values are numbers, and how they change. */
#include "server/store/request/action_internal.h"

#define NUMBER_DIGITS_MAX 20 /* of 2^64 - 1 */

static bool number_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The offset of the first digit, behind blanks and a sign. */
static uint32_t number_skip_to_digits(const char *text, uint32_t length, bool *minus)
{
	uint32_t i = 0;

	while (i < length && number_is_blank(text[i]))
		i++;
	*minus = i < length && text[i] == '-';
	if (i < length && (text[i] == '-' || text[i] == '+'))
		i++;
	return i;
}

/*
 * memcached's numbers, which are strtoull's: blanks and a sign may come first, a minus counts from 2^64 downwards, and
 * behind the digits comes the end, a zero byte, or anything after a blank (such as the spaces that a shrinking decr
 * leaves). A result over 2^63 is no number if the text has a minus anywhere.
 */
static bool number_parse(const char *text, uint32_t length, uint64_t *number)
{
	uint64_t n = 0;
	bool minus;
	uint32_t i = number_skip_to_digits(text, length, &minus), first = i;

	for (; i < length && text[i] >= '0' && text[i] <= '9'; i++) {
		uint64_t digit = (uint64_t)(text[i] - '0');

		if (n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	if (i == first || (i < length && text[i] != '\0' && !number_is_blank(text[i])))
		return false;
	*number = minus ? 0 - n : n;
	return *number <= INT64_MAX || !memchr(text, '-', strnlen(text, length));
}

static unsigned number_format(uint64_t number, char out[NUMBER_DIGITS_MAX])
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

/* Only the table refers to the item, and no plan: nobody else can be reading it. */
static bool item_is_exclusive(const struct item *item)
{
	return !(item->state & (ITEM_PLANNED | ITEM_CLEAN)) &&
	       atomic_load_explicit(&item->refs, memory_order_acquire) == 1;
}

/* The item stays and gets the new id. */
static void number_renew(struct action *action, struct item *item, uint32_t expiry)
{
	bins_disown(action->store, item, action->request->hash);
	item_set_cas(item, action->cas);
	item->expiry = expiry;
	if (item_has_extra(item))
		item_extra(item)->shown_cas = options_own_cas(action->request);
	candidate_clear(action->store, action->stripe, item);
	action->request->cas = item_shown_cas(item);
}

/* Another item replaces it. A number of the same length is the same object and keeps its marks. */
static struct item *number_replace_item(struct action *action, const struct current *current, uint32_t expiry,
					uint32_t length)
{
	struct item *old = current->item, *new;
	uint8_t marks = old && item_marked(old) && length == old->value_length ? item_extra(old)->marks : 0;
	uint32_t flags = current_present(current) ? current_flags(current) : 0;

	if (!marks)
		new = options_item(action, flags, expiry, length);
	else
		new = item_new_extra(action->context, item_key(old), old->key_length, flags, expiry, length);
	if (!new)
		return NULL;
	if (marks) {
		item_extra(new)->marks = marks;
		item_extra(new)->shown_cas = options_own_cas(action->request);
	}
	if (current_present(current) && length == current_length(current) && current_fetched(current))
		new->state |= ITEM_FETCHED;
	return action_put(action, current, new, action->cas) ? new : NULL;
}

static void number_store(struct action *action, const struct current *current, uint64_t number, uint32_t expiry)
{
	struct store_request *request = action->request;
	struct item *item = current->item;
	struct clf_features old = { 0 };
	char digits[NUMBER_DIGITS_MAX];
	uint32_t count = number_format(number, digits), length = count;
	bool grows;

	grows = current_present(current) && count > current_length(current);
	if (current_present(current) && !grows)
		length = current_length(current); /* a shorter number keeps its length, with spaces */
	if (item)
		old = item_features(item);
	if (item && item_is_exclusive(item) && length == item->value_length &&
	    (item_has_extra(item) || !options_own_cas(request))) {
		number_renew(action, item, expiry);
	} else {
		item = number_replace_item(action, current, expiry, length);
		if (!item) {
			request->result = STORE_NO_MEMORY;
			return;
		}
	}
	if (grows)
		ctr_add(CTR_total_items, 1); /* memcached changes a number in place, or else stores a new one */
	item_features_written(item, action->now_ms);
	memcpy(item_value(item), digits, count);
	memset(item_value(item) + count, ' ', length - count);
	action_note_written(action, current->item ? &old : NULL, item);
	if (request->has_options)
		options_expires(action, expiry);
	request->number = number;
	request->result = STORE_HIT;
}

static void number_vivify(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	const struct store_options *options = &request->options;

	uint32_t expiry = options_made(action, options->touch);

	number_store(action, current, options->initial, expiry);
	if (request->result != STORE_HIT)
		return;
	request->made = true;
	ctr_add(CTR_total_items, 1);
}

void apply_number(struct action *action, const struct current *current)
{
	struct store_request *request = action->request;
	bool touch = request->has_options && request->options.touch;
	uint64_t number;

	request->result = STORE_MISS;
	if (!current_present(current)) {
		if (request->has_options && request->options.vivify)
			number_vivify(action, current);
		return;
	}
	request->result = STORE_NOT_NUMBER;
	if (current_length(current) == 0)
		return;
	if (options_differs(action, current)) {
		request->result = STORE_EXISTS;
		return;
	}
	if (!number_parse(current_value(current), current_length(current), &number))
		return;
	if (request->op == STORE_INCR)
		number += request->delta;
	else
		number = request->delta > number ? 0 : number - request->delta;
	number_store(action, current, number, touch ? request->expiry : current_expiry(current));
}
