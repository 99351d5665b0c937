/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text protocol before the client has logged in (-Y). The only command is a "set" whose value is "user password";
 * its key, flags and exptime are ignored. In the new grammar the password is all that follows the first space, and a
 * line that is too short to be one of memcached's longer commands closes the connection.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/metrics/counters.h"
#include "server/auth/auth.h"
#include "server/proto/text_internal.h"

#define TOKEN_MAX CONN_BUFFER_BYTES /* a longer one is refused */
#define SHORTEST_LINE 6 /* bytes without the line feed, new grammar */

/* Reads a length; one that is far beyond TOKEN_MAX saturates. False: it is no number. */
static bool read_length(const char *word, size_t length, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < length; i++) {
		if (word[i] < '0' || word[i] > '9')
			return false;
		if (*out <= TOKEN_MAX)
			*out = *out * 10 + (uint64_t)(word[i] - '0');
	}
	return length > 0;
}

/* Is this "set <key> <flags> <exptime> <bytes> ..."? */
static bool is_login(const char *line, size_t length, uint64_t *bytes)
{
	const char *at = line, *end = line + length, *word;
	size_t word_length;

	if (!text_word(&at, end, &word, &word_length) || word_length != 3 || memcmp(word, "set", 3) != 0)
		return false;
	for (unsigned i = 0; i < 4; i++)
		if (!text_word(&at, end, &word, &word_length))
			return false;
	return read_length(word, word_length, bytes);
}

enum text_step text_auth_line(struct conn *conn, const char *line, size_t length, const char *newline)
{
	bool newer = text_grammar_of(conn) == TEXT_GRAMMAR_NEW;
	uint64_t bytes;

	must(conn->session.state == SESSION_LINE && !conn->authenticated);
	if (newer && newline - line < SHORTEST_LINE)
		return TEXT_CLOSE;
	conn->turns--;
	conn->input.start = (uint32_t)(newline + 1 - conn->input.bytes);
	if (!is_login(line, length, &bytes)) {
		conn_put_text(conn, "CLIENT_ERROR unauthenticated\r\n");
		return TEXT_NEXT;
	}
	if (bytes > TOKEN_MAX) {
		if (!newer)
			return TEXT_CLOSE;
		conn_put_text(conn, "CLIENT_ERROR auth token too long\r\n");
		return TEXT_NEXT;
	}
	conn->session.state = SESSION_TOKEN;
	conn->session.swallow = bytes;
	return TEXT_NEXT;
}

static bool log_in(struct conn *conn, const char *user, size_t user_length, const char *password, size_t length)
{
	char *name;

	must(!conn->user && !conn->authenticated);
	if (!auth_check(conn->server->auth, user, user_length, password, length))
		return false;
	name = mem_zalloc(user_length + 1);
	if (!name)
		return false;
	memcpy(name, user, user_length);
	conn->user = name;
	conn->authenticated = true;
	return true;
}

struct login {
	const char *user, *password;
	size_t user_length, password_length;
};

/* Splits the value, up to the first zero byte in it, into words. Those after the first two are ignored. */
static bool split_old(const char *token, size_t length, struct login *out)
{
	const char *at = token, *end = token + strnlen(token, length);

	return text_word(&at, end, &out->user, &out->user_length) &&
	       text_word(&at, end, &out->password, &out->password_length);
}

static bool split_new(const char *token, size_t length, struct login *out)
{
	const char *space = memchr(token, ' ', length);

	if (!space)
		return false;
	out->user = token;
	out->user_length = (size_t)(space - token);
	out->password = space + 1;
	out->password_length = length - out->user_length - 1;
	return true;
}

static void answer_token(struct conn *conn, const char *token, size_t length)
{
	bool newer = text_grammar_of(conn) == TEXT_GRAMMAR_NEW;
	struct login login = { 0 };

	if (!(newer ? split_new : split_old)(token, length, &login)) {
		conn_put_text(conn, "CLIENT_ERROR bad authentication token format\r\n");
		return;
	}
	ctr_add(CTR_auth_cmds, 1);
	if (log_in(conn, login.user, login.user_length, login.password, login.password_length)) {
		conn_put_text(conn, "STORED\r\n");
		return;
	}
	ctr_add(CTR_auth_errors, 1);
	conn_put_text(conn, "CLIENT_ERROR authentication failure\r\n");
}

bool text_auth_go_on(struct conn *conn)
{
	struct input *input = &conn->input;
	uint32_t length = (uint32_t)conn->session.swallow;
	char *token;

	must(conn->session.state == SESSION_TOKEN && conn->session.swallow <= TOKEN_MAX);
	if (input->end - input->start < length + 2)
		return false;
	token = input->bytes + input->start;
	if (memcmp(token + length, "\r\n", 2) == 0)
		answer_token(conn, token, length);
	else
		conn_put_text(conn, "CLIENT_ERROR bad command line termination\r\n");
	explicit_bzero(token, length);
	input->start += length + 2;
	conn->session.state = SESSION_LINE;
	conn->session.swallow = 0;
	return true;
}
