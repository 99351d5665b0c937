/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers, in the order of the commands: taken apart here, judged by the model of their key. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"
#include "tests/model/options.h"

const char *const ANSWER_NAMES[ANSWERS] = { "-",         "hit",     "miss",    "STORED", "NOT_STORED",   "EXISTS",
					    "NOT_FOUND", "DELETED", "TOUCHED", "number", "not a number", "too large",
					    "OK" };

static void pop(struct conn *conn)
{
	free(conn->queue[conn->head].codes);
	free(conn->queue[conn->head].versions);
	conn->queue[conn->head].codes = NULL;
	conn->queue[conn->head].versions = NULL;
	conn->head = (conn->head + 1) % QUEUE;
	conn->count--;
	conn->progress_ns = now_ns();
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool starts_with(const char *text, size_t length, const char *with)
{
	return length >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static enum answer parse(const char *text, size_t length, uint64_t *number)
{
	static const struct {
		const char *text;
		enum answer answer;
	} words[] = {
		{ "STORED", ANSWER_STORED },   { "NOT_STORED", ANSWER_NOT_STORED },
		{ "EXISTS", ANSWER_EXISTS },   { "NOT_FOUND", ANSWER_NOT_FOUND },
		{ "DELETED", ANSWER_DELETED }, { "TOUCHED", ANSWER_TOUCHED },
		{ "OK", ANSWER_OK },
	};
	char digits[24];
	size_t i = 0;

	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
		if (length == strlen(words[w].text) && memcmp(text, words[w].text, length) == 0)
			return words[w].answer;
	if (starts_with(text, length, "CLIENT_ERROR cannot increment or decrement non-numeric value"))
		return ANSWER_NOT_NUMBER;
	if (starts_with(text, length, "SERVER_ERROR object too large for cache"))
		return ANSWER_TOO_LARGE;
	while (i < length && i < sizeof(digits) - 1 && text[i] >= '0' && text[i] <= '9') {
		digits[i] = text[i];
		i++;
	}
	digits[i] = 0;
	if (i == 0 || i != length)
		return ANSWER_NONE;
	*number = strtoull(digits, NULL, 10);
	return ANSWER_NUMBER;
}

/* Which answers a command may have. */
static bool fits(const struct op *op, enum answer answer)
{
	switch (op->kind) {
	case OP_SET:
		return answer == ANSWER_STORED || answer == ANSWER_TOO_LARGE;
	case OP_ADD:
	case OP_REPLACE:
	case OP_APPEND:
	case OP_PREPEND:
		return answer == ANSWER_STORED || answer == ANSWER_NOT_STORED || answer == ANSWER_TOO_LARGE;
	case OP_CAS:
		return answer == ANSWER_STORED || answer == ANSWER_EXISTS || answer == ANSWER_NOT_FOUND ||
		       answer == ANSWER_TOO_LARGE;
	case OP_INCR:
	case OP_DECR:
		return answer == ANSWER_NUMBER || answer == ANSWER_NOT_FOUND || answer == ANSWER_NOT_NUMBER;
	case OP_DELETE:
		return answer == ANSWER_DELETED || answer == ANSWER_NOT_FOUND;
	case OP_TOUCH:
		return answer == ANSWER_TOUCHED || answer == ANSWER_NOT_FOUND;
	case OP_FLUSH:
		return answer == ANSWER_OK;
	default:
		return false;
	}
}

static void shared_answer(struct conn *conn, const struct op *op, enum answer answer)
{
	uint64_t end = now_ns();
	bool effective = answer == ANSWER_STORED || op->kind == OP_DELETE || op->kind == OP_TOUCH;

	if (answer == ANSWER_TOO_LARGE)
		violation(conn, op, op->code, "too large, says the answer");
	shared_end(conn, op, op->code, op->version, effective, end);
	if (op->kind == OP_CAS && answer == ANSWER_STORED)
		shared_cas_stored(conn, op, end);
	conn->thread->stored += answer == ANSWER_STORED;
}

static void counter_answer(struct conn *conn, const struct op *op, enum answer answer, uint64_t number)
{
	if (op->kind == OP_ADD) {
		if (answer == ANSWER_STORED)
			counter_number(conn, op, op->code, op->version, false);
		counter_end(op->code);
	} else if (answer == ANSWER_NUMBER) {
		counter_number(conn, op, op->code, number, true);
	} else if (answer == ANSWER_NOT_NUMBER) {
		violation(conn, op, op->code, "a counter that is no number");
	}
}

static bool take_line(struct conn *conn, const struct op *op)
{
	const char *text;
	size_t length;
	uint64_t number = 0;
	enum answer answer;

	text = wire_line(&conn->wire, 0, &length);
	if (!text)
		return false;
	answer = parse(text, length, &number);
	if (!fits(op, answer))
		violation(conn, op, op->code, "unexpected answer: %.*s", (int)(length < 100 ? length : 100), text);
	wire_consume(&conn->wire, length + 2);
	if (op->kind == OP_FLUSH) {
		shared_flush_end(conn, op, op->versions, now_ns());
		owned_flushed(conn);
		conn->thread->flushes++;
		return true;
	}
	switch (key_area(op->code)) {
	case AREA_OWNED:
		owned_answer(conn, op, answer, number);
		break;
	case AREA_SHARED:
		shared_answer(conn, op, answer);
		break;
	case AREA_COUNTER:
		counter_answer(conn, op, answer, number);
		break;
	}
	return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void take_miss(struct conn *conn, const struct op *op, uint32_t code)
{
	conn->thread->misses++;
	if (key_area(code) == AREA_OWNED)
		owned_missed(conn, op, code);
}

static void counter_shown(struct conn *conn, const struct op *op, uint32_t code, const struct shown *shown)
{
	char digits[24];
	char *end;
	uint64_t number;

	snprintf(digits, sizeof(digits), "%.*s", (int)(shown->length < 23 ? shown->length : 23), shown->data);
	number = strtoull(digits, &end, 10);
	if (end == digits || (*end && *end != ' '))
		violation(conn, op, code, "a counter that is no number: %s", digits);
	counter_number(conn, op, code, number, false);
}

static void take_value(struct conn *conn, const struct op *op, uint32_t code, const struct shown *shown)
{
	conn->thread->hits++;
	switch (key_area(code)) {
	case AREA_OWNED:
		owned_shown(conn, op, code, shown);
		break;
	case AREA_SHARED:
		shared_shown(conn, op, code, shown);
		break;
	case AREA_COUNTER:
		counter_shown(conn, op, code, shown);
		break;
	}
}

/* Which of the keys that are still to come is it? Those before it were missed. */
static uint32_t match_key(struct conn *conn, struct op *op, const char *name, size_t length)
{
	char expected[KEY_NAME_MAX + 1];

	for (; op->next < op->count; op->next++) {
		uint32_t code = op->codes ? op->codes[op->next] : op->code;

		if (key_name(code, expected) == length && memcmp(expected, name, length) == 0) {
			op->next++;
			return code;
		}
		take_miss(conn, op, code);
	}
	violation(conn, op, op->code, "a value of a key that was not asked for (any more): %.*s", (int)length, name);
}

/* "VALUE key flags length [id]" and the bytes. False: not all there yet. */
static bool take_one_value(struct conn *conn, struct op *op, const char *text, size_t length)
{
	char line[KEY_NAME_MAX + 128], name[KEY_NAME_MAX + 1];
	size_t after = length + 2;
	struct shown shown = { 0 };
	uint32_t code;
	int fields;

	if (!starts_with(text, length, "VALUE ") || length >= sizeof(line))
		violation(conn, op, op->code, "unexpected answer: %.*s", (int)(length < 100 ? length : 100), text);
	memcpy(line, text, length);
	line[length] = 0;
	fields = sscanf(line, "VALUE %250s %" SCNu32 " %zu %" SCNu64, name, &shown.flags, &shown.length, &shown.cas);
	if (fields != (op->with_cas ? 4 : 3))
		violation(conn, op, op->code, "a value's line with %d fields: %s", fields, line);
	if (wire_available(&conn->wire) < after + shown.length + 2)
		return false;
	shown.data = wire_at(&conn->wire, after);
	if (memcmp(shown.data + shown.length, "\r\n", 2) != 0)
		violation(conn, op, op->code, "no end of line behind a value: %s", line);
	code = match_key(conn, op, name, strlen(name));
	take_value(conn, op, code, &shown);
	wire_consume(&conn->wire, after + shown.length + 2);
	return true;
}

/* True: the whole answer was taken. */
static bool take_values(struct conn *conn, struct op *op)
{
	const char *text;
	size_t length;

	while ((text = wire_line(&conn->wire, 0, &length)) != NULL) {
		if (length == 3 && memcmp(text, "END", 3) == 0) {
			for (; op->next < op->count; op->next++)
				take_miss(conn, op, op->codes ? op->codes[op->next] : op->code);
			wire_consume(&conn->wire, length + 2);
			if (op->version) /* a noreply set went before it */
				shared_end(conn, op, op->code, op->version, true, now_ns());
			return true;
		}
		if (!take_one_value(conn, op, text, length))
			return false;
	}
	return false;
}

/* ---- all ------------------------------------------------------------------------------------- */

bool check_answers(struct conn *conn)
{
	while (conn->count > 0) {
		struct op *op = &conn->queue[conn->head];

		if (op->kind == OP_QUIT)
			break;
		if (op->noreply) {
			if (key_area(op->code) == AREA_OWNED)
				owned_silent(conn, op);
		} else if (op->kind == OP_GET || op->kind == OP_GAT) {
			if (!take_values(conn, op))
				break;
		} else if (!take_line(conn, op)) {
			break;
		}
		pop(conn);
	}
	if (wire_available(&conn->wire) > 0 && (conn->count == 0 || conn->queue[conn->head].kind == OP_QUIT))
		violation(conn, NULL, 0, "bytes that no command asked for: %.*s",
			  (int)(wire_available(&conn->wire) < 80 ? wire_available(&conn->wire) : 80),
			  wire_at(&conn->wire, 0));
	if (!conn->wire.ended)
		return true;
	if (conn->count == 1 && conn->queue[conn->head].kind == OP_QUIT) {
		pop(conn);
		return false;
	}
	violation(conn, conn->count ? &conn->queue[conn->head] : NULL, conn->count ? conn->queue[conn->head].code : 0,
		  "the server closed the connection with %u commands unanswered", conn->count);
}
