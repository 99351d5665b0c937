/* SPDX-License-Identifier: BSD-3-Clause */
/* The text protocol's numbers: words read as such, and digits written. */
#include "server/proto/proto.h"

#include <string.h>

static bool parse_digits(const char *text, size_t length, uint64_t most, uint64_t *out)
{
	uint64_t value = 0;

	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		unsigned digit = (unsigned char)text[i] - (unsigned)'0';

		if (digit > 9 || value > (most - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = value;
	return true;
}

static bool is_blank_byte(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/*
 * Reads numbers in forms that no client writes but memcached takes, as strtoull does: blanks before the number, a sign,
 * and anything behind a blank that follows the number.
 */
static bool __attribute__((cold, noinline)) loose_digits(const char *text, size_t length, bool *minus, uint64_t *out)
{
	const char *end, *stop;

	if (length == 0) /* text may be NULL */
		return false;
	end = text + length;
	while (text < end && is_blank_byte(*text))
		text++;
	*minus = text < end && *text == '-';
	if (text < end && (*text == '-' || *text == '+'))
		text++;
	for (stop = text; stop < end && !is_blank_byte(*stop); stop++)
		;
	return parse_digits(text, (size_t)(stop - text), UINT64_MAX, out);
}

bool text_unsigned(enum text_grammar grammar, const char *text, size_t length, uint64_t *out)
{
	uint64_t value;
	bool minus;

	if (parse_digits(text, length, UINT64_MAX, out))
		return true;
	if (grammar == TEXT_GRAMMAR_NEW || !loose_digits(text, length, &minus, &value))
		return false;
	*out = minus ? 0 - value : value; /* strtoull counts down from 2^64 */
	return *out <= INT64_MAX || !memchr(text, '-', length);
}

/* A minus and digits. */
static bool strict_digits(const char *text, size_t length, bool *minus, uint64_t *out)
{
	*minus = length > 0 && *text == '-';
	return length > *minus && parse_digits(text + *minus, length - *minus, UINT64_MAX, out);
}

bool text_signed(enum text_grammar grammar, const char *text, size_t length, int64_t *out)
{
	uint64_t value;
	bool minus = false;

	if (!parse_digits(text, length, INT64_MAX, &value) &&
	    !(grammar == TEXT_GRAMMAR_NEW ? strict_digits : loose_digits)(text, length, &minus, &value))
		return false;
	if (value > (uint64_t)INT64_MAX + minus)
		return false;
	*out = minus ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

static unsigned digits_of(uint64_t number)
{
	unsigned digits = 1;

	while (number >= 10000) {
		number /= 10000;
		digits += 4;
	}
	return digits + (number >= 10) + (number >= 100) + (number >= 1000);
}

/* It writes two digits at a time, as the divisions cost most. */
unsigned text_number(char *out, uint64_t number)
{
	static const char pairs[] =
		"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
		"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
	unsigned digits = digits_of(number);
	char *at = out + digits;

	while (number >= 100) {
		at -= 2;
		memcpy(at, pairs + number % 100 * 2, 2);
		number /= 100;
	}
	if (number >= 10)
		memcpy(at - 2, pairs + number * 2, 2);
	else
		at[-1] = (char)('0' + number);
	return digits;
}
