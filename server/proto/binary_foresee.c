/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks ahead at the keys of the packets in the input. The start of a packet follows from the lengths in the one before
 * it. The look ends at the first malformed packet; the parser will answer that.
 */
#include "server/proto/binary_internal.h"

unsigned binary_foresee(const struct conn *conn, struct foreseen *out, unsigned most)
{
	const struct input *input = &conn->input;
	const char *at = input->bytes + input->start;
	uint32_t left = input->end - input->start;
	unsigned count = 0;

	if (conn->session.state != SESSION_LINE)
		return 0;
	while (count < most && left >= BINARY_HEADER_BYTES) {
		struct binary_command command;
		uint32_t head;

		if (binary_parse_header(at, &command) != BINARY_ERROR_NONE)
			break;
		head = BINARY_HEADER_BYTES + command.extras_length + command.key_length;
		if (head > left)
			break;
		if (command.key_length > 0 && command.id < BINARY_NOOP) {
			out[count].key = at + head - command.key_length;
			out[count].length = command.key_length;
			out[count].hash = store_hash(conn->server->store, out[count].key, command.key_length);
			count++;
		}
		if (command.value_length >= left - head)
			break;
		at += head + command.value_length;
		left -= head + command.value_length;
	}
	return count;
}
