/* SPDX-License-Identifier: BSD-3-Clause */
/* The text protocol: finds the commands in the input and hands them to their handlers. */
#include "server/proto/text_internal.h"

#include "base/events.h"
#include "base/log.h"
#include "conf/conf.h"
#include "server/proto/meta_internal.h"

#define LOGGED_BYTES 500u /* of a command's line */

/* A barrier waits for all commands before it, and all commands after it see its effect. */
static const struct handler {
	enum text_step (*run)(struct conn *conn, const struct text_command *command);
	bool barrier;
} handlers[TEXT_COMMANDS] = {
	[TEXT_GET] = { text_keys_begin, false },
	[TEXT_GETS] = { text_keys_begin, false },
	[TEXT_BGET] = { text_keys_begin, false },
	[TEXT_GAT] = { text_keys_begin, false },
	[TEXT_GATS] = { text_keys_begin, false },
	[TEXT_SET] = { text_store_begin, false },
	[TEXT_ADD] = { text_store_begin, false },
	[TEXT_REPLACE] = { text_store_begin, false },
	[TEXT_APPEND] = { text_store_begin, false },
	[TEXT_PREPEND] = { text_store_begin, false },
	[TEXT_CAS] = { text_store_begin, false },
	[TEXT_INCR] = { text_change, false },
	[TEXT_DECR] = { text_change, false },
	[TEXT_DELETE] = { text_change, false },
	[TEXT_TOUCH] = { text_change, false },
	[TEXT_VERSION] = { text_version, false },
	[TEXT_META_GET] = { meta_run, false },
	[TEXT_META_SET] = { meta_run, false },
	[TEXT_META_DELETE] = { meta_run, false },
	[TEXT_META_ARITHMETIC] = { meta_run, false },
	[TEXT_META_DEBUG] = { meta_run, false },
	[TEXT_META_NOOP] = { text_meta_noop, false },
	[TEXT_STATS] = { text_stats, true },
	[TEXT_FLUSH_ALL] = { text_flush_all, true },
	[TEXT_VERBOSITY] = { text_verbosity, true },
	[TEXT_SHUTDOWN] = { text_shutdown, true },
	[TEXT_CACHE_MEMLIMIT] = { text_cache_memlimit, true },
	[TEXT_WATCH] = { text_watch, true },
	[TEXT_LRU_CRAWLER] = { text_lru_crawler, true },
	[TEXT_LRU] = { text_lru, true },
	[TEXT_SLABS] = { text_slabs, true },
	[TEXT_EXTSTORE] = { text_extstore, true },
	[TEXT_REFRESH_CERTS] = { text_refresh_certs, true },
	[TEXT_FLASH_MOVE] = { text_flash_move, true },
	[TEXT_QUIT] = { text_quit, true },
};

/* ---- finding commands ------------------------------------------------------------------------ */

/* Must this command wait for one before it? Then it has no effect yet. Gets ask again for each of their keys. */
static bool line_must_wait(struct conn *conn, const struct text_command *command)
{
	if (conn->pending == 0)
		return false;
	if (handlers[command->id].barrier)
		return !conn_settled(conn);
	if (conn->ordered > 0 && handlers[command->id].run == meta_run)
		return meta_must_wait(conn, command);
	if (!command->key || conn->ordered == 0 ||
	    !conn_must_wait(conn, store_hash(conn->server->store, command->key, command->key_length)))
		return false;
	conn->wait = CONN_WAIT_REPLIES;
	return true;
}

/* Is this a line of HTTP, from a browser or from a server that was tricked into a request? Its body must not be taken
   for commands. */
static bool is_http(const struct conn *conn, const char *line, size_t length)
{
	size_t least = text_grammar_of(conn) == TEXT_GRAMMAR_NEW ? 5 : 6; /* of the last word */
	const char *last = memrchr(line, ' ', length);

	return last && (size_t)(line + length - last) > least && memcmp(last + 1, "HTTP/", 5) == 0;
}

/* For -vv and "watch rawcmds". Bytes that are not printable are shown as '?'. */
static void __attribute__((cold, noinline)) log_command(const struct conn *conn, const char *line, size_t length)
{
	char text[LOGGED_BYTES + 1];
	size_t shown = length < LOGGED_BYTES ? length : LOGGED_BYTES;

	for (size_t i = 0; i < shown; i++)
		text[i] = line[i] >= ' ' && line[i] <= '~' ? line[i] : '?';
	text[shown] = 0;
	log_debug("<%d %s%s", conn_number(conn), text, shown < length ? " ..." : "");
	if (events_on(EVENT_RAWCMDS))
		events_emit(EVENT_RAWCMDS, "type=rawcmd cfd=%d cmd=%s%s", conn_number(conn), text,
			    shown < length ? " ..." : "");
}

/* The command of this line starts: the line is used up, and the command counts for the turn. */
static inline void begin_command(struct conn *conn, const char *line, size_t length, const char *newline)
{
	if (__builtin_expect(log_level() >= LOG_LEVEL_DEBUG || events_on(EVENT_RAWCMDS), 0))
		log_command(conn, line, length);
	conn->turns--;
	conn->input.start = (uint32_t)(newline + 1 - conn->input.bytes);
}

/* Answers the error of a line, behind the value if one follows. */
static void refuse_line(struct conn *conn, const struct text_command *command, enum text_error error)
{
	const char *answer = text_error_answer(error);

	if (error == TEXT_ERROR_INCOMPLETE && text_grammar_of(conn) == TEXT_GRAMMAR_NEW)
		answer = text_error_answer(TEXT_ERROR_FORMAT);
	else if (error == TEXT_ERROR_EXPTIME && command->id == TEXT_FLUSH_ALL)
		answer = text_flush_error(conn);
	if (command->value_follows) {
		text_skip_value(conn, command->value_length);
		conn->session.late = command->noreply ? NULL : answer;
	} else if (!command->noreply) {
		conn_put(conn, answer, (uint32_t)strlen(answer));
	}
}

/* Runs the command of the line [input.start, newline). */
static enum text_step run_line(struct conn *conn, const char *newline)
{
	const char *line = conn->input.bytes + conn->input.start;
	size_t length = (size_t)(newline - line);
	struct text_command command;
	enum text_error error;

	if (length > 0 && line[length - 1] == '\r')
		length--;
	if (__builtin_expect(!conn->authenticated, 0))
		return text_auth_line(conn, line, length, newline);
	error = text_parse(text_grammar_of(conn), line, length, &command);
	if (error == TEXT_ERROR_OK) {
		if (line_must_wait(conn, &command))
			return TEXT_WAIT;
		begin_command(conn, line, length, newline);
		debug_must(command.id < TEXT_COMMANDS);
		if (handlers[command.id].run)
			return handlers[command.id].run(conn, &command);
		error = TEXT_ERROR_UNKNOWN;
	} else {
		begin_command(conn, line, length, newline);
	}
	if (error == TEXT_ERROR_UNKNOWN && is_http(conn, line, length)) {
		log_debug("<%d is closed: the client speaks HTTP", conn_number(conn));
		return TEXT_CLOSE;
	}
	refuse_line(conn, &command, error);
	return TEXT_NEXT;
}

/* The input has no line end yet. The connection is closed if no command may be as long as this. */
static enum conn_verdict part_of_line(struct conn *conn)
{
	const struct input *input = &conn->input;
	uint32_t length = input->end - input->start;

	conn->session.scanned = length;
	if (length > (conn->authenticated ? CONN_INPUT_MAX_BYTES : CONN_BUFFER_BYTES))
		return CONN_CLOSE;
	if (length > TEXT_LINE_MAX && !text_may_be_long(input->bytes + input->start, length))
		return CONN_CLOSE;
	return CONN_MORE;
}

static enum conn_verdict verdict_of(enum text_step step)
{
	switch (step) {
	case TEXT_WAIT:
		return CONN_WAIT;
	case TEXT_YIELD:
		return CONN_YIELD;
	case TEXT_LEND:
		return CONN_LEND;
	default:
		return CONN_CLOSE;
	}
}

/* Runs the next line's command. *step is TEXT_NEXT when it is done with the line. */
static enum conn_verdict next_command_line(struct conn *conn, enum text_step *step)
{
	struct input *input = &conn->input;
	uint32_t from = input->start + conn->session.scanned;
	const char *newline = from < input->end ? memchr(input->bytes + from, '\n', input->end - from) : NULL;

	*step = TEXT_WAIT;
	if (!newline)
		return input->start < input->end ? part_of_line(conn) : CONN_MORE;
	if (conn->turns == 0)
		return CONN_YIELD;
	if (!conn_may_go(conn))
		return CONN_WAIT;
	*step = run_line(conn, newline);
	if (*step != TEXT_NEXT) {
		if (*step == TEXT_LEND) /* the line is used up: a new one begins when the connection is back */
			conn->session.scanned = 0;
		return verdict_of(*step);
	}
	conn->session.scanned = 0;
	return CONN_MORE;
}

static enum conn_verdict text_input(struct conn *conn)
{
	for (;;) {
		enum conn_verdict verdict;
		enum text_step step;

		switch (conn->session.state) {
		case SESSION_LINE:
			verdict = next_command_line(conn, &step);
			if (step != TEXT_NEXT)
				return verdict;
			break;
		case SESSION_KEYS:
			step = text_keys_go_on(conn);
			if (step != TEXT_NEXT)
				return verdict_of(step);
			conn->session.scanned = 0;
			break;
		case SESSION_BODY:
			if (!text_store_go_on(conn))
				return CONN_MORE;
			break;
		case SESSION_TOKEN:
			if (!text_auth_go_on(conn))
				return CONN_MORE;
			break;
		case SESSION_SWALLOW:
			if (!value_skip_go_on(conn))
				return CONN_MORE;
			break;
		default:
			must(false);
		}
	}
}

const struct protocol proto_text = {
	.name = "text",
	.input = text_input,
	.foresee = text_foresee,
	.compose = text_compose,
	.abandon = value_abandon,
};
