/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary protocol's parser on one packet: what it has read, put into a packet again, has the same bytes; what it lets
 * pass has extras and key inside of its body, and keys no longer than a key may be.
 */
#include "server/proto/binary.h"
#include "tests/fuzz/fuzz.h"

/* What the header says; datatype and vbucket are not looked at. */
static void print(const struct binary_command *command, char out[BINARY_HEADER_BYTES])
{
	memset(out, 0, BINARY_HEADER_BYTES);
	out[0] = (char)BINARY_MAGIC_REQUEST;
	out[1] = (char)command->opcode;
	binary_put16(out + 2, command->key_length);
	out[4] = (char)command->extras_length;
	binary_put32(out + 8, command->body_length);
	binary_put32(out + 12, command->opaque);
	binary_put64(out + 16, command->cas);
}

static void check_header(const char *bytes, const struct binary_command *command, enum binary_error error)
{
	char again[BINARY_HEADER_BYTES];

	print(command, again);
	require(memcmp(again, bytes, 5) == 0 && memcmp(again + 8, bytes + 8, 16) == 0);
	require((error == BINARY_ERROR_LENGTHS) ==
		((uint32_t)command->extras_length + command->key_length > command->body_length));
	if (error != BINARY_ERROR_LENGTHS)
		require(command->extras_length + (uint64_t)command->key_length + command->value_length ==
			command->body_length);
	if (error == BINARY_ERROR_NONE) {
		require(command->id > BINARY_NONE && command->id < BINARY_IDS);
		require(command->key_length <= BINARY_KEY_MAX && command->extras_length <= 20);
	}
}

/* The numbers of the extras are in the order of the table's shapes. */
static void check_extras(const struct binary_command *command, const char *body)
{
	require(command->key_length == 0 ? !command->key : command->key == body + command->extras_length);
	switch (command->extras_length) {
	case 4:
		require(command->exptime == binary_get32(body) || command->level == binary_get32(body));
		break;
	case 8:
		require(command->client_flags == binary_get32(body) && command->exptime == binary_get32(body + 4));
		break;
	case 20:
		require(command->delta == binary_get64(body) && command->initial == binary_get64(body + 8));
		require(command->exptime == binary_get32(body + 16));
		break;
	default:
		require(command->extras_length == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct binary_command command = { 0 };
	enum binary_error error;
	char *header, *body;
	size_t needed;

	if (size < BINARY_HEADER_BYTES)
		return 0;
	header = fuzz_copy(data, BINARY_HEADER_BYTES);
	error = binary_parse_header(header, &command);
	require((error == BINARY_ERROR_MAGIC) == ((uint8_t)header[0] != BINARY_MAGIC_REQUEST));
	if (error != BINARY_ERROR_MAGIC)
		check_header(header, &command, error);
	needed = (size_t)command.extras_length + command.key_length;
	if (error == BINARY_ERROR_NONE && size - BINARY_HEADER_BYTES >= needed) {
		body = fuzz_copy(data + BINARY_HEADER_BYTES, needed);
		binary_parse_extras(&command, body);
		check_extras(&command, body);
		free(body);
	}
	free(header);
	return 0;
}
