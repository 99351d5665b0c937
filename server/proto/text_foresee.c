/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking ahead: which keys do the commands that lie in the input name? A rough scan of the most frequent
 * commands, to be much cheaper than the cache misses it hides; whatever it doesn't understand ends it, and
 * what it takes for a key by mistake costs only time. The parser decides.
 */
#include "server/proto/text_internal.h"

#define LINE_BYTES 320 /* no line that is worth looking at is longer */

/* Where the command after a storage command begins: its last number is the length of the data block. NULL:
   not in the input. */
static const char *after_body(const char *newline, const char *end)
{
	const char *digit = newline - (newline[-1] == '\r');
	uint64_t bytes = 0, place = 1;

	while (*--digit >= '0' && *digit <= '9' && place < CONN_INPUT_MAX_BYTES) {
		bytes += place * (uint64_t)(*digit - '0');
		place *= 10;
	}
	return bytes + 2 < (uint64_t)(end - newline) ? newline + 1 + bytes + 2 : NULL;
}

/* The key of a get with one key, or of a set; where the next command begins, NULL if that is not here. */
static bool foresee_line(const char **at, const char *end, const char **key, size_t *length)
{
	const char *limit = end - *at > LINE_BYTES ? *at + LINE_BYTES : end, *stop;
	const char *newline = limit - *at > 5 ? memchr(*at + 5, '\n', (size_t)(limit - *at - 5)) : NULL;
	bool get = newline && memcmp(*at, "get ", 4) == 0;

	if (!newline || (!get && memcmp(*at, "set ", 4) != 0))
		return false;
	*key = *at + 4;
	stop = memchr(*key, ' ', (size_t)(newline - *key));
	if (get == (stop != NULL)) /* a multiget is looked ahead at block by block (text_keys.c) */
		return false;
	if (!stop)
		stop = newline - (newline[-1] == '\r');
	*length = (size_t)(stop - *key);
	if (*length > TEXT_KEY_MAX)
		return false;
	*at = get ? newline + 1 : after_body(newline, end);
	return true;
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
