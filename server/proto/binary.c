/* SPDX-License-Identifier: BSD-3-Clause */
/* The binary protocol: finds the packets in the input and hands them to their handlers. */
#include "server/auth/auth.h"
#include "server/proto/binary_internal.h"

#include "base/log.h"

/* A barrier waits for all commands before it, and all commands after it see its effect. */
static const struct handler {
	enum binary_step (*run)(struct conn *conn, const struct binary_command *command);
	bool barrier;
} handlers[BINARY_IDS] = {
	[BINARY_GET] = { binary_key, false },
	[BINARY_GAT] = { binary_key, false },
	[BINARY_TOUCH] = { binary_key, false },
	[BINARY_DELETE] = { binary_key, false },
	[BINARY_INCR] = { binary_key, false },
	[BINARY_DECR] = { binary_key, false },
	[BINARY_SET] = { binary_store, false },
	[BINARY_ADD] = { binary_store, false },
	[BINARY_REPLACE] = { binary_store, false },
	[BINARY_APPEND] = { binary_store, false },
	[BINARY_PREPEND] = { binary_store, false },
	[BINARY_NOOP] = { binary_noop, false },
	[BINARY_VERSION] = { binary_version, false },
	[BINARY_STAT] = { binary_stat, true },
	[BINARY_FLUSH] = { binary_flush, true },
	[BINARY_VERBOSITY] = { binary_verbosity, true },
	[BINARY_QUIT] = { binary_quit, true },
	[BINARY_SASL_LIST] = { binary_sasl_list, true },
	[BINARY_SASL_AUTH] = { binary_sasl_exchange, true },
	[BINARY_SASL_STEP] = { binary_sasl_exchange, true },
};

/* Must this command wait for one before it? Then it has no effect yet. */
static bool packet_must_wait(struct conn *conn, const struct binary_command *command)
{
	if (conn->pending == 0)
		return false;
	if (handlers[command->id].barrier)
		return !conn_settled(conn);
	if (!command->key || conn->ordered == 0 ||
	    !conn_must_wait(conn, store_hash(conn->server->store, command->key, command->key_length)))
		return false;
	conn->wait = CONN_WAIT_REPLIES;
	return true;
}

/* For -vv. */
static void __attribute__((cold, noinline)) log_packet(const struct conn *conn, const struct binary_command *command)
{
	log_debug("<%d binary opcode 0x%02x, key of %u bytes, value of %u", conn_number(conn), command->opcode,
		  command->key_length, command->value_length);
}

/*
 * Answers the error of a header, which is used up. It closes the connection, except after an unknown opcode, whose body
 * is skipped.
 */
static enum binary_step refuse_header(struct conn *conn, const struct binary_command *command, enum binary_error error)
{
	if (error == BINARY_ERROR_MAGIC)
		return BINARY_CLOSE;
	if (error == BINARY_ERROR_LENGTHS) {
		binary_put_status(conn, command, BINARY_STATUS_UNKNOWN);
		return BINARY_CLOSE;
	}
	if (!conn->authenticated && !(command->flags & BINARY_OPEN)) {
		binary_put_status(conn, command, BINARY_STATUS_AUTH);
		return BINARY_CLOSE;
	}
	if (error != BINARY_ERROR_UNKNOWN) {
		binary_put_status(conn, command, BINARY_STATUS_INVALID);
		return BINARY_CLOSE;
	}
	binary_put_status(conn, command, BINARY_STATUS_UNKNOWN);
	if (command->body_length > BINARY_BODY_MAX)
		return BINARY_CLOSE;
	value_skip(conn, command->body_length);
	return BINARY_NEXT;
}

/* Returns how many bytes of a packet must be in the input before it is run: header, extras and key; for logging in, the
   value too. */
static uint32_t needed_bytes(const struct binary_command *command)
{
	uint32_t head = BINARY_HEADER_BYTES + command->extras_length + command->key_length;
	bool exchange = command->id == BINARY_SASL_AUTH || command->id == BINARY_SASL_STEP;

	return exchange && command->value_length <= BINARY_SASL_MAX ? head + command->value_length : head;
}

/* Runs the next packet's command. *step is BINARY_NEXT when it is done with the packet's head. */
static enum conn_verdict next_packet(struct conn *conn, enum binary_step *step)
{
	struct input *input = &conn->input;
	uint32_t there = input->end - input->start;
	struct binary_command command;
	enum binary_error error;
	const char *bytes;

	*step = BINARY_WAIT;
	if (there < BINARY_HEADER_BYTES)
		return CONN_MORE;
	bytes = input->bytes + input->start;
	error = binary_parse_header(bytes, &command);
	if (error == BINARY_ERROR_NONE && !conn->authenticated && !(command.flags & BINARY_OPEN))
		error = BINARY_ERROR_SHAPE; /* refuse_header answers this one by AUTH */
	if (error == BINARY_ERROR_NONE && there < needed_bytes(&command))
		return CONN_MORE;
	if (conn->turns == 0)
		return CONN_YIELD;
	if (!conn_may_go(conn))
		return CONN_WAIT;
	if (error == BINARY_ERROR_NONE) {
		binary_parse_extras(&command, bytes + BINARY_HEADER_BYTES);
		if (packet_must_wait(conn, &command))
			return CONN_WAIT;
	}
	if (__builtin_expect(log_level() >= LOG_LEVEL_DEBUG, 0) && error != BINARY_ERROR_MAGIC)
		log_packet(conn, &command);
	conn->turns--;
	input->start += BINARY_HEADER_BYTES;
	if (__builtin_expect(error != BINARY_ERROR_NONE, 0)) {
		*step = refuse_header(conn, &command, error);
	} else {
		must(command.id > BINARY_NONE && command.id < BINARY_IDS && handlers[command.id].run);
		input->start += command.extras_length + command.key_length;
		must(input->start <= input->end);
		*step = handlers[command.id].run(conn, &command);
	}
	return CONN_CLOSE;
}

static enum conn_verdict binary_input(struct conn *conn)
{
	for (;;) {
		enum conn_verdict verdict;
		enum binary_step step;

		switch (conn->session.state) {
		case SESSION_BODY:
			if (!binary_store_go_on(conn))
				return CONN_MORE;
			break;
		case SESSION_SWALLOW:
			if (!binary_skip_go_on(conn))
				return CONN_MORE;
			break;
		default:
			must(conn->session.state == SESSION_LINE);
			verdict = next_packet(conn, &step);
			if (step != BINARY_NEXT)
				return verdict;
		}
	}
}

static void binary_abandon(struct conn *conn)
{
	auth_sasl_free(conn->session.sasl);
	conn->session.sasl = NULL;
	value_abandon(conn);
}

const struct protocol proto_binary = {
	.name = "binary",
	.input = binary_input,
	.foresee = binary_foresee,
	.compose = binary_compose,
	.abandon = binary_abandon,
};
