/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of one connection: is an answer possible, and what does it tell? */
#include <inttypes.h>
#include <stdio.h>

#include "tests/model/options.h"
#include "tests/model/owned_internal.h"

/* ---- answers --------------------------------------------------------------------------------- */

static void must_be_present(struct conn *conn, struct owned_key *key, const struct op *op)
{
	if (owned_none(key))
		violation(conn, op, op->code, "the answer says that the key is there, but it can't be");
	key->missed = false;
}

static void stored(struct conn *conn, struct owned_key *key, const struct op *op)
{
	if (op->kind == OP_REPLACE || op->kind == OP_APPEND || op->kind == OP_PREPEND || op->kind == OP_CAS)
		must_be_present(conn, key, op);
	if (op->too_large && op->kind != OP_APPEND && op->kind != OP_PREPEND)
		violation(conn, op, op->code, "stored, but too large");
	if (op->kind == OP_CAS && !owned_cas_may_match(key, op->cas))
		violation(conn, op, op->code, "cas stored with the id of an older value, %" PRIu64, op->cas);
	if (op->kind == OP_APPEND || op->kind == OP_PREPEND)
		owned_change(conn, key, op, NULL);
	else
		owned_is(conn, key, op, true);
	conn->thread->stored++;
}

/* memcached itself holds twenty digits for too many. */
static bool not_a_number(const struct value *value, const void *context)
{
	uint64_t number;

	(void)context;
	return !value_is_number(value, &number) || value_length(value) >= 20;
}

static bool cas_may_differ(const struct value *value, const void *context)
{
	return value->cas == 0 || value->cas != *(const uint64_t *)context;
}

static void not_stored(struct conn *conn, struct owned_key *key, const struct op *op)
{
	if (op->kind == OP_ADD)
		must_be_present(conn, key, op);
	else
		owned_clear(key);
}

static void exists(struct conn *conn, struct owned_key *key, const struct op *op)
{
	must_be_present(conn, key, op);
	owned_filter(key, cas_may_differ, &op->cas);
	if (owned_none(key))
		violation(conn, op, op->code, "cas EXISTS although %" PRIu64 " is the value's id", op->cas);
}

static void number_answered(struct conn *conn, struct owned_key *key, const struct op *op, uint64_t number)
{
	must_be_present(conn, key, op);
	if (key->wild)
		return;
	owned_change(conn, key, op, &number);
	if (owned_none(key))
		violation(conn, op, op->code, "%" PRIu64 " is not what %s makes of any value it may have", number,
			  OP_NAMES[op->kind]);
}

static void not_number(struct conn *conn, struct owned_key *key, const struct op *op)
{
	must_be_present(conn, key, op);
	owned_filter(key, not_a_number, NULL);
	if (owned_none(key))
		violation(conn, op, op->code, "not a number, says the answer, but it is one");
}

/* A set that is too large takes the old value along; of the other commands memcached leaves it
   open. */
static void too_large(struct conn *conn, struct owned_key *key, const struct op *op)
{
	uint32_t length = value_length(&op->value), longest = 0;

	for (unsigned i = 0; i < key->possible_count; i++)
		if (value_length(&key->possible[i]) > longest)
			longest = value_length(&key->possible[i]);
	if (op->kind == OP_APPEND || op->kind == OP_PREPEND)
		length += longest;
	if (length + 1024 < options.item_limit && !key->wild)
		violation(conn, op, op->code, "too large, says the answer, at %u bytes", length);
	if (op->kind == OP_SET)
		owned_clear(key);
}

void owned_answer(struct conn *conn, const struct op *op, enum answer answer, uint64_t number)
{
	struct owned_key *key = owned_find(conn, op->code);

	owned_note(key, op, answer);
	owned_expire(key, op);
	switch (answer) {
	case ANSWER_STORED:
		stored(conn, key, op);
		break;
	case ANSWER_NOT_STORED:
		not_stored(conn, key, op);
		break;
	case ANSWER_EXISTS:
		exists(conn, key, op);
		break;
	case ANSWER_NUMBER:
		number_answered(conn, key, op, number);
		break;
	case ANSWER_NOT_NUMBER:
		not_number(conn, key, op);
		break;
	case ANSWER_TOO_LARGE:
		too_large(conn, key, op);
		break;
	case ANSWER_NOT_FOUND:
		owned_clear(key);
		break;
	case ANSWER_DELETED:
		must_be_present(conn, key, op);
		owned_clear(key);
		break;
	case ANSWER_TOUCHED:
		must_be_present(conn, key, op);
		owned_retime(key, op, true);
		break;
	default:
		violation(conn, op, op->code, "no such answer to this command");
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

struct seen {
	uint32_t code;
	const struct shown *shown;
};

static bool explains(const struct value *value, const void *context)
{
	const struct seen *seen = context;
	const struct shown *shown = seen->shown;

	if (value->flags != shown->flags)
		return false;
	if (shown->cas && (value->cas ? value->cas != shown->cas : shown->cas <= value->cas_floor))
		return false;
	return value_equals(value, seen->code, shown->data, shown->length);
}

/* Why it does not fit, in the words of whom it concerns. */
static void wrong_value(struct conn *conn, const struct op *op, uint32_t code, const struct shown *shown)
{
	struct owned_key *key = owned_find(conn, code);
	char start[161];
	size_t n = 0;

	for (; n < shown->length && n < 40; n++)
		snprintf(start + n * 4, 5, shown->data[n] >= ' ' && shown->data[n] < 127 ? "%c   " : "\\x%02x",
			 (unsigned char)shown->data[n]);
	start[n * 4] = 0;
	for (unsigned i = 0; i < key->possible_count; i++)
		if (value_equals(&key->possible[i], code, shown->data, shown->length))
			violation(conn, op, code,
				  "right bytes, but flags %u (%u expected) and id %" PRIu64 " (%" PRIu64
				  " expected, 0: above %" PRIu64 ")",
				  shown->flags, key->possible[i].flags, shown->cas, key->possible[i].cas,
				  key->possible[i].cas_floor);
	violation(conn, op, code, "%s: %zu bytes, flags %u, id %" PRIu64 ": %s",
		  owned_none(key) ? "a value of a key that must be absent" : "not a value that the key may have",
		  shown->length, shown->flags, shown->cas, start);
}

/* Every value that explains what was shown stays: very short ones are alike in several versions. */
void owned_shown(struct conn *conn, const struct op *op, uint32_t code, const struct shown *shown)
{
	struct owned_key *key = owned_find(conn, code);
	struct seen seen = { .code = code, .shown = shown };
	unsigned i = 0;

	owned_note(key, op, ANSWER_HIT);
	owned_expire(key, op);
	if (shown->cas > key->cas_seen)
		key->cas_seen = shown->cas;
	if (key->wild) {
		conn->thread->blind++;
		return;
	}
	while (i < key->possible_count && !explains(&key->possible[i], &seen))
		i++;
	if (i == key->possible_count)
		wrong_value(conn, op, code, shown);
	owned_filter(key, explains, &seen);
	for (i = 0; shown->cas && i < key->possible_count; i++)
		key->possible[i].cas = shown->cas;
	if (key->missed) {
		conn->thread->reappeared++;
		if (options.strict_miss)
			violation(conn, op, code, "a value that was missed before, and not stored since, is back");
	}
	key->missed = false;
	if (op->kind == OP_GAT)
		owned_retime(key, op, true);
}

/* A get may miss for reasons that pass: a read error; or a flash read that is under way while the
   value expires or a flush_all comes, and gets behind it that were faster. A gat acts on the key, and
   what it says about it is true from then on. */
void owned_missed(struct conn *conn, const struct op *op, uint32_t code)
{
	struct owned_key *key = owned_find(conn, code);

	owned_note(key, op, ANSWER_MISS);
	owned_expire(key, op);
	if (op->kind == OP_GAT)
		owned_clear(key);
	else if (!owned_none(key) && !owned_may_expire(key) && !flush_since(op->sent_ns))
		key->missed = true;
}
