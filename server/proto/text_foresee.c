/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks ahead at the keys of the commands in the input. It is a rough scan of the most frequent commands, as it must be
 * much cheaper than the cache misses that it hides. It ends at the first text that it doesn't understand. A word that
 * it takes for a key by mistake costs only time: the parser decides.
 */
#include "server/proto/text_internal.h"

#define LINE_BYTES 320 /* no line that is worth looking at is longer */

enum line { OTHER, GET, SET, META_GET, META_SET };

/* Which command starts at `at`? Reads four bytes. */
static enum line kind_of(const char *at)
{
	if (memcmp(at, "get ", 4) == 0)
		return GET;
	if (memcmp(at, "set ", 4) == 0)
		return SET;
	if (at[0] == 'm' && at[2] == ' ')
		return at[1] == 'g' ? META_GET : at[1] == 's' ? META_SET : OTHER;
	return OTHER;
}

/* Returns the start of the command behind a data block of so many bytes. NULL: the input ends before it. */
static const char *after_body(const char *newline, const char *end, uint64_t bytes)
{
	return bytes + 2 < (uint64_t)(end - newline) ? newline + 1 + bytes + 2 : NULL;
}

/* set: the line's last number is the length of the data block. */
static uint64_t last_number(const char *newline)
{
	const char *digit = newline - (newline[-1] == '\r');
	uint64_t number = 0, power = 1;

	while (*--digit >= '0' && *digit <= '9' && power < CONN_INPUT_MAX_BYTES) {
		number += power * (uint64_t)(*digit - '0');
		power *= 10;
	}
	return number;
}

/* ms: the length is the word behind the key. */
static uint64_t next_number(const char *space)
{
	uint64_t number = 0;

	while (*++space >= '0' && *space <= '9' && number < CONN_INPUT_MAX_BYTES)
		number = number * 10 + (uint64_t)(*space - '0');
	return number;
}

/* Finds the key of a get with one key, a set, an mg or an ms. Moves *at to the next command, or to NULL if that isn't
   in the input. */
static bool foresee_line(const char **at, const char *end, const char **key, size_t *length)
{
	const char *limit = end - *at > LINE_BYTES ? *at + LINE_BYTES : end, *stop;
	const char *newline = limit - *at > 4 ? memchr(*at + 4, '\n', (size_t)(limit - *at - 4)) : NULL;
	enum line line = newline ? kind_of(*at) : OTHER;

	if (line == OTHER)
		return false;
	*key = *at + (line == GET || line == SET ? 4 : 3);
	stop = memchr(*key, ' ', (size_t)(newline - *key));
	/* A multiget is looked ahead at block by block (text_keys.c). */
	if (line == GET ? stop != NULL : line != META_GET && !stop)
		return false;
	if (line == SET)
		*at = after_body(newline, end, last_number(newline));
	else
		*at = line == META_SET ? after_body(newline, end, next_number(stop)) : newline + 1;
	if (!stop)
		stop = newline - (newline[-1] == '\r');
	*length = (size_t)(stop - *key);
	return *length <= TEXT_KEY_MAX;
}

unsigned text_foresee(const struct conn *conn, struct foreseen *out, unsigned most)
{
	const struct input *input = &conn->input;
	const char *at = input->bytes + input->start, *end = input->bytes + input->end;
	unsigned count = 0;
	size_t length;

	/* An unfinished line was looked through already, and may be long. */
	if (conn->session.state != SESSION_LINE || conn->session.scanned > 0)
		return 0;
	while (count < most && at && foresee_line(&at, end, &out[count].key, &length)) {
		out[count].length = (uint32_t)length;
		out[count].hash = store_hash(conn->server->store, out[count].key, length);
		count++;
	}
	return count;
}
