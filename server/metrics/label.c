/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/metrics/label.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define SURROGATES_FIRST 0xd800u
#define SURROGATES_LAST 0xdfffu
#define UNICODE_LAST 0x10ffffu

/* Returns the length of the UTF-8 character at bytes; 0: it is none. Overlong forms and surrogates are none. */
static size_t utf8_length(const unsigned char *bytes, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = bytes[0] < 0x80       ? 1
			: bytes[0] >> 5 == 6  ? 2
			: bytes[0] >> 4 == 14 ? 3
			: bytes[0] >> 3 == 30 ? 4
					      : 0;
	uint32_t character = length ? bytes[0] & (0xffu >> (length + (length > 1))) : 0;

	if (length == 0 || length > left)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if (bytes[i] >> 6 != 2)
			return 0;
		character = character << 6 | (bytes[i] & 0x3fu);
	}
	if (character < least[length] || character > UNICODE_LAST ||
	    (character >= SURROGATES_FIRST && character <= SURROGATES_LAST))
		return 0;
	return length;
}

/* Not plain are the backslash, with which our escapes begin, and bytes that a line of text can't show. */
static bool is_label_byte(unsigned char byte)
{
	return byte >= ' ' && byte != '\\' && byte != 0x7f;
}

size_t label_escape(const char *name, size_t length, char out[LABEL_BYTES])
{
	const unsigned char *bytes = (const unsigned char *)name;
	size_t written = 0, i = 0;

	must(length <= LABEL_NAME_MAX);
	while (i < length) {
		size_t character = utf8_length(bytes + i, length - i);

		if (character > 1 || (character == 1 && is_label_byte(bytes[i]))) {
			memcpy(out + written, bytes + i, character);
			written += character;
			i += character;
		} else {
			written += (size_t)snprintf(out + written, 5, "\\x%02x", bytes[i]);
			i++;
		}
	}
	must(written < LABEL_BYTES);
	out[written] = 0;
	return written;
}
