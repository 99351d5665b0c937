/* SPDX-License-Identifier: BSD-3-Clause */
/* The meta commands' parser: lines in, structs out. Where a test doesn't say otherwise, by the old grammar. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "server/proto/meta_parse.h"

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

static enum meta_error parse_bytes(enum text_id id, const char *line, size_t length, struct meta_command *out)
{
	free(held);
	held = malloc(length > 0 ? length : 1);
	assert_non_null(held);
	memcpy(held, line, length);
	return meta_parse(grammar, id, held, held + length, out);
}

static enum meta_error parse(enum text_id id, const char *line, struct meta_command *out)
{
	return parse_bytes(id, line, strlen(line), out);
}

static void expect(enum text_id id, const char *line, enum meta_error error)
{
	struct meta_command command;
	enum meta_error found = parse(id, line, &command);

	if (found != error)
		fail_msg("\"%s\" gave \"%s\"", line, meta_error_answer(found));
}

static void expect_all(const char *line, enum meta_error get, enum meta_error change)
{
	expect(TEXT_META_GET, line, get);
	expect(TEXT_META_DELETE, line, change);
	expect(TEXT_META_ARITHMETIC, line, change);
}

/* A key of this length, and what comes after it. */
static const char *with_key(size_t length, const char *after)
{
	static char line[1024];

	line[0] = ' ';
	memset(line + 1, 'k', length);
	memcpy(line + 1 + length, after, strlen(after) + 1);
	return line;
}

static void a_command_needs_a_key(void **state)
{
	(void)state;
	expect_all("", META_ERROR_NO_KEY, META_ERROR_NO_KEY);
	expect_all("   ", META_ERROR_NO_KEY, META_ERROR_NO_KEY);
	expect(TEXT_META_SET, " ", META_ERROR_NO_KEY);
	expect(TEXT_META_DEBUG, " ", META_ERROR_FORMAT);
}

static void a_key_has_at_most_250_bytes(void **state)
{
	(void)state;
	expect_all(with_key(251, ""), META_ERROR_FORMAT, META_ERROR_FORMAT);
	expect_all(with_key(251, " z z"), META_ERROR_FORMAT, META_ERROR_FORMAT);
	expect(TEXT_META_SET, with_key(251, " 1"), META_ERROR_FORMAT);
	expect(TEXT_META_DEBUG, with_key(251, ""), META_ERROR_FORMAT);
	expect_all(with_key(250, " v k"), META_ERROR_OK, META_ERROR_OK);
	expect(TEXT_META_DEBUG, with_key(250, ""), META_ERROR_OK);
}

static void flags_are_at_most_seventeen(void **state)
{
	static const char *const seventeen = " a k q c f h l s t u v I L P x T1 N1 R1";
	char line[128];

	(void)state;
	expect_all(seventeen, META_ERROR_OK, META_ERROR_OK);
	snprintf(line, sizeof(line), "%s F1", seventeen);
	expect_all(line, META_ERROR_MANY_TO_GET, META_ERROR_MANY);
	snprintf(line, sizeof(line), "%s z z z z", seventeen);
	expect_all(line, META_ERROR_MANY_TO_GET, META_ERROR_MANY);
	expect(TEXT_META_SET, " a 1 k q c f h l s t u v I L P x T1 N1", META_ERROR_OK);
	expect(TEXT_META_SET, " a 1 k q c f h l s t u v I L P x T1 N1 R1", META_ERROR_MANY);
	expect(TEXT_META_SET, " a z k q c f h l s t u v I L P x T1 N1 R1", META_ERROR_MANY);
}

static void unknown_flags_are_refused(void **state)
{
	char line[] = " a ?";

	(void)state;
	for (int c = 1; c < 256; c++) {
		enum meta_error error = c < 127 ? META_ERROR_FLAG : META_ERROR_DUPLICATE;

		if (c == ' ' || strchr("ILPquvxcfhklstObMCDEFJNRT", c))
			continue;
		line[3] = (char)c;
		expect_all(line, error, META_ERROR_FLAG_OR_DUPLICATE);
	}
	expect(TEXT_META_SET, " a 1 z", META_ERROR_FLAG);
	expect(TEXT_META_SET, " a 1 S1", META_ERROR_FLAG);
}

static void a_flag_comes_once(void **state)
{
	(void)state;
	expect_all(" a v v", META_ERROR_DUPLICATE, META_ERROR_FLAG_OR_DUPLICATE);
	expect_all(" a T1 v T2", META_ERROR_DUPLICATE, META_ERROR_FLAG_OR_DUPLICATE);
	expect(TEXT_META_SET, " a 1 k q k", META_ERROR_DUPLICATE);
	expect_all(" a vv", META_ERROR_OK, META_ERROR_OK); /* what follows a flag without a token is passed over */
}

static void tokens_must_be_numbers(void **state)
{
	static const struct {
		const char *line;
		enum meta_error error;
	} cases[] = {
		{ " a T", META_ERROR_TOKEN },         { " a Tx", META_ERROR_TOKEN },
		{ " a T1x", META_ERROR_TOKEN },       { " a T99999999999999999999", META_ERROR_TOKEN },
		{ " a N", META_ERROR_TOKEN },         { " a Nx", META_ERROR_TOKEN },
		{ " a R", META_ERROR_TOKEN },         { " a Rx", META_ERROR_TOKEN },
		{ " a C", META_ERROR_TOKEN },         { " a C-1", META_ERROR_TOKEN },
		{ " a Cx", META_ERROR_TOKEN },        { " a C18446744073709551616", META_ERROR_TOKEN },
		{ " a E", META_ERROR_TOKEN },         { " a Ex", META_ERROR_TOKEN },
		{ " a F", META_ERROR_FORMAT },        { " a Fx", META_ERROR_FORMAT },
		{ " a F-1", META_ERROR_FORMAT },      { " a D", META_ERROR_DELTA },
		{ " a D-1", META_ERROR_DELTA },       { " a J", META_ERROR_INITIAL },
		{ " a Jx", META_ERROR_INITIAL },      { " a M", META_ERROR_MODE_LENGTH },
		{ " a MII", META_ERROR_MODE_LENGTH }, { " a Tx Fx", META_ERROR_TOKEN },
		{ " a Fx Tx", META_ERROR_TOKEN },     { " a Dx Fx", META_ERROR_DELTA },
	};
	char line[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		expect_all(cases[i].line, cases[i].error, META_ERROR_FLAG_OR_DUPLICATE);
		snprintf(line, sizeof(line), " a 1%s", cases[i].line + 2);
		expect(TEXT_META_SET, line, cases[i].error);
	}
}

static void the_last_bad_token_is_told_but_a_bad_flag_first(void **state)
{
	(void)state;
	expect(TEXT_META_GET, " a b Tx", META_ERROR_TOKEN);
	expect(TEXT_META_GET, " a Tx b", META_ERROR_KEY);
	expect(TEXT_META_GET, " a Tx z Dx", META_ERROR_FLAG);
	expect(TEXT_META_GET, " a Mxx Tx", META_ERROR_TOKEN);
}

static void opaque_tokens_have_at_most_31_bytes(void **state)
{
	struct meta_command command;

	(void)state;
	expect_all(" a O12345678901234567890123456789012", META_ERROR_OPAQUE, META_ERROR_OPAQUE);
	expect(TEXT_META_SET, " a 1 O12345678901234567890123456789012", META_ERROR_OPAQUE);
	expect(TEXT_META_GET, " a O12345678901234567890123456789012 z", META_ERROR_FLAG);
	assert_int_equal(parse(TEXT_META_GET, " a O1234567890123456789012345678901", &command), META_ERROR_OK);
	assert_int_equal(command.opaque_length, 31);
	assert_memory_equal(command.opaque, "1234567890123456789012345678901", 31);
	assert_int_equal(parse(TEXT_META_GET, " a O", &command), META_ERROR_OK);
	assert_int_equal(command.opaque_length, 0);
	assert_int_equal(command.answer_count, 1);
}

static void modes(void **state)
{
	struct meta_command command;

	(void)state;
	expect(TEXT_META_SET, " a 1 MX", META_ERROR_MODE_SET);
	expect(TEXT_META_SET, " a 1 Me", META_ERROR_MODE_SET);
	expect(TEXT_META_ARITHMETIC, " a MX", META_ERROR_MODE_ARITHMETIC);
	expect(TEXT_META_ARITHMETIC, " a Mi", META_ERROR_MODE_ARITHMETIC);
	expect(TEXT_META_GET, " a MX", META_ERROR_OK);
	expect(TEXT_META_DELETE, " a MX", META_ERROR_OK);
	for (const char *mode = "SEAPR"; *mode; mode++) {
		char line[] = " a 1 M?";

		line[6] = *mode;
		assert_int_equal(parse(TEXT_META_SET, line, &command), META_ERROR_OK);
		assert_int_equal(command.mode, *mode);
	}
	assert_int_equal(parse(TEXT_META_SET, " a 1", &command), META_ERROR_OK);
	assert_int_equal(command.mode, 'S');
	assert_int_equal(parse(TEXT_META_ARITHMETIC, " a", &command), META_ERROR_OK);
	assert_int_equal(command.mode, 'I');
	assert_int_equal(parse(TEXT_META_ARITHMETIC, " a M+", &command), META_ERROR_OK);
	assert_int_equal(command.mode, 'I');
	assert_int_equal(parse(TEXT_META_ARITHMETIC, " a M-", &command), META_ERROR_OK);
	assert_int_equal(command.mode, 'D');
	assert_int_equal(parse(TEXT_META_ARITHMETIC, " a MD", &command), META_ERROR_OK);
	assert_int_equal(command.mode, 'D');
}

static void a_set_needs_a_length(void **state)
{
	static const char *const lines[] = {
		" a",    " a x",   " a -1",         " a 1x",         " a 0x1",
		" a S1", " a v 1", " a 2147483647", " a 2147483646", " a 99999999999999999999"
	};
	struct meta_command command;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(parse(TEXT_META_SET, lines[i], &command), META_ERROR_FORMAT);
		assert_false(command.body_follows);
	}
	assert_int_equal(parse(TEXT_META_SET, " a +7 v", &command), META_ERROR_OK);
	assert_int_equal(command.value_length, 7);
	assert_true(command.body_follows);
}

static void a_bad_flag_of_a_set_leaves_a_body_to_pass_over(void **state)
{
	struct meta_command command;

	(void)state;
	assert_int_equal(parse(TEXT_META_SET, " a 5 z", &command), META_ERROR_FLAG);
	assert_true(command.body_follows);
	assert_int_equal(command.value_length, 5);
	assert_int_equal(parse(TEXT_META_SET, " a 6 MX", &command), META_ERROR_MODE_SET);
	assert_true(command.body_follows);
	assert_int_equal(parse(TEXT_META_SET, with_key(251, " 3"), &command), META_ERROR_FORMAT);
	assert_false(command.body_follows);
	assert_int_equal(parse(TEXT_META_GET, " a z", &command), META_ERROR_FLAG);
	assert_false(command.body_follows);
}

static void bad_base64_is_no_key(void **state)
{
	static const char *const keys[] = { "a", "YQ", "=", "====", "!!!!", "YW-_", "Y===", "YWFhY" };
	char line[64];

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		snprintf(line, sizeof(line), " %s b", keys[i]);
		expect_all(line, META_ERROR_KEY, META_ERROR_FLAG_OR_DUPLICATE);
		expect(TEXT_META_DEBUG, line, META_ERROR_FORMAT);
	}
}

static void base64_keys_are_decoded(void **state)
{
	static const struct {
		const char *line, *key;
		size_t length;
	} cases[] = {
		{ " YQ== b", "a", 1 },   { " YWI= b", "ab", 2 },         { " YWJj b", "abc", 3 },
		{ " YR== b", "a", 1 },   { " YQ==YQ== b", "a", 1 },      { " YW!Jj b", "abc", 3 },
		{ " YQ=a b", "a\0", 2 }, { " YWJjZA== b q", "abcd", 4 },
	};
	struct meta_command command;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(TEXT_META_GET, cases[i].line, &command), META_ERROR_OK);
		assert_int_equal(command.key_length, cases[i].length);
		assert_memory_equal(command.key, cases[i].key, cases[i].length);
	}
	assert_int_equal(parse(TEXT_META_DEBUG, " YWJj b", &command), META_ERROR_OK);
	assert_int_equal(command.key_length, 3);
	assert_memory_equal(command.key, "abc", 3);
	assert_int_equal(parse(TEXT_META_DEBUG, " YWJj k b", &command), META_ERROR_OK);
	assert_int_equal(command.key_length, 4);
}

static void keys_come_back_from_base64(void **state)
{
	struct rng rng;
	uint64_t seed = 20261120;

	(void)state;
	rng_init(&rng, seed);
	for (unsigned round = 0; round < 2000; round++) {
		unsigned length = 1 + (unsigned)(rng_next(&rng) % META_DECODED_MAX), encoded;
		char key[META_DECODED_MAX], text[META_ENCODED_MAX], back[META_DECODED_MAX];

		for (unsigned i = 0; i < length; i++)
			key[i] = (char)rng_next(&rng);
		encoded = meta_encode_key(key, length, text);
		assert_true(encoded <= META_ENCODED_MAX && encoded % 4 == 0);
		assert_int_equal(meta_decode_key(text, encoded, back), length);
		assert_memory_equal(back, key, length);
	}
}

static void flags_are_told_in_their_order(void **state)
{
	struct meta_command command;

	(void)state;
	assert_int_equal(parse(TEXT_META_GET, " key s v f k Oq t q c h l", &command), META_ERROR_OK);
	assert_int_equal(command.answer_count, 8);
	assert_memory_equal(command.answers, "sfkOtchl", 8);
	assert_true(meta_given(&command, 'v') && meta_given(&command, 'q'));
	assert_false(meta_given(&command, 'u') || meta_given(&command, 'T'));
	assert_int_equal(command.key_length, 3);
	assert_memory_equal(command.key, "key", 3);
}

static void tokens_are_told(void **state)
{
	struct meta_command command;

	(void)state;
	assert_int_equal(parse(TEXT_META_SET, " k 3 C1 E2 D3 J4 F4294967297 N-5 R+6 T-7", &command), META_ERROR_OK);
	assert_int_equal(command.cas, 1);
	assert_int_equal(command.new_cas, 2);
	assert_int_equal(command.delta, 3);
	assert_int_equal(command.initial, 4);
	assert_int_equal(command.client_flags, 1); /* 32 bits of it */
	assert_int_equal(command.vivify_exptime, -5);
	assert_int_equal(command.recache_exptime, 6);
	assert_int_equal(command.exptime, -7);
	assert_int_equal(parse(TEXT_META_GET, " k", &command), META_ERROR_OK);
	assert_int_equal(command.client_flags, 0);
	assert_int_equal(command.given, 0);
}

static void a_time_to_live_may_be_asked_for_before_it_is_set(void **state)
{
	struct meta_command command;

	(void)state;
	assert_int_equal(parse(TEXT_META_GET, " k t T1", &command), META_ERROR_OK);
	assert_true(command.old_ttl);
	assert_int_equal(parse(TEXT_META_GET, " k T1 t", &command), META_ERROR_OK);
	assert_false(command.old_ttl);
}

static void of_the_times_of_an_object_that_is_made_the_last_counts(void **state)
{
	static const struct {
		const char *line;
		bool vivify_last;
		unsigned made_ttl;
	} cases[] = {
		{ " k N1 T1", false, 0 },  { " k T1 N1", true, 0 },   { " k t T1 N1", true, 0 },
		{ " k T1 t N1", true, 1 }, { " k T1 N1 t", true, 2 }, { " k N1 t T1", false, 1 },
		{ " k N1 t", false, 1 },   { " k t", false, 0 },
	};
	struct meta_command command;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(TEXT_META_GET, cases[i].line, &command), META_ERROR_OK);
		assert_int_equal(command.vivify_last, cases[i].vivify_last);
		assert_int_equal(command.made_ttl, cases[i].made_ttl);
	}
}

static void recaching_may_be_asked_for_before_the_time_is_set(void **state)
{
	struct meta_command command;

	(void)state;
	assert_int_equal(parse(TEXT_META_GET, " k R9 T1", &command), META_ERROR_OK);
	assert_true(command.recache_first);
	assert_int_equal(parse(TEXT_META_GET, " k T1 R9", &command), META_ERROR_OK);
	assert_false(command.recache_first);
}

/* ---- the new grammar --------------------------------------------------------------------------- */

/* mg and md name what is wrong; ma has one answer to all of it. */
static void expect_new(const char *line, enum meta_error error)
{
	expect(TEXT_META_GET, line, error);
	expect(TEXT_META_DELETE, line, error);
	expect(TEXT_META_ARITHMETIC, line, META_ERROR_FLAG_OR_DUPLICATE);
}

static void new_errors(void **state)
{
	static const char *const eighteen = " a k q c f h l s t u v I L P x T1 N1 R1 F1";
	char line[128];

	(void)state;
	expect_all("", META_ERROR_FORMAT, META_ERROR_FORMAT);
	expect(TEXT_META_SET, " ", META_ERROR_FORMAT);
	expect_new(with_key(251, ""), META_ERROR_FORMAT);
	expect_new(with_key(251, " z z"), META_ERROR_FORMAT);
	expect_all(eighteen, META_ERROR_OK, META_ERROR_OK);
	snprintf(line, sizeof(line), "%s D1", eighteen);
	expect_new(line, META_ERROR_MANY_TO_GET);
	expect_new(" a z", META_ERROR_FLAG);
	expect_new(" a v v", META_ERROR_DUPLICATE);
	expect_new(" a \x7f", META_ERROR_DUPLICATE);
	expect_new(" a T", META_ERROR_TOKEN);
	expect_new(" a T+1", META_ERROR_TOKEN);
	expect_new(" a N\t1", META_ERROR_TOKEN);
	expect_new(" a C+1", META_ERROR_TOKEN);
	expect_new(" a D+1", META_ERROR_DELTA);
	expect_new(" a J1x", META_ERROR_INITIAL);
	expect_new(" a F4294967296", META_ERROR_FORMAT);
	expect_new(" a Fx Tx", META_ERROR_TOKEN);
	expect(TEXT_META_GET, " a F4294967295", META_ERROR_OK);
	expect(TEXT_META_GET, " a T-1", META_ERROR_OK);
}

static void new_modes_have_any_length(void **state)
{
	struct meta_command command;

	(void)state;
	expect(TEXT_META_SET, " a 1 M", META_ERROR_MODE_SET);
	expect(TEXT_META_ARITHMETIC, " a M", META_ERROR_MODE_ARITHMETIC);
	expect(TEXT_META_GET, " a M", META_ERROR_OK);
	assert_int_equal(parse(TEXT_META_SET, " a 1 MAPPEND", &command), META_ERROR_OK);
	assert_int_equal(command.mode, 'A');
	assert_int_equal(parse(TEXT_META_ARITHMETIC, " a MDECR", &command), META_ERROR_OK);
	assert_int_equal(command.mode, 'D');
}

static void new_values_follow_a_valid_length(void **state)
{
	static const char *const follows[] = { " a 7 z", " a 7 Tx", " a 7 MX", " a 7 O12345678901234567890123456789012",
					       " a 7 k q c f h l s t u v I L P x T1 N1 R1 F1" };
	static const char *const none[] = { " a", " a x", " a +7", " a -1", " a 2147483646 z" };
	struct meta_command command;

	(void)state;
	for (size_t i = 0; i < sizeof(follows) / sizeof(follows[0]); i++) {
		assert_int_not_equal(parse(TEXT_META_SET, follows[i], &command), META_ERROR_OK);
		assert_true(command.body_follows && command.value_length == 7);
	}
	assert_int_equal(parse(TEXT_META_SET, with_key(251, " 7"), &command), META_ERROR_FORMAT);
	assert_true(command.body_follows && command.value_length == 7);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(parse(TEXT_META_SET, none[i], &command), META_ERROR_FORMAT);
		assert_false(command.body_follows);
	}
}

static void any_bytes_are_parsed_within_bounds(void **state)
{
	static const enum text_id ids[] = { TEXT_META_GET, TEXT_META_SET, TEXT_META_DELETE, TEXT_META_ARITHMETIC,
					    TEXT_META_DEBUG };
	static const char pool[] = "  aaYQ==bkqvTNRCEDJFMOIxc019-+\xff\n";
	struct rng rng;

	(void)state;
	rng_init(&rng, 4711);
	for (unsigned round = 0; round < 200000; round++) {
		char line[300];
		size_t length = rng_next(&rng) % (round % 16 == 0 ? sizeof(line) : 40);
		struct meta_command command;
		enum meta_error error;

		for (size_t i = 0; i < length; i++)
			line[i] = pool[rng_next(&rng) % (sizeof(pool) - 1)];
		grammar = round / 5 % 2 ? TEXT_GRAMMAR_NEW : TEXT_GRAMMAR_OLD;
		error = parse_bytes(ids[round % 5], line, length, &command);
		assert_true(error < META_ERRORS);
		if (error != META_ERROR_OK)
			continue;
		assert_in_range(command.key_length, 1, TEXT_KEY_MAX);
		assert_true(command.answer_count <= META_ANSWERS && command.opaque_length <= META_OPAQUE_MAX);
	}
}

static int free_held(void **state)
{
	(void)state;
	free(held);
	return 0;
}

#define BY_NEW(test) cmocka_unit_test_setup_teardown(test, by_new_grammar, by_old_grammar)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_needs_a_key),
		cmocka_unit_test(a_key_has_at_most_250_bytes),
		cmocka_unit_test(flags_are_at_most_seventeen),
		cmocka_unit_test(unknown_flags_are_refused),
		cmocka_unit_test(a_flag_comes_once),
		cmocka_unit_test(tokens_must_be_numbers),
		cmocka_unit_test(the_last_bad_token_is_told_but_a_bad_flag_first),
		cmocka_unit_test(opaque_tokens_have_at_most_31_bytes),
		cmocka_unit_test(modes),
		cmocka_unit_test(a_set_needs_a_length),
		cmocka_unit_test(a_bad_flag_of_a_set_leaves_a_body_to_pass_over),
		cmocka_unit_test(bad_base64_is_no_key),
		cmocka_unit_test(base64_keys_are_decoded),
		cmocka_unit_test(keys_come_back_from_base64),
		cmocka_unit_test(flags_are_told_in_their_order),
		cmocka_unit_test(tokens_are_told),
		cmocka_unit_test(a_time_to_live_may_be_asked_for_before_it_is_set),
		cmocka_unit_test(of_the_times_of_an_object_that_is_made_the_last_counts),
		cmocka_unit_test(recaching_may_be_asked_for_before_the_time_is_set),
		BY_NEW(new_errors),
		BY_NEW(new_modes_have_any_length),
		BY_NEW(new_values_follow_a_valid_length),
		BY_NEW(flags_are_told_in_their_order),
		BY_NEW(base64_keys_are_decoded),
		BY_NEW(any_bytes_are_parsed_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, free_held);
}
