/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of one connection: the set of values that a key may have, and what commands make of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/model/model.h"
#include "tests/model/options.h"
#include "tests/model/owned_internal.h"

/* Seconds are what the protocol counts in, and memcached's clock ticks once in one: so long after its
   time, counted from the answer, an object must not be seen by a command sent then. */
#define EXPIRY_SLACK_MS 1500
#define RELATIVE_MAX (60 * 60 * 24 * 30)
#define NOBODY_KNOWS UINT64_MAX

struct owned_key *owned_find(struct conn *conn, uint32_t code)
{
	return &conn->key[key_number(code) / (options.threads * options.connections)];
}

void owned_note(struct owned_key *key, const struct op *op, enum answer answer)
{
	key->history[key->history_at++ % HISTORY] = (struct history){
		.version = op->value.pieces ? op->value.piece[0].content : 0,
		.ms = (uint32_t)ns_to_ms(now_ns()),
		.length = value_length(&op->value),
		.exptime = (int32_t)op->exptime,
		.kind = (uint8_t)op->kind,
		.answer = (uint8_t)answer,
		.noreply = op->noreply,
	};
}

/* ---- the set --------------------------------------------------------------------------------- */

bool owned_none(const struct owned_key *key)
{
	return key->possible_count == 0 && !key->wild;
}

void owned_clear(struct owned_key *key)
{
	key->possible_count = 0;
	key->wild = key->missed = false;
}

void owned_go_wild(struct conn *conn, struct owned_key *key)
{
	conn->thread->wild += !key->wild;
	key->wild = true;
	key->possible_count = 0;
}

void owned_may_be(struct conn *conn, struct owned_key *key, const struct value *value)
{
	if (key->wild)
		return;
	if (key->possible_count == POSSIBLE_MAX)
		owned_go_wild(conn, key);
	else
		key->possible[key->possible_count++] = *value;
}

/* When must an object be gone whose expiry was set by op, answered now? 0: never; NOBODY_KNOWS:
   some time. */
static uint64_t deadline_of(int64_t exptime, bool answered)
{
	if (exptime <= 0 || exptime > RELATIVE_MAX)
		return 0;
	if (!answered)
		return NOBODY_KNOWS;
	return ns_to_ms(now_ns()) + (uint64_t)exptime * 1000 + EXPIRY_SLACK_MS;
}

void owned_is(struct conn *conn, struct owned_key *key, const struct op *op, bool answered)
{
	struct value value = op->value;

	owned_clear(key);
	if (op->exptime < 0)
		return;
	value.cas_floor = key->cas_seen;
	value.deadline_ms = deadline_of(op->exptime, answered);
	owned_may_be(conn, key, &value);
}

void owned_filter(struct owned_key *key, bool (*keep)(const struct value *value, const void *context),
		  const void *context)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < key->possible_count; i++)
		if (keep(&key->possible[i], context))
			key->possible[kept++] = key->possible[i];
	key->possible_count = (uint8_t)kept;
}

static bool in_time(const struct value *value, const void *context)
{
	return value->deadline_ms == 0 || *(const uint64_t *)context <= value->deadline_ms;
}

void owned_expire(struct owned_key *key, const struct op *op)
{
	uint64_t sent_ms = ns_to_ms(op->sent_ns);

	owned_filter(key, in_time, &sent_ms);
}

void owned_retime(struct owned_key *key, const struct op *op, bool answered)
{
	if (op->exptime < 0) {
		owned_clear(key);
		return;
	}
	for (unsigned i = 0; i < key->possible_count; i++)
		key->possible[i].deadline_ms = deadline_of(op->exptime, answered);
}

bool owned_may_expire(const struct owned_key *key)
{
	for (unsigned i = 0; i < key->possible_count; i++)
		if (key->possible[i].deadline_ms)
			return true;
	return false;
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

void owned_change(struct conn *conn, struct owned_key *key, const struct op *op, const uint64_t *number)
{
	struct value old[POSSIBLE_MAX], to[2];
	unsigned count = key->possible_count;

	memcpy(old, key->possible, sizeof(old));
	key->possible_count = 0;
	for (unsigned i = 0; i < count; i++) {
		bool same;
		uint64_t is;
		unsigned results = change(op, &old[i], to, &same);

		if (results == 0)
			owned_go_wild(conn, key);
		for (unsigned j = 0; j < results; j++) {
			if (number && (same || !value_is_number(&to[j], &is) || is != *number))
				continue;
			if (!same) {
				to[j].cas = 0;
				to[j].cas_floor = key->cas_seen;
			}
			owned_may_be(conn, key, &to[j]);
		}
	}
}

static bool cas_may_match(const struct value *value, uint64_t cas)
{
	return value->cas ? value->cas == cas : value->cas_floor < cas;
}

bool owned_cas_may_match(const struct owned_key *key, uint64_t cas)
{
	for (unsigned i = 0; i < key->possible_count; i++)
		if (cas_may_match(&key->possible[i], cas))
			return true;
	return key->wild;
}

/* ---- no answer ------------------------------------------------------------------------------- */

/* A join whose result is near the limit may have been refused. */
static bool may_overflow(const struct owned_key *key, const struct op *op)
{
	for (unsigned i = 0; i < key->possible_count; i++)
		if (value_length(&key->possible[i]) + value_length(&op->value) + 1024 > options.item_limit)
			return true;
	return false;
}

void owned_silent(struct conn *conn, const struct op *op)
{
	struct owned_key *key = owned_find(conn, op->code);
	struct value value = op->value;

	owned_note(key, op, ANSWER_NONE);
	value.cas_floor = key->cas_seen;
	value.deadline_ms = deadline_of(op->exptime, false);
	if (op->too_large) {
		if (op->kind == OP_SET)
			owned_clear(key);
		return;
	}
	switch (op->kind) {
	case OP_SET:
		owned_is(conn, key, op, false);
		break;
	case OP_REPLACE:
		if (!owned_none(key))
			owned_is(conn, key, op, false);
		break;
	case OP_ADD:
		key->missed = false;
		if (op->exptime >= 0)
			owned_may_be(conn, key, &value);
		break;
	case OP_CAS:
		key->missed = false;
		if (op->exptime >= 0 && owned_cas_may_match(key, op->cas))
			owned_may_be(conn, key, &value);
		break;
	case OP_APPEND:
	case OP_PREPEND:
	case OP_INCR:
	case OP_DECR:
		if (may_overflow(key, op))
			owned_go_wild(conn, key);
		owned_change(conn, key, op, NULL);
		break;
	case OP_DELETE:
		owned_clear(key);
		break;
	case OP_TOUCH:
		owned_retime(key, op, false);
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
		for (unsigned i = 0; i < key->possible_count; i++)
			if (key->possible[i].deadline_ms || op->exptime)
				key->possible[i].deadline_ms = NOBODY_KNOWS;
		return;
	}
	if (op->kind == OP_GET)
		return;
	owned_silent(conn, op);
	if (before.wild)
		owned_go_wild(conn, key);
	for (unsigned i = 0; i < before.possible_count; i++)
		owned_may_be(conn, key, &before.possible[i]);
}

void owned_flushed(struct conn *conn)
{
	for (uint32_t i = 0; i < conn->keys; i++) {
		if (conn->key[i].quarantine)
			continue;
		owned_note(&conn->key[i], &(struct op){ .kind = OP_FLUSH }, ANSWER_OK);
		owned_clear(&conn->key[i]);
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
	for (unsigned i = 0; i < key->possible_count; i++)
		print_value(&key->possible[i]);
	if (owned_none(key))
		fprintf(stderr, "    must be absent%s\n", key->quarantine ? " (quarantined)" : "");
}
