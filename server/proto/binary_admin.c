/* SPDX-License-Identifier: BSD-3-Clause */
/* The binary protocol's commands that name no key of an object. */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "conf/conf.h"
#include "server/admin/admin.h"
#include "server/proto/binary_internal.h"

enum binary_step binary_noop(struct conn *conn, const struct binary_command *command)
{
	binary_put_status(conn, command, BINARY_STATUS_OK);
	return BINARY_NEXT;
}

enum binary_step binary_version(struct conn *conn, const struct binary_command *command)
{
	const char *version = conn->server->conf->compat_version;

	binary_put(conn, command, BINARY_STATUS_OK, NULL, 0, version, (uint32_t)strlen(version));
	return BINARY_NEXT;
}

enum binary_step binary_flush(struct conn *conn, const struct binary_command *command)
{
	struct binary_own *own;
	struct reply *reply;

	if (conn->server->conf->disable_flush_all) { /* memcached's answer */
		binary_put_status(conn, command, BINARY_STATUS_AUTH);
		return BINARY_NEXT;
	}
	reply = conn_reply_take(conn);
	if (!reply)
		return BINARY_CLOSE;
	own = (void *)reply->own;
	own->opaque = command->opaque;
	own->opcode = command->opcode;
	own->with_key = own->silent = false;
	reply->noreply = command->flags & BINARY_QUIET;
	if (proto_flush(conn, reply, (int64_t)command->exptime))
		binary_answer(conn, reply);
	return BINARY_NEXT;
}

enum binary_step binary_verbosity(struct conn *conn, const struct binary_command *command)
{
	log_set_level(command->level >= 2 ? LOG_LEVEL_DEBUG : command->level == 1 ? LOG_LEVEL_INFO : LOG_LEVEL_NOTICE);
	binary_put_status(conn, command, BINARY_STATUS_OK);
	return BINARY_NEXT;
}

enum binary_step binary_quit(struct conn *conn, const struct binary_command *command)
{
	if (!(command->flags & BINARY_QUIET))
		binary_put_status(conn, command, BINARY_STATUS_OK);
	conn->reason = CONN_REASON_NORMAL;
	return BINARY_CLOSE;
}

/* ---- stat ------------------------------------------------------------------------------------ */

struct stat_rows {
	struct conn *conn;
	const struct binary_command *command;
	char *text; /* lines that are no rows; one packet has all of them */
	size_t length, capacity;
	bool failed; /* out of memory for them */
};

static void stat_row(struct stats_out *out, const char *name, const char *value)
{
	const struct stat_rows *rows = out->context;
	uint32_t name_length = (uint32_t)strnlen(name, BINARY_KEY_MAX);

	binary_put(rows->conn, rows->command, BINARY_STATUS_OK, name, name_length, value,
		   (uint32_t)strnlen(value, CONN_ROOM_BYTES - BINARY_HEADER_BYTES - name_length));
}

static void stat_line(struct stats_out *out, const char *line, size_t length)
{
	struct stat_rows *rows = out->context;

	if (rows->capacity - rows->length < length) {
		size_t capacity = (rows->length + length) * 2;
		char *text = mem_realloc(rows->text, capacity);

		if (!text) {
			rows->failed = true;
			return;
		}
		rows->text = text;
		rows->capacity = capacity;
	}
	memcpy(rows->text + rows->length, line, length);
	rows->length += length;
}

/* "detail dump": one packet has the text protocol's lines as its value. */
static void put_text(const struct stat_rows *rows)
{
	static const char name[] = "detailed";
	char head[BINARY_HEADER_BYTES + sizeof(name) - 1];

	binary_make_header(head, rows->command, BINARY_STATUS_OK, sizeof(name) - 1,
			   (uint32_t)(sizeof(name) - 1 + rows->length));
	memcpy(head + BINARY_HEADER_BYTES, name, sizeof(name) - 1);
	conn_put(rows->conn, head, sizeof(head));
	for (size_t at = 0; at < rows->length; at += CONN_ROOM_BYTES) {
		size_t left = rows->length - at;

		conn_put(rows->conn, rows->text + at, (uint32_t)(left < CONN_ROOM_BYTES ? left : CONN_ROOM_BYTES));
	}
}

static bool starts_with(const char *key, uint32_t length, const char *word)
{
	return length >= strlen(word) && memcmp(key, word, strlen(word)) == 0;
}

/*
 * Is there a report of this name? As in memcached, only the first letters of "settings" and "reset" are compared, and
 * all of the others; only the text protocol has "cachedump".
 */
static bool find_report(const char *key, uint32_t *length)
{
	static const char settings[] = "settings", reset[] = "reset";

	if (starts_with(key, *length, settings))
		*length = sizeof(settings) - 1;
	else if (starts_with(key, *length, reset))
		*length = sizeof(reset) - 1;
	else if (starts_with(key, *length, "detail "))
		return *length > 7 && key[7] != ' ' && !memchr(key, 0, *length);
	return !memchr(key, ' ', *length) && !memchr(key, 0, *length) && !starts_with(key, *length, "cachedump");
}

/* The answer is a packet for each row, and an empty one at the end. */
enum binary_step binary_stat(struct conn *conn, const struct binary_command *command)
{
	struct stat_rows rows = { .conn = conn, .command = command };
	struct stats_out out = { .row = stat_row, .line = stat_line, .context = &rows, .asking = conn };
	const char *key = command->key ? command->key : "", *answer;
	uint32_t length = command->key_length;

	if (!find_report(key, &length)) {
		binary_put_status(conn, command, BINARY_STATUS_NOT_FOUND);
		return BINARY_NEXT;
	}
	answer = admin_stats(conn->server, key, key + length, &out);
	if (strcmp(answer, STATS_END) == 0 && starts_with(key, length, "detail")) {
		stat_line(&out, answer, strlen(answer));
		if (!rows.failed)
			put_text(&rows);
	}
	if (rows.failed)
		binary_put_status(conn, command, BINARY_STATUS_NO_MEMORY);
	else if (strstr(answer, "ERROR"))
		binary_put_status(conn, command, BINARY_STATUS_NOT_FOUND);
	else
		binary_put_status(conn, command, BINARY_STATUS_OK);
	mem_free(rows.text);
	return BINARY_NEXT;
}
