/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const char AREA_LETTER[] = { 'k', 's', 'c' };

size_t key_name(uint32_t code, char out[KEY_NAME_MAX + 1])
{
	uint32_t number = key_number(code);
	uint64_t die = mix64(code);
	int length = snprintf(out, KEY_NAME_MAX + 1, "a%u:%c%u", number % 5, AREA_LETTER[key_area(code)], number);
	size_t padded = (size_t)length;

	if (die % 10 == 0)
		padded = 40 + (die >> 8) % (KEY_NAME_MAX - 40 + 1);
	if (padded > (size_t)length)
		memset(out + length, '_', padded - (size_t)length);
	else
		padded = (size_t)length;
	out[padded] = 0;
	return padded;
}

/* Letters and control bytes alike: "\r\n" inside a value is no end of it. */
static void fill(uint64_t seed, char *out, size_t length)
{
	uint64_t state = mix64(seed);

	while (length >= sizeof(state)) {
		state = state * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
		uint64_t word = state ^ state >> 29;
		memcpy(out, &word, sizeof(word));
		out += sizeof(word);
		length -= sizeof(word);
	}
	memcpy(out, "\r\nEND\r\n", length);
}

static void with_header(const char *header, size_t header_length, uint64_t seed, char *out, size_t length)
{
	size_t shown = header_length < length ? header_length : length;

	memcpy(out, header, shown);
	fill(seed, out + shown, length - shown);
}

static void text_bytes(uint32_t code, uint64_t version, char *out, size_t length)
{
	char header[48];
	int n = snprintf(header, sizeof(header), "%c%u.%" PRIu64 ".", AREA_LETTER[key_area(code)], key_number(code),
			 version);

	with_header(header, (size_t)n, (uint64_t)code << 32 ^ version, out, length);
}

void value_text(struct value *value, uint64_t version, uint32_t length)
{
	memset(value, 0, sizeof(*value));
	value_join(value, &(struct piece){ .content = version, .length = length, .kind = PIECE_TEXT }, true);
}

uint32_t digits_of(uint64_t number)
{
	uint32_t digits = 1;

	while (number /= 10)
		digits++;
	return digits;
}

void value_number(struct value *value, uint64_t number, uint32_t width)
{
	uint32_t digits = digits_of(number);

	memset(value, 0, sizeof(*value));
	value->pieces = 1;
	value->piece[0] =
		(struct piece){ .content = number, .length = width > digits ? width : digits, .kind = PIECE_NUMBER };
}

bool value_join(struct value *value, const struct piece *piece, bool at_end)
{
	if (piece->length == 0)
		return true;
	if (value->pieces == PIECES_MAX)
		return false;
	if (!at_end)
		memmove(value->piece + 1, value->piece, value->pieces * sizeof(*piece));
	value->piece[at_end ? value->pieces : 0] = *piece;
	value->pieces++;
	return true;
}

uint32_t value_length(const struct value *value)
{
	uint32_t length = 0;

	for (unsigned i = 0; i < value->pieces; i++)
		length += value->piece[i].length;
	return length;
}

bool value_is_number(const struct value *value, uint64_t *number)
{
	if (value->pieces != 1 || value->piece[0].kind != PIECE_NUMBER)
		return false;
	*number = value->piece[0].content;
	return true;
}

static void piece_bytes(const struct piece *piece, uint32_t code, char *out)
{
	char digits[24];

	if (piece->kind == PIECE_TEXT) {
		text_bytes(code, piece->content, out, piece->length);
		return;
	}
	snprintf(digits, sizeof(digits), "%" PRIu64, piece->content);
	memset(out, ' ', piece->length);
	memcpy(out, digits, strlen(digits));
}

void value_bytes(const struct value *value, uint32_t code, char *out)
{
	for (unsigned i = 0; i < value->pieces; i++) {
		piece_bytes(&value->piece[i], code, out);
		out += value->piece[i].length;
	}
}

static _Thread_local char *scratch; /* what a value should look like */
static _Thread_local size_t scratch_room;

void value_thread_end(void)
{
	free(scratch);
	scratch = NULL;
	scratch_room = 0;
}

bool value_equals(const struct value *value, uint32_t code, const char *data, size_t length)
{
	if (value_length(value) != length)
		return false;
	if (scratch_room < length) {
		free(scratch);
		scratch_room = length * 2;
		scratch = malloc(scratch_room);
		if (!scratch)
			abort();
	}
	if (length == 0)
		return true;
	value_bytes(value, code, scratch);
	return memcmp(scratch, data, length) == 0;
}

void shared_value_bytes(uint32_t code, unsigned writer, uint64_t version, uint32_t length, char *out)
{
	char header[64];
	int n = snprintf(header, sizeof(header), "s%u w%u v%" PRIu64 " l%u ", key_number(code), writer, version,
			 length);

	with_header(header, (size_t)n, (uint64_t)code << 32 ^ version << 8 ^ writer, out, length);
}

bool shared_value_parse(uint32_t code, const char *data, size_t length, uint64_t *version)
{
	char header[64];
	size_t shown = length < sizeof(header) - 1 ? length : sizeof(header) - 1;
	unsigned number, writer, stated;
	char *again;
	bool same;

	memcpy(header, data, shown);
	header[shown] = 0;
	if (sscanf(header, "s%u w%u v%" SCNu64 " l%u ", &number, &writer, version, &stated) != 4 ||
	    number != key_number(code) || stated != length)
		return false;
	again = malloc(length);
	if (!again)
		abort();
	shared_value_bytes(code, writer, *version, stated, again);
	same = memcmp(again, data, length) == 0;
	free(again);
	return same;
}
