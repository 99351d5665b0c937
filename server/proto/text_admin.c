/* SPDX-License-Identifier: BSD-3-Clause */
/* The text protocol's commands that name no key. */
#include <string.h>

#include "base/log.h"
#include "server/admin/admin.h"
#include "server/proto/text_internal.h"

static void stats_row(struct stats_out *out, const char *name, const char *value)
{
	struct conn *conn = out->context;

	conn_put_text(conn, "STAT ");
	conn_put(conn, name, (uint32_t)strnlen(name, 256));
	conn_put_text(conn, " ");
	conn_put(conn, value, (uint32_t)strnlen(value, CONN_ROOM_BYTES));
	conn_put_text(conn, "\r\n");
}

enum text_step text_stats(struct conn *conn, const struct text_command *command)
{
	struct stats_out out = { .row = stats_row, .context = conn };
	const char *answer = admin_stats(conn->server, command->rest, command->rest_end, &out);

	conn_put(conn, answer, (uint32_t)strlen(answer));
	return TEXT_NEXT;
}

enum text_step text_verbosity(struct conn *conn, const struct text_command *command)
{
	log_set_level(command->number >= 2   ? LOG_LEVEL_DEBUG
		      : command->number == 1 ? LOG_LEVEL_INFO
					     : LOG_LEVEL_NOTICE);
	if (!command->noreply)
		conn_put_text(conn, "OK\r\n");
	return TEXT_NEXT;
}

enum text_step text_flush_all(struct conn *conn, const struct text_command *command)
{
	store_flush_all(conn->server->store, command->exptime > 0 ? command->exptime : 0);
	if (!command->noreply)
		conn_put_text(conn, "OK\r\n");
	return TEXT_NEXT;
}

enum text_step text_version(struct conn *conn, const struct text_command *command)
{
	(void)command;
	conn_put_text(conn, "VERSION " SERVER_MEMCACHED_VERSION "\r\n");
	return TEXT_NEXT;
}

enum text_step text_meta_noop(struct conn *conn, const struct text_command *command)
{
	(void)command;
	conn_put_text(conn, "MN\r\n");
	return TEXT_NEXT;
}

enum text_step text_shutdown(struct conn *conn, const struct text_command *command)
{
	(void)command;
	conn_put_text(conn, "ERROR: shutdown not enabled\r\n");
	return TEXT_NEXT;
}

enum text_step text_quit(struct conn *conn, const struct text_command *command)
{
	(void)conn;
	(void)command;
	return TEXT_CLOSE;
}
