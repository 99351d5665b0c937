/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers as they come, in pieces of any size:
 *
 *   STORED\r\n                     of a set
 *   VALUE KEY FLAGS SIZE\r\n       of a get: any number of these, in the order of its keys,
 *   <SIZE bytes>\r\n
 *   END\r\n                        and then this
 *   ERROR, CLIENT_ERROR, SERVER_ERROR ...\r\n   instead of either, or of what is left of it
 *
 * Values are compared as they pass, and never gathered.
 */
#include <stdio.h>
#include <string.h>

#include "tools/bench/load_internal.h"

#define SHOWN_BYTES 80 /* of an answer, in a message */

/* Copies the start of the bytes for a line of text, without control characters. */
static int shown(const char *bytes, size_t length)
{
	size_t most = length < SHOWN_BYTES ? length : SHOWN_BYTES, count = 0;

	while (count < most && bytes[count] >= ' ' && bytes[count] <= '~')
		count++;
	return (int)count;
}

static int no_answer(const char *what, const char *bytes, size_t length)
{
	fprintf(stderr, "flashield-bench: the server sent %s: \"%.*s\"\n", what, shown(bytes, length), bytes);
	return FS_ECORRUPT;
}

static void remember(struct load *load, const char *what, const char *text, size_t length)
{
	if (!load->result.first_error[0])
		snprintf(load->result.first_error, sizeof(load->result.first_error), "%s%.*s", what,
			 shown(text, length), text);
}

static void command_done(struct load *load, struct connection *connection)
{
	const struct sent_command *command = &connection->commands[connection->command];
	struct load_result *result = &load->result;
	uint64_t took_ns = load->now_ns - connection->start_ns;

	result->operations += command->keys;
	if (command->is_set) {
		result->sets++;
		hist_record(result->set_latency, took_ns);
	} else {
		result->gets += command->keys;
		hist_record(result->get_latency, took_ns);
		if (connection->any_hit)
			hist_record(result->hit_latency, took_ns);
	}
	connection->any_hit = false;
	connection->key = connection->key_end;
	connection->command++;
	if (connection->command < connection->commands_used)
		connection->key_end += connection->commands[connection->command].keys;
}

/* The key of the command that an answer's key is. They come in the order of the request, so a key that is
   passed by was missed. False: it is none of those that are left. */
static bool key_find(struct load *load, struct connection *connection, const char *text, uint64_t *number)
{
	for (unsigned i = connection->key; i < connection->key_end; i++) {
		if (memcmp(connection->keys[i].text, text, load->keys.key_bytes) == 0) {
			*number = connection->keys[i].number;
			connection->key = i + 1;
			return true;
		}
	}
	return false;
}

/* Digits up to a blank or the line's end; moves *at behind them. False: there are none, or too many. */
static bool digits_take(const char **at, const char *end, uint32_t *number)
{
	uint64_t value = 0;
	const char *digit = *at;

	for (; digit < end && *digit >= '0' && *digit <= '9'; digit++) {
		value = value * 10 + (uint64_t)(*digit - '0');
		if (value > UINT32_MAX - 2)
			return false;
	}
	if (digit == *at)
		return false;
	*at = digit;
	*number = (uint32_t)value;
	return true;
}

/* "VALUE KEY FLAGS SIZE", without the line's end. */
static int value_begin(struct load *load, struct connection *connection, const char *line, size_t length)
{
	const char *end = line + length, *at = line + 6, *blank = memchr(at, ' ', length - 6);
	uint32_t flags, size;
	bool known;

	if (connection->commands[connection->command].is_set || !blank)
		return no_answer("an unasked value", line, length);
	known = (size_t)(blank - at) == load->keys.key_bytes &&
		key_find(load, connection, at, &connection->value_number);
	at = blank + 1;
	if (!digits_take(&at, end, &flags) || at == end || *at++ != ' ' || !digits_take(&at, end, &size) || at != end)
		return no_answer("a damaged line", line, length);
	connection->in_value = true;
	connection->value_at = 0;
	connection->value_end = size + 2;
	connection->value_wrong = !known || flags != 0 || load->spec.expect_misses ||
				  size != value_size(&load->keys, connection->value_number);
	if (!connection->value_wrong) {
		connection->value_whole = value_is_checked_whole(connection->value_number);
		value_parts(&load->keys, connection->value_number, &connection->value);
	} else {
		remember(load, "wrong: ", line, length);
	}
	return 0;
}

static int value_done(struct load *load, struct connection *connection)
{
	char key[KEY_BYTES_MOST];

	load->result.hits++;
	connection->any_hit = true;
	connection->in_value = false;
	if (connection->value_wrong) {
		load->result.wrong++;
		load_key_write(&load->keys, connection->value_number, key);
		remember(load, "wrong bytes in the value of ", key, load->keys.key_bytes);
	}
	return 0;
}

/* Some bytes of the value or of the line end behind it. Returns how many were taken. */
static int value_take(struct load *load, struct connection *connection, const char *bytes, size_t length, size_t *taken)
{
	uint32_t size = connection->value_end - 2, rest = connection->value_end - connection->value_at;
	size_t count = length < rest ? length : rest;
	size_t inside = connection->value_at >= size ? 0 : size - connection->value_at;

	if (inside > count)
		inside = count;
	if (!connection->value_wrong && inside &&
	    !value_matches(&connection->value, connection->value_at, bytes, inside, connection->value_whole))
		connection->value_wrong = true;
	for (size_t i = inside; i < count; i++) {
		if (bytes[i] != (connection->value_at + i == size ? '\r' : '\n'))
			return no_answer("a value that doesn't end where it should", bytes, count);
	}
	connection->value_at += (uint32_t)count;
	*taken = count;
	return connection->value_at == connection->value_end ? value_done(load, connection) : 0;
}

static bool line_is(const char *line, size_t length, const char *text)
{
	return length == strlen(text) && memcmp(line, text, length) == 0;
}

static bool line_begins(const char *line, size_t length, const char *text)
{
	return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

/* A line without its end. */
static int line_take(struct load *load, struct connection *connection, const char *line, size_t length)
{
	bool is_set;

	if (!connection_awaits(connection))
		return no_answer("what nobody asked for", line, length);
	is_set = connection->commands[connection->command].is_set;
	if (line_begins(line, length, "VALUE "))
		return value_begin(load, connection, line, length);
	if (!is_set && line_is(line, length, "END")) {
		command_done(load, connection);
	} else if (is_set && line_is(line, length, "STORED")) {
		load->result.stored++;
		command_done(load, connection);
	} else if (line_begins(line, length, "SERVER_ERROR") || line_begins(line, length, "CLIENT_ERROR") ||
		   line_is(line, length, "ERROR") || (is_set && line_is(line, length, "NOT_STORED"))) {
		load->result.errors++;
		remember(load, "", line, length);
		command_done(load, connection);
	} else {
		return no_answer("a line that is no answer", line, length);
	}
	return 0;
}

/* A line's bytes up to its end, or all there are. */
static int line_gather(struct load *load, struct connection *connection, const char *bytes, size_t length,
		       size_t *taken)
{
	const char *end = memchr(bytes, '\n', length);
	size_t count = end ? (size_t)(end - bytes) + 1 : length;

	*taken = count;
	if (connection->line_bytes || !end) {
		if (count > sizeof(connection->line) - connection->line_bytes)
			return no_answer("a line without an end", bytes, count);
		memcpy(connection->line + connection->line_bytes, bytes, count);
		connection->line_bytes += (uint32_t)count;
		if (!end)
			return 0;
		bytes = connection->line;
		count = connection->line_bytes;
		connection->line_bytes = 0;
	}
	if (count < 2 || bytes[count - 2] != '\r')
		return no_answer("a line that ends without CR", bytes, count);
	return line_take(load, connection, bytes, count - 2);
}

int answer_take(struct load *load, struct connection *connection, const char *bytes, size_t length)
{
	int code = 0;

	while (length > 0 && code == 0) {
		size_t taken = 0;

		if (connection->in_value)
			code = value_take(load, connection, bytes, length, &taken);
		else
			code = line_gather(load, connection, bytes, length, &taken);
		bytes += taken;
		length -= taken;
	}
	return code;
}
