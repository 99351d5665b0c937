/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole connections of the text protocol, classic and meta commands (stream.h). */
#include "server/proto/proto.h"
#include "tests/fuzz/stream.h"

/*
 * A line that is longer than commands may be is refused where it is found to be, and that depends on how it comes: as
 * memcached's, ours runs it when all of it came at once.
 */
static bool has_long_line(const struct stream *stream)
{
	const uint8_t *at = stream->bytes, *end = at + stream->length;

	while (end - at > TEXT_LINE_MAX) {
		const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));

		if (!newline || newline - at > TEXT_LINE_MAX)
			return true;
		at = newline + 1;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream_answer whole, pieces;
	struct stream stream;

	if (!stream_parse(&stream, data, size))
		return 0;
	whole = stream_run(&stream, false);
	pieces = stream_run(&stream, true);
	stream_leave_out_stats(&whole);
	stream_leave_out_stats(&pieces);
	if (!has_long_line(&stream))
		stream_require_same(&whole, &pieces);
	free(whole.bytes);
	free(pieces.bytes);
	return 0;
}
