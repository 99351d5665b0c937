/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/replay/play.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/value.h"

#define MAX_TTL_S 2592000u /* memcached takes more than 30 days for a date */
#define COMMAND_BYTES (KEY_MAX_BYTES + 64)

static size_t op_key(const struct player *player, const struct op *op, char key[KEY_MAX_BYTES])
{
	return trace_key_write(key, player->spool->apps[op->app].number, op->ordinal, op->key_size);
}

static char *put_number(char *out, uint32_t value)
{
	char digits[10];
	int length = 0;

	do
		digits[length++] = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	while (length > 0)
		*out++ = digits[--length];
	return out;
}

static char *put_text(char *out, const char *text, size_t length)
{
	memcpy(out, text, length);
	return out + length;
}

static void write_command(struct player *player, struct conn *conn, const struct op *op)
{
	bool stores = op->kind == OP_SET || op->kind == OP_ADD;
	char *out = buffer_reserve(&conn->out, COMMAND_BYTES + (stores ? (size_t)op->value_size + 2 : 0));
	char *start = out, *key;
	size_t key_length;

	if (op->kind == OP_DELETE)
		out = put_text(out, "delete ", 7);
	else
		out = put_text(out, op->kind == OP_GET ? "get " : op->kind == OP_SET ? "set " : "add ", 4);
	key = out;
	key_length = op_key(player, op, key);
	out += key_length;
	if (stores) {
		out = put_text(out, " 0 ", 3);
		out = put_number(out, op->ttl_s);
		*out++ = ' ';
		out = put_number(out, op->value_size);
		out = put_text(out, "\r\n", 2);
		value_write(out, op->value_size, trace_key_hash(key, key_length), op->version);
		out += op->value_size;
		if (op->measured) {
			player->measure.bytes_set += key_length + op->value_size;
			player->measure.long_keys += key_length > op->key_size;
		}
	}
	out = put_text(out, "\r\n", 2);
	conn->out.end += (size_t)(out - start);
}

/* Gives the operation its version, decides whether others wait for it, and puts it into the output. */
static void send_op(struct player *player, struct conn *conn, struct op *op)
{
	uint32_t *state = &player->keys[op->ordinal];
	uint32_t version = *state & KEY_VERSION;

	switch (op->kind) {
	case OP_GET:
		op->version = version;
		op->exclusive = player->options->mode != MODE_LITERAL && !(*state & KEY_PRESENT);
		break;
	case OP_SET:
		op->version = (version + 1) & KEY_VERSION;
		*state = op->version | KEY_PRESENT;
		break;
	case OP_ADD:
		op->version = (version + 1) & KEY_VERSION;
		op->exclusive = true;
		break;
	default:
		/* An earlier value must not come back: a hit on it is an error. */
		*state = (version + 1) & KEY_VERSION;
	}
	if (op->exclusive)
		*state |= KEY_UNRESOLVED;
	op->sent_ns = player->now_ns;
	write_command(player, conn, op);
	conn->ring[conn->tail++ & conn->ring_mask] = *op;
}

static uint32_t play_ttl(const struct replay_options *options, uint32_t ttl_s)
{
	double scaled;

	if (!ttl_s || options->ttl == TTL_NONE)
		return 0;
	scaled = options->ttl == TTL_SCALED ? ttl_s / options->speed : ttl_s;
	return scaled < 1 ? 1 : scaled > MAX_TTL_S ? MAX_TTL_S : (uint32_t)scaled;
}

void play_request(struct player *player, struct conn *conn, const struct schedule_item *item, bool measured)
{
	static const uint8_t kinds[] = {
		[TRACE_GET] = OP_GET, [TRACE_SET] = OP_SET, [TRACE_ADD] = OP_ADD, [TRACE_DELETE] = OP_DELETE
	};
	const struct spool_record *record = item->record;
	struct op *op;

	if (conn->backlog_end == CONN_BACKLOG) {
		memmove(conn->backlog, conn->backlog + conn->backlog_start,
			conn_backlog(conn) * sizeof(*conn->backlog));
		conn->backlog_end -= conn->backlog_start;
		conn->backlog_start = 0;
	}
	op = &conn->backlog[conn->backlog_end++];
	*op = (struct op){
		.ordinal = (uint64_t)record->key * player->options->copies + item->copy,
		.value_size = record->value_size,
		.ttl_s = play_ttl(player->options, record->ttl_s),
		.app = (uint16_t)record->time_app,
		.kind = kinds[record->op],
		.key_size = record->key_size,
		.measured = measured,
	};
	if (conn_under_way(conn) < player->options->depth)
		play_backlog(player, conn);
}

void play_backlog(struct player *player, struct conn *conn)
{
	uint32_t kept = conn->backlog_start, at = conn->backlog_start;

	for (; at < conn->backlog_end && conn_under_way(conn) < player->options->depth; at++) {
		struct op *op = &conn->backlog[at];

		if (player->keys[op->ordinal] & KEY_UNRESOLVED)
			conn->backlog[kept++] = *op;
		else
			send_op(player, conn, op);
	}
	/* Requests that keep waiting close up with the rest, in order. */
	kept -= conn->backlog_start;
	memmove(&conn->backlog[at - kept], &conn->backlog[conn->backlog_start], kept * sizeof(struct op));
	conn->backlog_start = at - kept;
	if (conn->backlog_start == conn->backlog_end)
		conn->backlog_start = conn->backlog_end = 0;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* One answer. */
struct answer {
	enum { ANSWER_MISS, ANSWER_HIT, ANSWER_STORED, ANSWER_NOT_STORED, ANSWER_DELETED, ANSWER_ERROR } kind;
	const char *line;
	size_t line_length;
	const char *value;
	uint32_t value_length;
	bool key_differs;
};

static void report_wrong(struct player *player, const struct op *op, const char *what)
{
	char key[KEY_MAX_BYTES];
	size_t length = op_key(player, op, key);

	if (player->measure.wrong + player->measure.older > 10)
		return;
	fprintf(stderr, "\nflashield-replay: get %.*s: %s (version %" PRIu32 " was written last)\n", (int)length, key,
		what, op->version);
}

static void check_hit(struct player *player, const struct op *op, const struct answer *answer)
{
	char key[KEY_MAX_BYTES];
	size_t length = op_key(player, op, key);
	enum value_verdict verdict =
		value_check(answer->value, answer->value_length, trace_key_hash(key, length), op->version);

	if (answer->key_differs)
		verdict = VALUE_WRONG;
	switch (verdict) {
	case VALUE_GOOD:
		player->measure.checked++;
		player->measure.from_before += op->version == 0;
		break;
	case VALUE_OLDER:
		player->measure.older++;
		report_wrong(player, op, "an older value");
		break;
	case VALUE_NEWER:
		player->measure.wrong++;
		report_wrong(player, op, "a version that was never written");
		break;
	default:
		player->measure.wrong++;
		report_wrong(player, op,
			     answer->key_differs ? "an answer for another key"
						 : "a value that is not this key's, or damaged");
	}
}

static void count_error(struct measure *measure, const struct answer *answer)
{
	if (memmem(answer->line, answer->line_length, "too large", 9))
		measure->too_large++;
	else if (memmem(answer->line, answer->line_length, "memory", 6))
		measure->out_of_memory++;
	else if (memcmp(answer->line, "SERVER", 6) == 0)
		measure->server_errors++;
	else
		measure->client_errors++;
}

static void count_answer(struct player *player, const struct op *op, const struct answer *answer)
{
	struct measure *measure = &player->measure;
	struct app_counts *app = &measure->apps[op->app];
	enum latency_kind kind = op->kind == OP_DELETE ? LATENCY_DELETE : LATENCY_SET;

	if (answer->kind == ANSWER_ERROR)
		count_error(measure, answer);
	if (!op->fill) {
		app->requests++;
		measure->all.requests++;
	}
	if (op->kind == OP_GET) {
		bool hit = answer->kind == ANSWER_HIT;

		kind = hit ? LATENCY_HIT : LATENCY_MISS;
		app->gets++;
		app->hits += hit;
		measure->all.gets++;
		measure->all.hits += hit;
		measure->bytes_read += hit ? answer->value_length : 0;
	} else if (op->kind == OP_DELETE) {
		measure->deletes++;
	} else {
		app->sets++;
		measure->all.sets++;
		measure->fills += op->fill;
		measure->not_stored += answer->kind == ANSWER_NOT_STORED;
	}
	if (answer->kind != ANSWER_ERROR)
		hist_record(measure->latency[kind], player->now_ns - op->sent_ns);
}

static void fill_after_miss(struct player *player, struct conn *conn, const struct op *get)
{
	struct op set = *get;

	if (player->options->mode == MODE_LITERAL || get->value_size == SPOOL_UNKNOWN_SIZE)
		return;
	/* The miss of another get has filled the key meanwhile. */
	if ((player->keys[get->ordinal] & KEY_VERSION) != get->version)
		return;
	set.kind = OP_SET;
	set.fill = true;
	set.exclusive = false;
	send_op(player, conn, &set);
}

/* Takes the operation that has its answer, the oldest one, from the ring. */
static void finish_op(struct player *player, struct conn *conn, const struct answer *answer)
{
	struct op op = conn->ring[conn->head++ & conn->ring_mask];
	uint32_t *state = &player->keys[op.ordinal];

	if (op.exclusive)
		*state &= ~KEY_UNRESOLVED;
	if (answer->kind == ANSWER_HIT && player->options->check_values)
		check_hit(player, &op, answer);
	if (op.measured)
		count_answer(player, &op, answer);
	player->answered += !op.fill;
	switch (answer->kind) {
	case ANSWER_HIT:
		*state |= KEY_PRESENT;
		break;
	case ANSWER_MISS:
		*state &= ~KEY_PRESENT;
		fill_after_miss(player, conn, &op);
		break;
	case ANSWER_STORED:
		if (op.kind == OP_ADD)
			*state = op.version | KEY_PRESENT;
		break;
	case ANSWER_NOT_STORED:
		*state |= KEY_PRESENT;
		break;
	case ANSWER_ERROR:
		*state &= ~KEY_PRESENT;
		break;
	default:
		break;
	}
}

static int not_an_answer(struct player *player, const struct op *op, const char *text, size_t length)
{
	static const char *const names[] = { "get", "set", "add", "delete" };
	int shown = 0;

	while (shown < 60 && (size_t)shown < length && text[shown] >= 32 && text[shown] < 127)
		shown++;
	snprintf(player->error, sizeof(player->error), "the server's answer to %s is none of the protocol: \"%.*s\"",
		 names[op->kind], shown, text);
	return FS_EINVAL;
}

static bool begins(const char *text, size_t length, const char *word)
{
	size_t word_length = strlen(word);

	return length >= word_length && memcmp(text, word, word_length) == 0;
}

static bool parse_size(const char **text, const char *end, uint32_t *value)
{
	const char *at = *text;
	uint64_t number = 0;

	while (at < end && *at >= '0' && *at <= '9' && number < 1ull << 32)
		number = number * 10 + (uint64_t)(*at++ - '0');
	if (at == *text || number > TRACE_MAX_VALUE_BYTES)
		return false;
	*value = (uint32_t)number;
	*text = at;
	return true;
}

/* Parses "VALUE <key> <flags> <bytes>\r\n<data>\r\nEND\r\n". Returns its bytes, 0 if more are needed. */
static int parse_value(struct player *player, struct conn *conn, const struct op *op, const char *text, size_t length,
		       const char *newline, struct answer *answer)
{
	const char *key = text + 6, *at = memchr(key, ' ', (size_t)(newline - key));
	char expected[KEY_MAX_BYTES];
	size_t expected_length, total;
	uint32_t flags;

	if (!at)
		return not_an_answer(player, op, text, length);
	expected_length = op_key(player, op, expected);
	answer->key_differs = (size_t)(at - key) != expected_length || memcmp(key, expected, expected_length) != 0;
	at++;
	if (!parse_size(&at, newline, &flags) || *at++ != ' ' || !parse_size(&at, newline, &answer->value_length))
		return not_an_answer(player, op, text, length);
	total = (size_t)(newline + 1 - text) + answer->value_length + 7;
	if (length < total) {
		buffer_reserve(&conn->in, total - length);
		return 0;
	}
	answer->kind = ANSWER_HIT;
	answer->value = newline + 1;
	if (memcmp(answer->value + answer->value_length, "\r\nEND\r\n", 7) != 0)
		return not_an_answer(player, op, answer->value + answer->value_length, 7);
	return (int)total;
}

/* Returns the bytes of the next answer, 0 if it isn't whole yet, or a negative error. */
static int parse_answer(struct player *player, struct conn *conn, struct answer *answer)
{
	const struct op *op = &conn->ring[conn->head & conn->ring_mask];
	const char *text = conn->in.bytes + conn->in.start;
	size_t length = conn->in.end - conn->in.start;
	const char *newline = memchr(text, '\n', length);

	if (!newline)
		return length > 2048 ? not_an_answer(player, op, text, length) : 0;
	answer->line = text;
	answer->line_length = (size_t)(newline - text);
	if (op->kind == OP_GET && begins(text, length, "VALUE "))
		return parse_value(player, conn, op, text, length, newline, answer);
	if (op->kind == OP_GET && begins(text, length, "END\r"))
		answer->kind = ANSWER_MISS;
	else if (op->kind == OP_DELETE && (begins(text, length, "DELETED") || begins(text, length, "NOT_FOUND")))
		answer->kind = ANSWER_DELETED;
	else if ((op->kind == OP_SET || op->kind == OP_ADD) && begins(text, length, "STORED"))
		answer->kind = ANSWER_STORED;
	else if (op->kind == OP_ADD && begins(text, length, "NOT_STORED"))
		answer->kind = ANSWER_NOT_STORED;
	else if (begins(text, length, "SERVER_ERROR") || begins(text, length, "CLIENT_ERROR") ||
		 begins(text, length, "ERROR"))
		answer->kind = ANSWER_ERROR;
	else
		return not_an_answer(player, op, text, length);
	return (int)answer->line_length + 1;
}

int play_answers(struct player *player, struct conn *conn)
{
	while (conn->in.start < conn->in.end) {
		struct answer answer = { 0 };
		int taken;

		if (conn_under_way(conn) == 0) {
			snprintf(player->error, sizeof(player->error), "the server sent an answer to no request");
			return FS_EINVAL;
		}
		taken = parse_answer(player, conn, &answer);
		if (taken <= 0)
			return taken;
		finish_op(player, conn, &answer);
		conn->in.start += (size_t)taken;
		conn->last_answer_ns = player->now_ns;
	}
	return FS_OK;
}
