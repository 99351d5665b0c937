/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of one connection: the set of values that a key may have, and what each answer makes of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/model/model.h"
#include "tests/model/options.h"

/* Seconds are what the protocol counts in, and memcached's clock ticks once in one: so long after its
   time, counted from the answer, an object must not be seen by a command sent then. */
#define EXPIRY_SLACK_MS 1500
#define RELATIVE_MAX (60 * 60 * 24 * 30)

struct owned_key *owned_find(struct conn *conn, uint32_t code)
{
	return &conn->key[key_number(code) / (options.threads * options.connections)];
}

void owned_note(struct owned_key *key, const struct op *op, enum answer answer)
{
	key->history[key->history_at++ % HISTORY] = (struct history){
		.version = op->value.pieces ? op->value.piece[0].content : 0,
		.ms = (uint32_t)ns_to_ms(now_ns()), .length = value_length(&op->value),
		.exptime = (int32_t)op->exptime, .kind = (uint8_t)op->kind, .answer = (uint8_t)answer,
		.noreply = op->noreply,
	};
}

/* ---- the set --------------------------------------------------------------------------------- */

static bool none(const struct owned_key *key)
{
	return key->candidates == 0 && !key->wild;
}

static void surely_absent(struct owned_key *key)
{
	key->candidates = 0;
	key->wild = key->missed = false;
}

static void go_wild(struct conn *conn, struct owned_key *key)
{
	conn->thread->wild += !key->wild;
	key->wild = true;
	key->candidates = 0;
}

static void add_candidate(struct conn *conn, struct owned_key *key, const struct value *value)
{
	if (key->wild)
		return;
	if (key->candidates == CANDIDATES_MAX)
		go_wild(conn, key);
	else
		key->candidate[key->candidates++] = *value;
}

/* When must an object be gone whose expiry was set by op, answered now? 0: no limit. */
static uint64_t deadline_of(int64_t exptime, bool answered)
{
	if (exptime <= 0 || exptime > RELATIVE_MAX || !answered)
		return 0;
	return ns_to_ms(now_ns()) + (uint64_t)exptime * 1000 + EXPIRY_SLACK_MS;
}

static void surely_is(struct conn *conn, struct owned_key *key, const struct op *op, bool answered)
{
	struct value value = op->value;

	surely_absent(key);
	if (op->exptime < 0)
		return;
	value.cas_floor = key->cas_seen;
	value.deadline_ms = deadline_of(op->exptime, answered);
	add_candidate(conn, key, &value);
}

/* Keeps what passes. */
static void filter(struct owned_key *key, bool (*keep)(const struct value *value, const void *context),
		   const void *context)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < key->candidates; i++)
		if (keep(&key->candidate[i], context))
			key->candidate[kept++] = key->candidate[i];
	key->candidates = (uint8_t)kept;
}

static bool in_time(const struct value *value, const void *context)
{
	return value->deadline_ms == 0 || *(const uint64_t *)context <= value->deadline_ms;
}

/* What had to be gone when the command was sent can't be what it met. */
static void expire(struct owned_key *key, const struct op *op)
{
	uint64_t sent_ms = ns_to_ms(op->sent_ns);

	filter(key, in_time, &sent_ms);
}

static void retime(struct owned_key *key, const struct op *op, bool answered)
{
	if (op->exptime < 0) {
		surely_absent(key);
		return;
	}
	for (unsigned i = 0; i < key->candidates; i++)
		key->candidate[i].deadline_ms = deadline_of(op->exptime, answered);
}

/* ---- commands that change a value ------------------------------------------------------------ */

/* What op makes of one value: 0, 1 or (a number that shrinks may keep its width) 2 results.
   same: the value stays as it is. */
static unsigned change(const struct op *op, const struct value *from, struct value to[2], bool *same)
{
	uint64_t number;
	uint32_t width = value_length(from);

	*same = false;
	to[0] = to[1] = *from;
	if (op->kind == OP_APPEND || op->kind == OP_PREPEND) {
		to[0].cas = 0;
		/* Is "7  text" a number? memcached says yes; left open. */
		if (value_is_number(from, &number) && width > digits_of(number) && op->kind == OP_APPEND)
			return 0;
		return value_join(&to[0], &op->value.piece[0], op->kind == OP_APPEND) ? 1 : 0;
	}
	if (!value_is_number(from, &number)) {
		*same = true;
		return 1;
	}
	number = op->kind == OP_INCR ? number + op->delta : op->delta > number ? 0 : number - op->delta;
	for (unsigned i = 0; i < 2; i++) {
		value_number(&to[i], number, i == 0 ? width : 0);
		to[i].flags = from->flags;
		to[i].deadline_ms = from->deadline_ms;
	}
	return value_length(&to[0]) == value_length(&to[1]) ? 1 : 2;
}

/* number: the answer of incr and decr, NULL when there was none. */
static void change_all(struct conn *conn, struct owned_key *key, const struct op *op, const uint64_t *number)
{
	struct value old[CANDIDATES_MAX], to[2];
	unsigned count = key->candidates;

	memcpy(old, key->candidate, sizeof(old));
	key->candidates = 0;
	for (unsigned i = 0; i < count; i++) {
		bool same;
		uint64_t is;
		unsigned results = change(op, &old[i], to, &same);

		if (results == 0)
			go_wild(conn, key);
		for (unsigned j = 0; j < results; j++) {
			if (number && (same || !value_is_number(&to[j], &is) || is != *number))
				continue;
			if (!same) {
				to[j].cas = 0;
				to[j].cas_floor = key->cas_seen;
			}
			add_candidate(conn, key, &to[j]);
		}
	}
}

/* memcached itself holds twenty digits for too many. */
static bool not_a_number(const struct value *value, const void *context)
{
	uint64_t number;

	(void)context;
	return !value_is_number(value, &number) || value_length(value) >= 20;
}

static bool cas_may_match(const struct value *value, uint64_t cas)
{
	return value->cas ? value->cas == cas : value->cas_floor < cas;
}

static bool cas_may_differ(const struct value *value, const void *context)
{
	return value->cas == 0 || value->cas != *(const uint64_t *)context;
}

static bool any_cas_may_match(const struct owned_key *key, uint64_t cas)
{
	for (unsigned i = 0; i < key->candidates; i++)
		if (cas_may_match(&key->candidate[i], cas))
			return true;
	return key->wild;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void must_be_present(struct conn *conn, struct owned_key *key, const struct op *op)
{
	if (none(key))
		violation(conn, op, op->code, "the answer says that the key is there, but it can't be");
	key->missed = false;
}

static void stored(struct conn *conn, struct owned_key *key, const struct op *op)
{
	if (op->kind == OP_REPLACE || op->kind == OP_APPEND || op->kind == OP_PREPEND || op->kind == OP_CAS)
		must_be_present(conn, key, op);
	if (op->too_large && op->kind != OP_APPEND && op->kind != OP_PREPEND)
		violation(conn, op, op->code, "stored, but too large");
	if (op->kind == OP_CAS && !any_cas_may_match(key, op->cas))
		violation(conn, op, op->code, "cas stored with the id of an older value, %" PRIu64, op->cas);
	if (op->kind == OP_APPEND || op->kind == OP_PREPEND)
		change_all(conn, key, op, NULL);
	else
		surely_is(conn, key, op, true);
	conn->thread->stored++;
}

static void not_stored(struct conn *conn, struct owned_key *key, const struct op *op)
{
	if (op->kind == OP_ADD)
		must_be_present(conn, key, op);
	else
		surely_absent(key);
}

static void exists(struct conn *conn, struct owned_key *key, const struct op *op)
{
	must_be_present(conn, key, op);
	filter(key, cas_may_differ, &op->cas);
	if (none(key))
		violation(conn, op, op->code, "cas EXISTS although %" PRIu64 " is the value's id", op->cas);
}

static void number_answered(struct conn *conn, struct owned_key *key, const struct op *op, uint64_t number)
{
	must_be_present(conn, key, op);
	if (key->wild)
		return;
	change_all(conn, key, op, &number);
	if (none(key))
		violation(conn, op, op->code, "%" PRIu64 " is not what %s makes of any value it may have", number,
			  OP_NAMES[op->kind]);
}

static void not_number(struct conn *conn, struct owned_key *key, const struct op *op)
{
	must_be_present(conn, key, op);
	filter(key, not_a_number, NULL);
	if (none(key))
		violation(conn, op, op->code, "not a number, says the answer, but it is one");
}

/* A set that is too large takes the old value along; of the other commands memcached leaves it
   open. */
static void too_large(struct conn *conn, struct owned_key *key, const struct op *op)
{
	uint32_t length = value_length(&op->value), longest = 0;

	for (unsigned i = 0; i < key->candidates; i++)
		if (value_length(&key->candidate[i]) > longest)
			longest = value_length(&key->candidate[i]);
	if (op->kind == OP_APPEND || op->kind == OP_PREPEND)
		length += longest;
	if (length + 1024 < options.item_limit && !key->wild)
		violation(conn, op, op->code, "too large, says the answer, at %u bytes", length);
	if (op->kind == OP_SET)
		surely_absent(key);
}

void owned_answer(struct conn *conn, const struct op *op, enum answer answer, uint64_t number)
{
	struct owned_key *key = owned_find(conn, op->code);

	owned_note(key, op, answer);
	expire(key, op);
	switch (answer) {
	case ANSWER_STORED: stored(conn, key, op); break;
	case ANSWER_NOT_STORED: not_stored(conn, key, op); break;
	case ANSWER_EXISTS: exists(conn, key, op); break;
	case ANSWER_NUMBER: number_answered(conn, key, op, number); break;
	case ANSWER_NOT_NUMBER: not_number(conn, key, op); break;
	case ANSWER_TOO_LARGE: too_large(conn, key, op); break;
	case ANSWER_NOT_FOUND: surely_absent(key); break;
	case ANSWER_DELETED:
		must_be_present(conn, key, op);
		surely_absent(key);
		break;
	case ANSWER_TOUCHED:
		must_be_present(conn, key, op);
		retime(key, op, true);
		break;
	default:
		violation(conn, op, op->code, "no such answer to this command");
	}
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool explains(const struct value *value, uint32_t code, const struct shown *shown)
{
	if (value->flags != shown->flags)
		return false;
	if (shown->cas && (value->cas ? value->cas != shown->cas : shown->cas <= value->cas_floor))
		return false;
	return value_equals(value, code, shown->data, shown->length);
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
	for (unsigned i = 0; i < key->candidates; i++)
		if (value_equals(&key->candidate[i], code, shown->data, shown->length))
			violation(conn, op, code, "right bytes, but flags %u (%u expected) and id %" PRIu64
				  " (%" PRIu64 " expected, 0: above %" PRIu64 ")", shown->flags,
				  key->candidate[i].flags, shown->cas, key->candidate[i].cas,
				  key->candidate[i].cas_floor);
	violation(conn, op, code, "%s: %zu bytes, flags %u, id %" PRIu64 ": %s",
		  none(key) ? "a value of a key that must be absent" : "not a value that the key may have",
		  shown->length, shown->flags, shown->cas, start);
}

void owned_shown(struct conn *conn, const struct op *op, uint32_t code, const struct shown *shown)
{
	struct owned_key *key = owned_find(conn, code);
	unsigned i = 0;

	owned_note(key, op, ANSWER_HIT);
	expire(key, op);
	if (shown->cas > key->cas_seen)
		key->cas_seen = shown->cas;
	if (key->wild) {
		conn->thread->blind++;
		return;
	}
	while (i < key->candidates && !explains(&key->candidate[i], code, shown))
		i++;
	if (i == key->candidates)
		wrong_value(conn, op, code, shown);
	if (i > 0)
		key->candidate[0] = key->candidate[i];
	key->candidates = 1;
	if (shown->cas)
		key->candidate[0].cas = shown->cas;
	if (key->missed) {
		conn->thread->reappeared++;
		if (options.strict_miss)
			violation(conn, op, code, "a value that was missed before, and not stored since, is back");
	}
	key->missed = false;
	if (op->kind == OP_GAT)
		retime(key, op, true);
}

/* A get may miss for reasons that pass (a read error); a gat acts on the key, and what it says
   about it is true from then on. */
void owned_missed(struct conn *conn, const struct op *op, uint32_t code)
{
	struct owned_key *key = owned_find(conn, code);

	owned_note(key, op, ANSWER_MISS);
	expire(key, op);
	if (op->kind == OP_GAT)
		surely_absent(key);
	else if (!none(key))
		key->missed = true;
}

/* ---- no answer ------------------------------------------------------------------------------- */

/* A join whose result is near the limit may have been refused. */
static bool may_overflow(const struct owned_key *key, const struct op *op)
{
	for (unsigned i = 0; i < key->candidates; i++)
		if (value_length(&key->candidate[i]) + value_length(&op->value) + 1024 > options.item_limit)
			return true;
	return false;
}

void owned_silent(struct conn *conn, const struct op *op)
{
	struct owned_key *key = owned_find(conn, op->code);
	struct value value = op->value;

	owned_note(key, op, ANSWER_NONE);
	value.cas_floor = key->cas_seen;
	if (op->too_large) {
		if (op->kind == OP_SET)
			surely_absent(key);
		return;
	}
	switch (op->kind) {
	case OP_SET:
		surely_is(conn, key, op, false);
		break;
	case OP_REPLACE:
		if (!none(key))
			surely_is(conn, key, op, false);
		break;
	case OP_ADD:
		key->missed = false;
		if (op->exptime >= 0)
			add_candidate(conn, key, &value);
		break;
	case OP_CAS:
		key->missed = false;
		if (op->exptime >= 0 && any_cas_may_match(key, op->cas))
			add_candidate(conn, key, &value);
		break;
	case OP_APPEND:
	case OP_PREPEND:
	case OP_INCR:
	case OP_DECR:
		if (may_overflow(key, op))
			go_wild(conn, key);
		change_all(conn, key, op, NULL);
		break;
	case OP_DELETE:
		surely_absent(key);
		break;
	case OP_TOUCH:
		retime(key, op, false);
		break;
	default:
		break;
	}
}

void owned_lost(struct conn *conn, const struct op *op, uint32_t code)
{
	struct owned_key *key = owned_find(conn, code);
	struct owned_key before = *key;

	if (op->kind == OP_GAT || op->kind == OP_TOUCH) {
		owned_note(key, op, ANSWER_NONE);
		for (unsigned i = 0; i < key->candidates; i++)
			key->candidate[i].deadline_ms = 0;
		return;
	}
	if (op->kind == OP_GET)
		return;
	owned_silent(conn, op);
	if (before.wild)
		go_wild(conn, key);
	for (unsigned i = 0; i < before.candidates; i++)
		add_candidate(conn, key, &before.candidate[i]);
}

void owned_flushed(struct conn *conn)
{
	for (uint32_t i = 0; i < conn->keys; i++) {
		if (conn->key[i].quarantine)
			continue;
		owned_note(&conn->key[i], &(struct op){ .kind = OP_FLUSH }, ANSWER_OK);
		surely_absent(&conn->key[i]);
	}
}

/* ---- for the eye ----------------------------------------------------------------------------- */

static void print_value(const struct value *value)
{
	fprintf(stderr, "    may be: %u bytes, flags %u, id %" PRIu64 " (above %" PRIu64 ")%s", value_length(value),
		value->flags, value->cas, value->cas_floor, value->deadline_ms ? ", expires:" : ":");
	for (unsigned i = 0; i < value->pieces; i++)
		fprintf(stderr, " %s %" PRIu64 " (%u)", value->piece[i].kind == PIECE_TEXT ? "version" : "number",
			value->piece[i].content, value->piece[i].length);
	fprintf(stderr, "\n");
}

void owned_print(struct owned_key *key, uint32_t code)
{
	fprintf(stderr, "  last commands on %u, the oldest first:\n", key_number(code));
	for (unsigned i = 0; i < HISTORY; i++) {
		const struct history *h = &key->history[(key->history_at + i) % HISTORY];

		if (h->ms)
			fprintf(stderr, "    %7u ms  %-8s%s %-10s version %" PRIu64 ", %u bytes, exptime %d\n", h->ms,
				OP_NAMES[h->kind], h->noreply ? " noreply" : "", ANSWER_NAMES[h->answer], h->version,
				h->length, h->exptime);
	}
	for (unsigned i = 0; i < key->candidates; i++)
		print_value(&key->candidate[i]);
	if (none(key))
		fprintf(stderr, "    must be absent%s\n", key->quarantine ? " (quarantined)" : "");
}
