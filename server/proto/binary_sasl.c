/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logging in by SASL: the mechanisms, and an exchange of one step or more. A client that begins an exchange is logged
 * out until the exchange has succeeded.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/metrics/counters.h"
#include "server/auth/auth.h"
#include "server/proto/binary_internal.h"

#define MECHANISM_MAX 32u

static void forget_user(struct conn *conn)
{
	conn->authenticated = false;
	mem_free(conn->user);
	conn->user = NULL;
}

/* Without -S these commands don't exist. */
static enum binary_step answer_unknown(struct conn *conn, const struct binary_command *command)
{
	binary_put_status(conn, command, BINARY_STATUS_UNKNOWN);
	if (command->value_length > BINARY_BODY_MAX)
		return BINARY_CLOSE;
	value_skip(conn, command->value_length);
	return BINARY_NEXT;
}

enum binary_step binary_sasl_list(struct conn *conn, const struct binary_command *command)
{
	const char *mechanisms;

	if (!conn->server->auth || !auth_has_sasl(conn->server->auth))
		return answer_unknown(conn, command);
	mechanisms = auth_sasl_mechanisms(conn->server->auth);
	forget_user(conn);
	if (!*mechanisms)
		binary_put_status(conn, command, BINARY_STATUS_AUTH);
	else
		binary_put(conn, command, BINARY_STATUS_OK, NULL, 0, mechanisms, (uint32_t)strlen(mechanisms));
	return BINARY_NEXT;
}

static void answer_refused(struct conn *conn, const struct binary_command *command)
{
	ctr_add(CTR_auth_errors, 1);
	binary_put_status(conn, command, BINARY_STATUS_AUTH);
}

static void answer_ok(struct conn *conn, const struct binary_command *command)
{
	static const char text[] = "Authenticated";
	const char *user = auth_sasl_user(conn->session.sasl);
	size_t bytes = strlen(user) + 1;

	must(!conn->user && !conn->authenticated); /* binary_sasl_exchange has logged the client out */
	conn->user = mem_alloc(bytes);
	if (!conn->user) {
		answer_refused(conn, command);
		return;
	}
	memcpy(conn->user, user, bytes);
	conn->authenticated = true;
	binary_put(conn, command, BINARY_STATUS_OK, NULL, 0, text, sizeof(text) - 1);
}

static void sasl_exchange(struct conn *conn, const struct binary_command *command, const char *data)
{
	char mechanism[MECHANISM_MAX + 1];
	const char *challenge = NULL;
	size_t length = 0;

	must(command->key_length <= MECHANISM_MAX);
	memcpy(mechanism, command->key, command->key_length);
	mechanism[command->key_length] = 0;
	ctr_add(CTR_auth_cmds, 1);
	switch (auth_sasl_step(conn->server->auth, &conn->session.sasl,
			       command->id == BINARY_SASL_AUTH ? mechanism : NULL, data, command->value_length,
			       &challenge, &length)) {
	case AUTH_SASL_OK:
		answer_ok(conn, command);
		break;
	case AUTH_SASL_CONTINUE:
		if (length <= CONN_ROOM_BYTES - BINARY_HEADER_BYTES) {
			binary_put(conn, command, BINARY_STATUS_AUTH_CONTINUE, NULL, 0, challenge, (uint32_t)length);
			break;
		}
		__attribute__((fallthrough));
	default:
		answer_refused(conn, command);
	}
}

enum binary_step binary_sasl_exchange(struct conn *conn, const struct binary_command *command)
{
	struct input *input = &conn->input;
	char *data = input->bytes + input->start;

	if (!conn->server->auth || !auth_has_sasl(conn->server->auth))
		return answer_unknown(conn, command);
	forget_user(conn);
	if (command->value_length > BINARY_SASL_MAX) {
		if (command->value_length > BINARY_BODY_MAX)
			return BINARY_CLOSE;
		binary_put_status(conn, command,
				  store_too_large(conn->server->store, command->key_length, command->value_length)
					  ? BINARY_STATUS_NO_MEMORY_AUTH
					  : BINARY_STATUS_AUTH);
		value_skip(conn, command->value_length);
		return BINARY_NEXT;
	}
	input->start += command->value_length;
	if (command->key_length > MECHANISM_MAX)
		binary_put_status(conn, command, BINARY_STATUS_INVALID);
	else
		sasl_exchange(conn, command, data);
	explicit_bzero(data, command->value_length);
	return BINARY_NEXT;
}
