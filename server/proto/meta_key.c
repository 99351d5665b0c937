/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of meta commands in base64 (RFC 4648, with padding). */
#include "server/proto/meta_parse.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Returns the digit's six bits, or -1: it is no digit. */
static int digit_value(char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

unsigned meta_encode_key(const char *key, unsigned length, char *out)
{
	char *at = out;

	for (unsigned i = 0; i < length; i += 3) {
		unsigned left = length - i;
		uint32_t group = (uint32_t)(unsigned char)key[i] << 16;

		if (left > 1)
			group |= (uint32_t)(unsigned char)key[i + 1] << 8;
		if (left > 2)
			group |= (unsigned char)key[i + 2];
		*at++ = digits[group >> 18];
		*at++ = digits[group >> 12 & 63];
		*at++ = left > 1 ? digits[group >> 6 & 63] : '=';
		*at++ = left > 2 ? digits[group & 63] : '=';
	}
	return (unsigned)(at - out);
}

/* Returns how many characters count. Those that are neither digits nor padding don't. */
static size_t count_digits(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += digit_value(text[i]) >= 0 || text[i] == '=';
	return count;
}

/* Returns the bits of the next four characters that count. *padding: how many of them pad. */
static uint32_t next_group(const char **at, unsigned *padding)
{
	uint32_t group = 0;

	*padding = 0;
	for (unsigned taken = 0; taken < 4; (*at)++) {
		int value = digit_value(**at);

		if (value < 0 && **at != '=')
			continue;
		*padding += value < 0;
		group = group << 6 | (value < 0 ? 0 : (uint32_t)value);
		taken++;
	}
	return group;
}

unsigned meta_decode_key(const char *text, size_t length, char *out)
{
	size_t count = count_digits(text, length);
	unsigned bytes = 0, padding;

	if (length > TEXT_KEY_MAX || count % 4 != 0)
		return 0;
	for (size_t groups = count / 4; groups > 0; groups--) {
		uint32_t group = next_group(&text, &padding);

		out[bytes++] = (char)(group >> 16);
		out[bytes++] = (char)(group >> 8);
		out[bytes++] = (char)group;
		if (padding > 0)
			return padding > 2 ? 0 : bytes - padding;
	}
	return bytes;
}
