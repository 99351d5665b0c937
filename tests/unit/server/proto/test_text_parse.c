/* SPDX-License-Identifier: BSD-3-Clause */
/* The text protocol's parser: lines in, structs out. Where a test doesn't say otherwise, by the old grammar. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <inttypes.h>

#include "base/rng.h"
#include "server/proto/proto.h"

/* Parses a copy in a block of its exact size, so that sanitizers see a byte too many. */
static char *held;
static enum text_grammar grammar = TEXT_GRAMMAR_OLD;

static int by_new_grammar(void **state)
{
	(void)state;
	grammar = TEXT_GRAMMAR_NEW;
	return 0;
}

static int by_old_grammar(void **state)
{
	(void)state;
	grammar = TEXT_GRAMMAR_OLD;
	return 0;
}

static enum text_error parse_bytes(const char *line, size_t length, struct text_command *out)
{
	free(held);
	held = malloc(length > 0 ? length : 1);
	assert_non_null(held);
	memcpy(held, line, length);
	return text_parse(grammar, held, length, out);
}

static enum text_error parse(const char *line, struct text_command *out)
{
	return parse_bytes(line, strlen(line), out);
}

static void expect(const char *line, enum text_error error)
{
	struct text_command command;

	if (parse(line, &command) != error)
		fail_msg("\"%s\" gave %s", line, text_error_answer(parse(line, &command)));
}

/* A line with a key of this length. */
static const char *with_key(const char *before, size_t length, const char *after)
{
	static char line[1024];
	size_t at = strlen(before);

	memcpy(line, before, at);
	memset(line + at, 'k', length);
	memcpy(line + at + length, after, strlen(after) + 1);
	return line;
}

static void unknown_commands_are_errors(void **state)
{
	static const char *const lines[] = { "x",
					     "GET a",
					     "getx a",
					     "ge",
					     "get\ta",
					     "verbosit 1",
					     "verbosityy 1",
					     "a_very_long_command_name x",
					     "flush_al",
					     "incr a 1 2 3",
					     "delete a 0 0 0",
					     "touch a 0 0 0",
					     "verbosity 0 0 0",
					     "set a 0 0 1 noreply x",
					     "cas a 0 0 1 1 x y",
					     "flush_all 0 0 0" };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect(lines[i], TEXT_ERROR_UNKNOWN);
}

static void incomplete_lines_are_errors(void **state)
{
	static const char *const lines[] = { "",        " ",         "set",         "set a",        "set a 0 0",
					     "get",     "get ",      "gat",         "incr a",       "delete",
					     "touch a", "verbosity", "cas a 0 0 1", "set a 12x3 4", "set a 0 12\t3" };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect(lines[i], TEXT_ERROR_INCOMPLETE);
}

static void keys_are_at_most_250_bytes(void **state)
{
	(void)state;
	expect(with_key("get ", 250, ""), TEXT_ERROR_OK);
	expect(with_key("get ", 251, ""), TEXT_ERROR_FORMAT);
	expect(with_key("get a b ", 251, " c"), TEXT_ERROR_FORMAT);
	expect(with_key("gat 0 a ", 251, ""), TEXT_ERROR_FORMAT);
	expect(with_key("set ", 250, " 0 0 1"), TEXT_ERROR_OK);
	expect(with_key("set ", 251, " 0 0 1"), TEXT_ERROR_FORMAT);
	expect(with_key("delete ", 251, ""), TEXT_ERROR_FORMAT);
	expect(with_key("incr ", 251, " 1"), TEXT_ERROR_FORMAT);
	expect(with_key("touch ", 251, " 1"), TEXT_ERROR_FORMAT);
}

static void numbers_are_checked(void **state)
{
	(void)state;
	expect("set a -1 0 1", TEXT_ERROR_FORMAT);
	expect("set a 1x 0 1", TEXT_ERROR_FORMAT);
	expect("set a 0 x 1", TEXT_ERROR_FORMAT);
	expect("set a 0 0 -1", TEXT_ERROR_FORMAT);
	expect("set a 0 0 2147483646", TEXT_ERROR_FORMAT);
	expect("set a 0 0 4294967297", TEXT_ERROR_FORMAT);
	expect("set a 0 0 99999999999999999999", TEXT_ERROR_FORMAT);
	expect("set a 0 0 +", TEXT_ERROR_FORMAT);
	expect("cas a 0 0 1 18446744073709551616", TEXT_ERROR_FORMAT);
	expect("cas a 0 0 1 -1", TEXT_ERROR_FORMAT);
	expect("incr a -1", TEXT_ERROR_DELTA);
	expect("incr a 18446744073709551616", TEXT_ERROR_DELTA);
	expect("incr a -9223372036854775808", TEXT_ERROR_DELTA);
	expect("incr a 9223372036854775808\t-", TEXT_ERROR_DELTA);
	expect("incr a -18446744073709551616", TEXT_ERROR_DELTA);
	expect("incr a \t", TEXT_ERROR_DELTA);
	expect("incr a +-1", TEXT_ERROR_DELTA);
	expect("incr a 1\b", TEXT_ERROR_DELTA);
	expect("touch a -9223372036854775809", TEXT_ERROR_EXPTIME);
	expect("touch a 0x1", TEXT_ERROR_EXPTIME);
	expect("touch a 9223372036854775808", TEXT_ERROR_EXPTIME);
	expect("gat x a", TEXT_ERROR_EXPTIME);
	expect(with_key("gat x ", 251, ""), TEXT_ERROR_EXPTIME);
	expect("flush_all x", TEXT_ERROR_EXPTIME);
	expect("verbosity x", TEXT_ERROR_FORMAT);
}

static void numbers_are_what_strtoull_takes(void **state)
{
	static const struct {
		const char *line;
		uint64_t number;
	} cases[] = {
		{ "incr a -0", 0 },
		{ "incr a +7", 7 },
		{ "incr a \t7", 7 },
		{ "incr a 7\t8", 7 },
		{ "incr a \v\f+7\rx", 7 },
		{ "incr a -9223372036854775809", INT64_MAX },
		{ "incr a -18446744073709551615", 1 },
		{ "incr a 18446744073709551615\tx", UINT64_MAX },
	};
	struct text_command command;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(cases[i].line, &command), TEXT_ERROR_OK);
		assert_true(command.number == cases[i].number);
	}
	assert_int_equal(parse("touch a \t-9223372036854775808\t1", &command), TEXT_ERROR_OK);
	assert_true(command.exptime == INT64_MIN);
	assert_int_equal(parse("set a -0 -0 1\tx", &command), TEXT_ERROR_OK);
	assert_true(command.flags == 0 && command.exptime == 0 && command.value_length == 1);
}

static void delete_takes_a_zero_only(void **state)
{
	(void)state;
	expect("delete a", TEXT_ERROR_OK);
	expect("delete a 0", TEXT_ERROR_OK);
	expect("delete a 0 noreply", TEXT_ERROR_OK);
	expect("delete a 1", TEXT_ERROR_USAGE_DELETE);
	expect("delete a 00", TEXT_ERROR_USAGE_DELETE);
	expect("delete a 0 x", TEXT_ERROR_USAGE_DELETE);
	expect("delete noreply", TEXT_ERROR_OK);
}

static void noreply_is_known_for_errors_too(void **state)
{
	struct text_command command;

	(void)state;
	assert_int_equal(parse("incr a x noreply", &command), TEXT_ERROR_DELTA);
	assert_true(command.noreply);
	assert_int_equal(parse("delete a x noreply", &command), TEXT_ERROR_USAGE_DELETE);
	assert_true(command.noreply);
	assert_int_equal(parse("verbosity noreply", &command), TEXT_ERROR_FORMAT);
	assert_true(command.noreply);
	assert_int_equal(parse("delete noreply", &command), TEXT_ERROR_OK);
	assert_false(command.noreply);
	assert_int_equal(parse("set a 0 0 1 other", &command), TEXT_ERROR_OK);
	assert_false(command.noreply);
}

static void a_storage_line(void **state)
{
	struct text_command command;

	(void)state;
	assert_int_equal(parse("  cas  key 4294967295 -5 7 18446744073709551615 noreply ", &command), TEXT_ERROR_OK);
	assert_int_equal(command.id, TEXT_CAS);
	assert_int_equal(command.key_length, 3);
	assert_memory_equal(command.key, "key", 3);
	assert_int_equal(command.flags, UINT32_MAX);
	assert_int_equal(command.exptime, -5);
	assert_int_equal(command.value_length, 7);
	assert_true(command.number == UINT64_MAX);
	assert_true(command.noreply);
}

static void keys_of_a_multiget(void **state)
{
	struct text_command command;
	const char *at, *word;
	size_t length;

	(void)state;
	assert_int_equal(parse("gats 60  a bb ccc ", &command), TEXT_ERROR_OK);
	assert_int_equal(command.id, TEXT_GATS);
	assert_int_equal(command.exptime, 60);
	at = command.rest;
	for (size_t i = 1; i <= 3; i++) {
		assert_true(text_word(&at, command.rest_end, &word, &length));
		assert_int_equal(length, i);
		assert_int_equal(*word, 'a' + (int)i - 1);
	}
	assert_false(text_word(&at, command.rest_end, &word, &length));
}

static void flush_delays(void **state)
{
	struct text_command command;

	(void)state;
	assert_int_equal(parse("flush_all", &command), TEXT_ERROR_OK);
	assert_int_equal(command.exptime, 0);
	assert_int_equal(parse("flush_all 30 noreply", &command), TEXT_ERROR_OK);
	assert_int_equal(command.exptime, 30);
	assert_true(command.noreply);
	assert_int_equal(parse("flush_all noreply", &command), TEXT_ERROR_OK);
	assert_int_equal(command.exptime, 0);
	assert_null(command.key);
}

static void only_multigets_may_be_long(void **state)
{
	(void)state;
	assert_true(text_may_be_long("get a b", 7));
	assert_true(text_may_be_long("  gets a", 8));
	assert_true(text_may_be_long("gat 0 a", 7));
	assert_false(text_may_be_long("set a", 5));
	assert_false(text_may_be_long("getaaaaaaaaaaaaaaaaaaaa", 23));
	assert_false(text_may_be_long("     ", 5));
	assert_false(text_may_be_long("", 0));
}

static void numbers_are_written(void **state)
{
	static const struct {
		uint64_t number;
		const char *text;
	} cases[] = {
		{ 0, "0" }, { 9, "9" }, { 10, "10" }, { 1000000, "1000000" }, { UINT64_MAX, "18446744073709551615" }
	};
	char out[20];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned length = text_number(out, cases[i].number);

		assert_int_equal(length, strlen(cases[i].text));
		assert_memory_equal(out, cases[i].text, length);
	}
}

/* Of every length, all small ones, and nothing is written beyond. */
static void numbers_of_every_length(void **state)
{
	uint64_t number = 1;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		char out[21], text[21];
		int length;

		memset(out, 'x', sizeof(out));
		number = i < 20000 ? i : i % 20 == 0 ? 1 : number * 10 - i % 3;
		length = snprintf(text, sizeof(text), "%" PRIu64, number);
		assert_int_equal(text_number(out, number), length);
		assert_memory_equal(out, text, (size_t)length);
		assert_int_equal(out[length], 'x');
	}
}

/* ---- the new grammar --------------------------------------------------------------------------- */

static void new_incomplete_lines_are_errors(void **state)
{
	static const char *const lines[] = { "",        "x",         " ",       "\r",      "set",    "set a 0 0",
					     "get ",    "gat 0",     "gat",     "gats 1 ", "incr a", "delete",
					     "touch a", "verbosity", "cas a 0", "touch",   "gets" };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect(lines[i], TEXT_ERROR_INCOMPLETE);
	expect("  ", TEXT_ERROR_UNKNOWN);
	expect("xx", TEXT_ERROR_UNKNOWN);
}

static void new_numbers_are_digits(void **state)
{
	static const char *const bad[] = { "+1", "-1", "\t1", "1\t", "0x1", "1x", "-", "", "18446744073709551616" };
	char line[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!*bad[i])
			continue;
		snprintf(line, sizeof(line), "incr a %s", bad[i]);
		expect(line, TEXT_ERROR_DELTA);
		snprintf(line, sizeof(line), "cas a 0 0 1 %s", bad[i]);
		expect(line, TEXT_ERROR_FORMAT);
		snprintf(line, sizeof(line), "verbosity %s", bad[i]);
		expect(line, TEXT_ERROR_FORMAT);
	}
	expect("touch a +1", TEXT_ERROR_EXPTIME);
	expect("touch a --1", TEXT_ERROR_EXPTIME);
	expect("touch a -", TEXT_ERROR_EXPTIME);
	expect("gat 1\t a", TEXT_ERROR_EXPTIME);
	expect("flush_all 1\t", TEXT_ERROR_EXPTIME);
	expect("verbosity 4294967296", TEXT_ERROR_FORMAT);
	expect("touch a -1", TEXT_ERROR_OK);
	expect("incr a 18446744073709551615", TEXT_ERROR_OK);
}

/* Client flags and exptime of storage commands stay what strtoul takes. */
static void new_storage_lines(void **state)
{
	struct text_command command;

	(void)state;
	assert_int_equal(parse("set a +1 \t-2 3", &command), TEXT_ERROR_OK);
	assert_true(command.flags == 1 && command.exptime == -2 && command.value_length == 3);
	assert_int_equal(parse("set a 0 0 1 x y z noreply", &command), TEXT_ERROR_OK);
	assert_true(command.noreply);
	assert_int_equal(parse("set a 0 0 1 noreply x", &command), TEXT_ERROR_OK);
	assert_false(command.noreply);
}

static void new_values_of_faulty_lines_are_skipped(void **state)
{
	static const char *const follows[] = { "set a x 0 7", "set a 0 x 7", "cas a 0 0 7", "cas a 0 0 7 x",
					       "add a x 0 7 noreply" };
	static const char *const none[] = { "set a 0 0 x", "set a 0 0 -1", "set a 0 0 +7", "set a 0 0 2147483646",
					    "set a 0 0",   "cas a 0 0",    "set a x x x" };
	struct text_command command;

	(void)state;
	for (size_t i = 0; i < sizeof(follows) / sizeof(follows[0]); i++) {
		assert_int_equal(parse(follows[i], &command), TEXT_ERROR_FORMAT);
		assert_true(command.value_follows && command.value_length == 7);
	}
	assert_true(command.noreply);
	assert_int_equal(parse(with_key("set ", 251, " 0 0 7"), &command), TEXT_ERROR_FORMAT);
	assert_true(command.value_follows && command.value_length == 7);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_not_equal(parse(none[i], &command), TEXT_ERROR_OK);
		assert_false(command.value_follows);
	}
	assert_int_equal(parse("set a 0 0 7", &command), TEXT_ERROR_OK);
	grammar = TEXT_GRAMMAR_OLD;
	assert_int_equal(parse("set a x 0 7", &command), TEXT_ERROR_FORMAT);
	assert_false(command.value_follows);
}

static void new_words_too_many_are_ignored(void **state)
{
	static const char *const lines[] = { "incr a 1 2 3",    "delete a 0 0 0", "touch a 0 0 0",    "verbosity 0 0 0",
					     "flush_all 0 0 0", "delete a 1",     "cas a 0 0 1 1 x y" };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect(lines[i], TEXT_ERROR_OK);
}

static void new_noreply_is_the_last_word(void **state)
{
	struct text_command command;
	char line[256] = "delete a";

	(void)state;
	assert_int_equal(parse("nonsense noreply", &command), TEXT_ERROR_UNKNOWN);
	assert_true(command.noreply);
	assert_int_equal(parse("nonsense x", &command), TEXT_ERROR_UNKNOWN);
	assert_false(command.noreply);
	assert_int_equal(parse("delete noreply", &command), TEXT_ERROR_OK);
	assert_false(command.noreply);
	assert_int_equal(parse("delete a x noreply", &command), TEXT_ERROR_OK);
	assert_true(command.noreply);
	assert_int_equal(parse("incr a x noreply", &command), TEXT_ERROR_DELTA);
	assert_true(command.noreply);
	assert_int_equal(parse("flush_all noreply", &command), TEXT_ERROR_OK);
	assert_true(command.noreply);
	for (unsigned i = 0; i < TEXT_WORDS_MOST - 1; i++) /* the word after these is not seen */
		strcat(line, " x");
	strcat(line, " noreply");
	assert_int_equal(parse(line, &command), TEXT_ERROR_OK);
	assert_false(command.noreply);
}

/* Words and bytes thrown together: nothing is read outside of the line, all answers are in bounds. */
static void random_lines(void **state)
{
	static const char *const words[] = { "get",     "gets",   "gat",   "set",       "cas",
					     "incr",    "delete", "touch", "flush_all", "stats",
					     "noreply", "0",      "1",     "-1",        "18446744073709551615",
					     "key",     " ",      "  ",    "\t",        "\r" };
	struct rng rng;

	(void)state;
	rng_init(&rng, 2026);
	for (unsigned round = 0; round < 20000; round++) {
		char line[512];
		size_t length = 0;
		struct text_command command;
		enum text_error error;

		for (uint64_t n = rng_below(&rng, 10); n > 0; n--) {
			const char *word = words[rng_below(&rng, sizeof(words) / sizeof(words[0]))];

			length += (size_t)snprintf(line + length, sizeof(line) - length, "%s%s", word,
						   rng_below(&rng, 4) ? " " : "");
			if (rng_below(&rng, 20) == 0)
				line[length++] = (char)rng_below(&rng, 256);
		}
		grammar = round % 2 ? TEXT_GRAMMAR_NEW : TEXT_GRAMMAR_OLD;
		error = parse_bytes(line, length, &command);
		assert_in_range(error, 0, TEXT_ERRORS - 1);
		if (error == TEXT_ERROR_OK && command.key)
			assert_true(command.key >= held && command.key + command.key_length <= held + length);
	}
}

#define BY_NEW(test) cmocka_unit_test_setup_teardown(test, by_new_grammar, by_old_grammar)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_commands_are_errors),
		cmocka_unit_test(incomplete_lines_are_errors),
		cmocka_unit_test(keys_are_at_most_250_bytes),
		cmocka_unit_test(numbers_are_checked),
		cmocka_unit_test(numbers_are_what_strtoull_takes),
		cmocka_unit_test(delete_takes_a_zero_only),
		cmocka_unit_test(noreply_is_known_for_errors_too),
		cmocka_unit_test(a_storage_line),
		cmocka_unit_test(keys_of_a_multiget),
		cmocka_unit_test(flush_delays),
		cmocka_unit_test(only_multigets_may_be_long),
		cmocka_unit_test(numbers_are_written),
		cmocka_unit_test(numbers_of_every_length),
		BY_NEW(new_incomplete_lines_are_errors),
		BY_NEW(new_numbers_are_digits),
		BY_NEW(new_storage_lines),
		BY_NEW(new_values_of_faulty_lines_are_skipped),
		BY_NEW(new_words_too_many_are_ignored),
		BY_NEW(new_noreply_is_the_last_word),
		BY_NEW(a_storage_line),
		BY_NEW(keys_of_a_multiget),
		BY_NEW(keys_are_at_most_250_bytes),
		BY_NEW(random_lines),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(held);
	return failed;
}
