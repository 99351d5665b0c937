/* SPDX-License-Identifier: BSD-3-Clause */
/* The binary protocol's parser: checks a header against the table of commands, and reads extras and key. */
#include "server/proto/binary.h"

#include <endian.h>
#include <string.h>

uint32_t binary_get32(const char *at)
{
	uint32_t number;

	memcpy(&number, at, sizeof(number));
	return be32toh(number);
}

uint64_t binary_get64(const char *at)
{
	uint64_t number;

	memcpy(&number, at, sizeof(number));
	return be64toh(number);
}

void binary_put16(char *at, uint16_t number)
{
	number = htobe16(number);
	memcpy(at, &number, sizeof(number));
}

void binary_put32(char *at, uint32_t number)
{
	number = htobe32(number);
	memcpy(at, &number, sizeof(number));
}

void binary_put64(char *at, uint64_t number)
{
	number = htobe64(number);
	memcpy(at, &number, sizeof(number));
}

/* ---- what each command consists of ----------------------------------------------------------- */

enum shape_id {
	SHAPE_KEY,
	SHAPE_STORE,
	SHAPE_JOIN,
	SHAPE_DELTA,
	SHAPE_TOUCH,
	SHAPE_FLUSH,
	SHAPE_LEVEL,
	SHAPE_STAT,
	SHAPE_EMPTY,
	SHAPE_SASL
};

static const struct shape {
	uint8_t extras, extras_too; /* the lengths that are allowed */
	bool key, key_needed, value;
} shapes[] = {
	[SHAPE_KEY] = { 0, 0, true, true, false },     [SHAPE_STORE] = { 8, 8, true, true, true },
	[SHAPE_JOIN] = { 0, 0, true, true, true },     [SHAPE_DELTA] = { 20, 20, true, true, false },
	[SHAPE_TOUCH] = { 4, 4, true, true, false },   [SHAPE_FLUSH] = { 0, 4, false, false, false },
	[SHAPE_LEVEL] = { 4, 4, false, false, false }, [SHAPE_STAT] = { 0, 0, true, false, false },
	[SHAPE_EMPTY] = { 0, 0, false, false, false }, [SHAPE_SASL] = { 0, 0, true, true, true },
};

static const struct row {
	uint8_t id, shape, flags;
} rows[256] = {
#define BINARY_ROW(opcode, id, shape, flags) [opcode] = { BINARY_##id, SHAPE_##shape, flags },
	BINARY_COMMAND_TABLE(BINARY_ROW)
#undef BINARY_ROW
};

static bool lengths_fit(const struct shape *shape, const struct binary_command *command)
{
	return (command->extras_length == shape->extras || command->extras_length == shape->extras_too) &&
	       (command->key_length > 0 ? shape->key : !shape->key_needed) &&
	       (shape->value || command->value_length == 0);
}

enum binary_error binary_parse_header(const char *bytes, struct binary_command *out)
{
	const struct row *row = &rows[(uint8_t)bytes[1]];
	uint32_t head;

	if ((uint8_t)bytes[0] != BINARY_MAGIC_REQUEST)
		return BINARY_ERROR_MAGIC;
	out->opcode = (uint8_t)bytes[1];
	out->id = row->id;
	out->flags = row->flags;
	out->key_length = (uint16_t)(binary_get32(bytes) & 0xffff);
	out->extras_length = (uint8_t)bytes[4];
	out->body_length = binary_get32(bytes + 8);
	out->opaque = binary_get32(bytes + 12);
	out->cas = binary_get64(bytes + 16);
	out->key = NULL;
	head = (uint32_t)out->key_length + out->extras_length;
	if (head > out->body_length)
		return BINARY_ERROR_LENGTHS;
	out->value_length = out->body_length - head;
	if (out->key_length > BINARY_KEY_MAX)
		return BINARY_ERROR_KEY;
	if (row->id == BINARY_NONE)
		return BINARY_ERROR_UNKNOWN;
	if (lengths_fit(&shapes[row->shape], out))
		return BINARY_ERROR_NONE;
	return row->shape == SHAPE_LEVEL ? BINARY_ERROR_UNKNOWN : BINARY_ERROR_SHAPE;
}

void binary_parse_extras(struct binary_command *command, const char *body)
{
	command->client_flags = command->exptime = command->level = 0;
	command->delta = command->initial = 0;
	switch (rows[command->opcode].shape) {
	case SHAPE_STORE:
		command->client_flags = binary_get32(body);
		command->exptime = binary_get32(body + 4);
		break;
	case SHAPE_DELTA:
		command->delta = binary_get64(body);
		command->initial = binary_get64(body + 8);
		command->exptime = binary_get32(body + 16);
		break;
	case SHAPE_TOUCH:
		command->exptime = binary_get32(body);
		break;
	case SHAPE_FLUSH:
		command->exptime = command->extras_length > 0 ? binary_get32(body) : 0;
		break;
	case SHAPE_LEVEL:
		command->level = binary_get32(body);
		break;
	default:
		break;
	}
	if (command->key_length > 0)
		command->key = body + command->extras_length;
}
