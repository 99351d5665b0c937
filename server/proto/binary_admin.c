/* SPDX-License-Identifier: BSD-3-Clause */
/* The binary protocol's commands that name no key of an object. */
#include <string.h>

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
	if (conn->server->conf->disable_flush_all) { /* what memcached says of it */
		binary_put_status(conn, command, BINARY_STATUS_AUTH);
		return BINARY_NEXT;
	}
	store_flush_all(conn->server->store, (int64_t)command->exptime);
	if (!(command->flags & BINARY_QUIET))
		binary_put_status(conn, command, BINARY_STATUS_OK);
	return BINARY_NEXT;
}

enum binary_step binary_verbosity(struct conn *conn, const struct binary_command *command)
{
	log_set_level(command->level >= 2   ? LOG_LEVEL_DEBUG
		      : command->level == 1 ? LOG_LEVEL_INFO
					    : LOG_LEVEL_NOTICE);
	binary_put_status(conn, command, BINARY_STATUS_OK);
	return BINARY_NEXT;
}

enum binary_step binary_quit(struct conn *conn, const struct binary_command *command)
{
	if (!(command->flags & BINARY_QUIET))
		binary_put_status(conn, command, BINARY_STATUS_OK);
	return BINARY_CLOSE;
}

/* ---- stat ------------------------------------------------------------------------------------ */

struct stat_rows {
	struct conn *conn;
	const struct binary_command *command;
};

static void stat_row(struct stats_out *out, const char *name, const char *value)
{
	const struct stat_rows *rows = out->context;
	uint32_t name_length = (uint32_t)strnlen(name, BINARY_KEY_MAX);

	binary_put(rows->conn, rows->command, BINARY_STATUS_OK, name, name_length, value,
		   (uint32_t)strnlen(value, CONN_ROOM_BYTES - BINARY_HEADER_BYTES - name_length));
}

/* memcached looks at no more of these two than their first word's letters. */
static void shorten(const char *key, uint32_t *length, const char *word)
{
	uint32_t letters = (uint32_t)strlen(word);

	if (*length > letters && memcmp(key, word, letters) == 0)
		*length = letters;
}

/* A row for each figure, and a packet without any at the end. */
enum binary_step binary_stat(struct conn *conn, const struct binary_command *command)
{
	struct stat_rows rows = { conn, command };
	struct stats_out out = { .row = stat_row, .context = &rows };
	const char *key = command->key ? command->key : "", *answer;
	uint32_t length = command->key_length;

	shorten(key, &length, "settings");
	shorten(key, &length, "reset");
	answer = admin_stats(conn->server, key, key + length, &out);
	if (strcmp(answer, "END\r\n") == 0 || strcmp(answer, "RESET\r\n") == 0 || strcmp(answer, "OK\r\n") == 0)
		binary_put(conn, command, BINARY_STATUS_OK, NULL, 0, NULL, 0);
	else
		binary_put_status(conn, command, BINARY_STATUS_NOT_FOUND);
	return BINARY_NEXT;
}
