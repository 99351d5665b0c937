/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole connections of the binary protocol (stream.h). */
#include "server/proto/binary.h"
#include "tests/fuzz/stream.h"

#define OPCODE_STAT 0x10u

/*
 * The next packet of the answers; its length, or 0 at the end. All that the daemon sends is whole packets, unless it
 * speaks the text protocol, as the first byte was none of a packet.
 */
static size_t next_packet(const char *at, const char *end)
{
	uint64_t length;

	if (at == end)
		return 0;
	require(end - at >= (ptrdiff_t)BINARY_HEADER_BYTES && (uint8_t)at[0] == BINARY_MAGIC_ANSWER);
	length = BINARY_HEADER_BYTES + (uint64_t)binary_get32(at + 8);
	require(length <= (uint64_t)(end - at));
	return (size_t)length;
}

/* Without answers to stat, which tell of the daemon's own state. In place. */
static void leave_out_stats(struct stream_answer *answer)
{
	char *at = answer->bytes, *end = at + answer->length, *to = at;
	size_t length, certain = stream_certain(answer, at, at, 0);

	while ((length = next_packet(at, end)) > 0) {
		if ((uint8_t)at[1] != OPCODE_STAT) {
			memmove(to, at, length);
			to += length;
		}
		at += length;
		certain = stream_certain(answer, at, to, certain);
	}
	answer->length = (size_t)(to - answer->bytes);
	answer->certain = certain;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream_answer whole, pieces;
	struct stream stream;

	if (!stream_parse(&stream, data, size))
		return 0;
	stream.options.binary = true;
	whole = stream_run(&stream, false);
	pieces = stream_run(&stream, true);
	leave_out_stats(&whole);
	leave_out_stats(&pieces);
	stream_require_same(&whole, &pieces);
	free(whole.bytes);
	free(pieces.bytes);
	return 0;
}
