/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients stored reaches a terminal escaped, and numbers as they are meant. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/tools/inspect/image.h"
#include "tools/inspect/words.h"

static const char *key_of(const char *key, char out[WORDS_KEY_BYTES])
{
	return words_key((const uint8_t *)key, (uint32_t)strlen(key), out);
}

static void what_is_no_text_is_escaped(void **state)
{
	char out[WORDS_KEY_BYTES];

	(void)state;
	assert_string_equal(key_of("a\x1b[2Jb", out), "a\\x1b[2Jb");
	assert_string_equal(key_of("\xff\xfe", out), "\\xff\\xfe");
	assert_string_equal(key_of("a\\b", out), "a\\\\b");
	assert_string_equal(key_of("\x7f", out), "\\x7f");
	assert_string_equal(key_of("\xc2\x9b", out), "\\xc2\\x9b"); /* U+009B begins an escape sequence */
	assert_string_equal(key_of("gr\xc3\xbc\xc3\x9f", out), "gr\xc3\xbc\xc3\x9f");
	assert_string_equal(key_of("gr\xc3", out), "gr\\xc3");
	assert_string_equal(words_key((const uint8_t *)"a\0b c", 5, out), "a\\x00b\\x20c");
}

static void the_longest_key_fits_escaped(void **state)
{
	char out[WORDS_KEY_BYTES + 1], key[FORMAT_KEY_MAX];

	(void)state;
	memset(key, 0xff, sizeof(key));
	out[WORDS_KEY_BYTES] = '#';
	words_key((const uint8_t *)key, sizeof(key), out);
	assert_int_equal(strlen(out), 4 * FORMAT_KEY_MAX);
	assert_int_equal(out[WORDS_KEY_BYTES], '#');
}

static void a_value_may_have_lines_but_no_escape_sequences(void **state)
{
	(void)state;
	assert_true(words_are_text((const uint8_t *)"a\tb\r\nc", 6, true));
	assert_false(words_are_text((const uint8_t *)"a\tb", 3, false));
	assert_false(words_are_text((const uint8_t *)"\x1b[0m", 4, true));
	assert_false(words_are_text((const uint8_t *)"\0", 1, true));
	assert_true(words_are_text((const uint8_t *)"", 0, true));
}

static void expiry_is_told_by_the_uptime(void **state)
{
	char out[WORDS_TIME_BYTES];

	(void)state;
	assert_false(words_expired(0, 1000000));
	assert_true(words_expired(1, 0)); /* always over */
	assert_false(words_expired(102, 99));
	assert_true(words_expired(102, 100));
	assert_false(words_expired(UINT32_MAX, -1));
	assert_string_equal(words_expiry(0, 5, out), "never");
	assert_string_equal(words_expiry(102, -1, out), "at uptime 100 s");
	assert_string_equal(words_expiry(102, 100, out), "over");
	assert_string_equal(words_expiry(102, 70, out), "in 30.0 s");
}

static void times_out_of_range_do_not_crash(void **state)
{
	char out[WORDS_TIME_BYTES];

	(void)state;
	assert_string_equal(words_time(0, out), "-");
	assert_string_equal(words_time(UINT64_MAX, out), "out of range");
	assert_string_equal(words_time((uint64_t)1 << 60, out), "out of range");
	assert_int_equal(strlen(words_time(1700000000, out)), 19);
}

static void json_of_bytes_that_are_no_utf8_is_hex(void **state)
{
	json_t *object = json_object();

	(void)state;
	words_json_bytes(object, "key", (const uint8_t *)"\xff\x01", 2);
	words_json_bytes(object, "value", (const uint8_t *)"a\0b", 3);
	assert_string_equal(json_string_value(json_object_get(object, "key_hex")), "ff01");
	assert_null(json_object_get(object, "key"));
	assert_int_equal(json_string_length(json_object_get(object, "value")), 3);
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_text_is_escaped),
		cmocka_unit_test(the_longest_key_fits_escaped),
		cmocka_unit_test(a_value_may_have_lines_but_no_escape_sequences),
		cmocka_unit_test(expiry_is_told_by_the_uptime),
		cmocka_unit_test(times_out_of_range_do_not_crash),
		cmocka_unit_test(json_of_bytes_that_are_no_utf8_is_hex),
	};

	return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
