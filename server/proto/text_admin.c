/* SPDX-License-Identifier: BSD-3-Clause */
/* The text protocol's commands that name no key. */
#include <string.h>

#include "base/events.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "conf/conf.h"
#include "server/admin/admin.h"
#include "server/admin/watch.h"
#include "server/proto/text_internal.h"
#include "server/store/move.h"

#define NO_FLUSH "CLIENT_ERROR flush_all not allowed\r\n"
#define MEGABYTE (1u << 20)
#define LEAST_MEGABYTES 8u /* memcached's least value of cache_memlimit */

static void stats_row(struct stats_out *out, const char *name, const char *value)
{
	struct conn *conn = out->context;

	conn_put_text(conn, "STAT ");
	conn_put(conn, name, (uint32_t)strnlen(name, 256));
	conn_put_text(conn, " ");
	conn_put(conn, value, (uint32_t)strnlen(value, CONN_ROOM_BYTES));
	conn_put_text(conn, "\r\n");
}

static void stats_line(struct stats_out *out, const char *line, size_t length)
{
	conn_put(out->context, line, (uint32_t)length);
}

enum text_step text_stats(struct conn *conn, const struct text_command *command)
{
	struct stats_out out = { .row = stats_row, .line = stats_line, .context = conn, .asking = conn };
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
	struct reply *reply;

	if (conn->server->conf->disable_flush_all) {
		ctr_add(CTR_cmd_flush, 1); /* the store counts only those that it executes */
		if (!command->noreply)
			conn_put_text(conn, NO_FLUSH);
		return TEXT_NEXT;
	}
	reply = conn_reply_take(conn);
	if (!reply)
		return TEXT_CLOSE;
	reply->kind = TEXT_KIND_LINE;
	reply->noreply = command->noreply;
	if (proto_flush(conn, reply, command->exptime > 0 ? command->exptime : 0))
		text_answer(conn, reply);
	return TEXT_NEXT;
}

const char *text_flush_error(const struct conn *conn)
{
	ctr_add(CTR_cmd_flush, 1);
	return conn->server->conf->disable_flush_all ? NO_FLUSH : text_error_answer(TEXT_ERROR_EXPTIME);
}

enum text_step text_version(struct conn *conn, const struct text_command *command)
{
	const char *number = conn->server->conf->compat_version;

	(void)command;
	conn_put_text(conn, "VERSION ");
	conn_put(conn, number, (uint32_t)strlen(number));
	conn_put_text(conn, "\r\n");
	return TEXT_NEXT;
}

enum text_step text_meta_noop(struct conn *conn, const struct text_command *command)
{
	(void)command;
	conn_put_text(conn, "MN\r\n");
	conn_end_pipeline(conn);
	return TEXT_NEXT;
}

/* ---- words ------------------------------------------------------------------------------------- */

static bool is_word(const char *word, size_t length, const char *text)
{
	return length == strlen(text) && memcmp(word, text, length) == 0;
}

enum text_step text_say(struct conn *conn, const char *line)
{
	conn_put(conn, line, (uint32_t)strlen(line));
	return TEXT_NEXT;
}

bool text_is_noreply(const struct text_command *command, unsigned most)
{
	const char *at = command->rest, *word = "";
	unsigned count = 0;
	size_t length = 0;

	while (text_word(&at, command->rest_end, &word, &length))
		if (++count > most)
			return false;
	return is_word(word, length, "noreply");
}

enum text_step text_say_as_asked(struct conn *conn, const struct text_command *command, const char *line)
{
	bool silent = text_grammar_of(conn) == TEXT_GRAMMAR_NEW && text_is_noreply(command, TEXT_WORDS_MOST);

	return silent ? TEXT_NEXT : text_say(conn, line);
}

/* ---- the daemon as a whole ------------------------------------------------------------------------ */

/* "shutdown graceful" ends as "shutdown" does, which loses nothing either. */
enum text_step text_shutdown(struct conn *conn, const struct text_command *command)
{
	const char *at = command->rest, *word;
	size_t length;

	if (text_grammar_of(conn) == TEXT_GRAMMAR_NEW && text_is_noreply(command, TEXT_WORDS_MOST))
		return TEXT_NEXT; /* neither form of it has room for a noreply */
	if (!conn->server->conf->enable_shutdown)
		return text_say(conn, conf_compat_from(conn->server->conf, COMPAT_SHUTDOWN)
					      ? "SERVER_ERROR: shutdown not enabled\r\n"
					      : "ERROR: shutdown not enabled\r\n");
	if (text_word(&at, command->rest_end, &word, &length) && !is_word(word, length, "graceful"))
		return text_say(conn, "CLIENT_ERROR invalid shutdown mode\r\n");
	log_notice("a client has asked the daemon to shut down");
	admin_shutdown(conn->server);
	conn->reason = CONN_REASON_SHUTDOWN;
	return TEXT_CLOSE;
}

static const char *set_memory_limit(struct conn *conn, const struct text_command *command)
{
	enum text_grammar grammar = text_grammar_of(conn);
	const char *at = command->rest, *word;
	uint64_t number, megabytes;
	size_t length;

	if (!text_word(&at, command->rest_end, &word, &length) || !text_unsigned(grammar, word, length, &number) ||
	    (grammar == TEXT_GRAMMAR_NEW && number > UINT32_MAX))
		return "ERROR\r\n";
	if (grammar == TEXT_GRAMMAR_OLD && text_word(&at, command->rest_end, &word, &length) &&
	    text_word(&at, command->rest_end, &word, &length))
		return "ERROR\r\n";
	megabytes = (uint32_t)number; /* as memcached did: the lower 32 bits */
	if (megabytes < LEAST_MEGABYTES)
		return "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
	if (megabytes > 1000000000)
		return "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
	if (store_set_memory_limit(conn->server->store, megabytes * MEGABYTE) != FS_OK)
		return "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
	log_event(LOG_LEVEL_NOTICE, "memory_limit", LOG_FIELDS(LOG_NUMBER("MEGABYTES", megabytes)),
		  "a client has set the memory limit to %llu MiB", (unsigned long long)megabytes);
	if (events_on(EVENT_SYSEVENTS))
		events_emit(EVENT_SYSEVENTS, "type=memory_limit megabytes=%llu", (unsigned long long)megabytes);
	return "OK\r\n";
}

enum text_step text_cache_memlimit(struct conn *conn, const struct text_command *command)
{
	const char *answer = set_memory_limit(conn, command);

	return text_is_noreply(command, 2) ? TEXT_NEXT : text_say(conn, answer);
}

enum text_step text_refresh_certs(struct conn *conn, const struct text_command *command)
{
	char reason[256] = "";

	(void)command;
	if (!admin_has_certificates(conn->server))
		return text_say(conn, "Error TLS not enabled\r\n");
	if (admin_refresh_certificates(conn->server, reason) == FS_OK)
		return text_say(conn, "OK\r\n");
	if (strncmp(reason, "Error ", 6) != 0) /* most reasons are in memcached's words */
		conn_put_text(conn, "Error ");
	conn_put(conn, reason, (uint32_t)strlen(reason));
	return text_say(conn, "\r\n");
}

/* "flash_move PATH [BYTES [BYTES_PER_SECOND]]". BYTES 0: as in struct store_move. NULL: reason says why it was refused. */
static const char *begin_move(struct conn *conn, const char *word, size_t length, const struct text_command *command,
			      char reason[256])
{
	char path[STORE_MOVE_PATH_BYTES];
	struct store_move move = { .path = path, .rate = conn->server->conf->move_rate };
	const char *at = word + length;

	if (length >= sizeof(path))
		return "CLIENT_ERROR the path is too long\r\n";
	memcpy(path, word, length);
	path[length] = '\0';
	if (text_word(&at, command->rest_end, &word, &length) &&
	    !text_unsigned(text_grammar_of(conn), word, length, &move.flash_bytes))
		return "CLIENT_ERROR bad size\r\n";
	if (text_word(&at, command->rest_end, &word, &length) &&
	    !text_unsigned(text_grammar_of(conn), word, length, &move.rate))
		return "CLIENT_ERROR bad rate\r\n";
	if (store_move_begin(conn->server->store, &move, reason) != FS_OK)
		return NULL;
	log_notice("a client has asked the daemon to move its flash to %s", path);
	return "OK\r\n";
}

/* Without --enable-move there is no such command, as in memcached. */
enum text_step text_flash_move(struct conn *conn, const struct text_command *command)
{
	const char *at = command->rest, *word, *answer;
	char reason[256];
	size_t length;

	if (!conn->server->conf->enable_move || !text_word(&at, command->rest_end, &word, &length))
		return text_say_as_asked(conn, command, "ERROR\r\n");
	if (is_word(word, length, "cancel"))
		answer = store_move_cancel(conn->server->store) == FS_OK ? "OK\r\n" : "NOT_FOUND\r\n";
	else
		answer = begin_move(conn, word, length, command, reason);
	if (answer)
		return text_say(conn, answer);
	conn_put_text(conn, "SERVER_ERROR ");
	conn_put(conn, reason, (uint32_t)strlen(reason));
	return text_say(conn, "\r\n");
}

/* ---- watch ------------------------------------------------------------------------------------- */

enum text_step text_watch(struct conn *conn, const struct text_command *command)
{
	const char *at = command->rest, *word;
	unsigned streams = 0;
	bool noreply = text_grammar_of(conn) == TEXT_GRAMMAR_OLD && text_is_noreply(command, TEXT_WORDS_MOST);
	size_t length;

	if (conn->server->conf->disable_watch)
		return noreply ? TEXT_NEXT : text_say(conn, "CLIENT_ERROR watch commands not allowed\r\n");
	if (!conn_begins_pipeline(conn))
		return noreply ? TEXT_NEXT : text_say(conn, "ERROR cannot pipeline other commands before watch\r\n");
	while (text_word(&at, command->rest_end, &word, &length)) {
		enum event_stream stream = events_find(word, length);

		if (stream == EVENT_STREAMS)
			return noreply ? TEXT_NEXT : text_say(conn, "ERROR\r\n");
		streams |= 1u << stream;
	}
	switch (watch_join(conn->server->watch, conn, streams ? streams : 1u << EVENT_FETCHERS)) {
	case FS_OK:
		return TEXT_LEND;
	case FS_EFULL:
		return text_say(conn, "WATCHER_TOO_MANY log watcher limit reached\r\n");
	default:
		return text_say(conn, "WATCHER_FAILED failed to add log watcher\r\n");
	}
}

enum text_step text_quit(struct conn *conn, const struct text_command *command)
{
	(void)command;
	conn->reason = CONN_REASON_NORMAL;
	return TEXT_CLOSE;
}
