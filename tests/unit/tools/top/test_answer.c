/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of answers, and the rows of samples: what isn't of its form is left out and never shown as it is. */
#include "tests/unit/tools/top/top_test.h"

#include "tools/top/answer.h"

static enum answer take(const char *text, char line[256], const char **name, const char **value)
{
	size_t length = strlen(text);

	*name = *value = "";
	memcpy(line, text, length + 1);
	return answer_line(line, length, name, value);
}

static void what_is_no_row_is_bad(void **state)
{
	static const char *const lines[] = {
		"",     "STAT", "STAT ",  "STAT  17", "stat a 1", "VALUE a 0 1", "HTTP/1.1 400 Bad Request",
		"ENDE", "END ", "ERRORS", "OK",       "\x80\x81", "\x16\x03\x01"
	};
	char line[256];
	const char *name, *value;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(take(lines[i], line, &name, &value), ANSWER_BAD);
}

static void a_zero_in_a_line_is_no_end_of_it(void **state)
{
	char line[] = "STAT a\0b 1";
	const char *name = "", *value = "";

	(void)state;
	assert_int_equal(answer_line(line, sizeof(line) - 1, &name, &value), ANSWER_ROW);
	assert_string_equal(name, "a?b");
	assert_string_equal(value, "1");
}

static void control_characters_do_not_pass(void **state)
{
	char line[256];
	const char *name, *value;

	(void)state;
	assert_int_equal(take("STAT \x1b[2Ja\x7f:get_count \x1b]0;x\x07\xc3\xa4\x9b", line, &name, &value), ANSWER_ROW);
	assert_string_equal(name, "?[2Ja?:get_count");
	assert_string_equal(value, "?]0;x????");
	assert_int_equal(take("SERVER_ERROR \x1b[31m", line, &name, &value), ANSWER_REFUSED);
	assert_string_equal(line, "SERVER_ERROR ?[31m");
	assert_int_equal(take("\x1b"
			      "c",
			      line, &name, &value),
			 ANSWER_BAD);
	assert_string_equal(line, "?c");
}

static void rows_and_ends(void **state)
{
	char line[256];
	const char *name, *value;

	(void)state;
	assert_int_equal(take("STAT reason no model has been trained yet", line, &name, &value), ANSWER_ROW);
	assert_string_equal(name, "reason");
	assert_string_equal(value, "no model has been trained yet");
	assert_int_equal(take("STAT empty", line, &name, &value), ANSWER_ROW);
	assert_string_equal(value, "");
	assert_int_equal(take("END", line, &name, &value), ANSWER_END);
	assert_int_equal(take("ERROR", line, &name, &value), ANSWER_REFUSED);
	assert_int_equal(take("CLIENT_ERROR unauthenticated", line, &name, &value), ANSWER_REFUSED);
}

static void values_that_are_no_numbers_are_unknown(void **state)
{
	static const char *const values[] = { "",   "x",  "1x",    "1 2", "nan", "inf", "-inf",
					      "+1", " 1", "1e999", "-3",  "--1", "?" };
	struct sample sample;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		a_sample(&sample, 1);
		give(&sample, REPORT_GENERAL, "get_hits", values[i]);
		give(&sample, REPORT_LATENCY, "set_p99_us", values[i]);
		give(&sample, REPORT_APPS, "a:get_count", values[i]);
		assert_unknown(sample.value[FIELD_get_hits]);
		assert_unknown(sample.timing[TIMING_set][TIMING_P99]);
		assert_int_equal(sample.app_count, 0);
	}
}

static void a_row_counts_in_its_own_report_only(void **state)
{
	struct sample sample;

	(void)state;
	a_sample(&sample, 1);
	give(&sample, REPORT_FLASH, "get_hits", "5");
	give(&sample, REPORT_GENERAL, "flash_reads_on_hit", "5");
	give(&sample, REPORT_GENERAL, "unheard_of", "5");
	assert_unknown(sample.value[FIELD_get_hits]);
	assert_unknown(sample.value[FIELD_flash_reads_on_hit]);
	give(&sample, REPORT_GENERAL, "get_hits", "5");
	assert_number(sample.value[FIELD_get_hits], 5);
	assert_true(sample.has[REPORT_FLASH]);
	assert_false(sample.has[REPORT_LATENCY]);
}

static void extstore_stands_in_for_flash_only_where_there_is_none_of_ours(void **state)
{
	struct sample sample;

	(void)state;
	a_sample(&sample, 1);
	give(&sample, REPORT_GENERAL, "get_extstore", "7");
	give(&sample, REPORT_GENERAL, "extstore_limit_maxbytes", "1024");
	give(&sample, REPORT_GENERAL, "extstore_pages_used", "3");
	give(&sample, REPORT_GENERAL, "extstore_pages_free", "5");
	sample_complete(&sample, SECOND_US);
	assert_number(sample.value[FIELD_flash_hits], 7);
	assert_number(sample.value[FIELD_flash_enabled], 1);
	assert_number(sample.value[FIELD_segments_total], 8);
	give(&sample, REPORT_FLASH, "flash_hits", "2");
	assert_number(sample.value[FIELD_flash_hits], 2);
}

static void only_the_threshold_may_be_negative(void **state)
{
	struct sample sample;

	(void)state;
	a_sample(&sample, 1);
	give(&sample, REPORT_CLASSIFIER, "threshold", "-0.25");
	give(&sample, REPORT_CLASSIFIER, "precision", "-0.25");
	assert_number(sample.value[FIELD_threshold], -0.25);
	assert_unknown(sample.value[FIELD_precision]);
}

static void long_and_many_applications_are_cut(void **state)
{
	char name[300], row[400];
	struct sample sample;

	(void)state;
	a_sample(&sample, 1);
	give(&sample, REPORT_APPS, ":get_count", "1");
	give(&sample, REPORT_APPS, "apps", "3");
	give(&sample, REPORT_APPS, "a:unheard_of", "3");
	assert_int_equal(sample.app_count, 0);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = 0;
	snprintf(row, sizeof(row), "%s:get_count", name);
	give(&sample, REPORT_APPS, row, "4");
	assert_int_equal(strlen(sample.apps[0].name), APP_NAME_BYTES - 1);
	for (unsigned i = 0; i < 2 * APPS_MAX; i++) {
		snprintf(row, sizeof(row), "app%u:get_count", i);
		give(&sample, REPORT_APPS, row, "4");
	}
	assert_int_equal(sample.app_count, APPS_MAX);
}

static void applications_with_colons(void **state)
{
	struct sample sample;

	(void)state;
	a_sample(&sample, 1);
	give(&sample, REPORT_APPS, "a:b:get_count", "4");
	give(&sample, REPORT_APPS, "a:get_count", "5");
	give(&sample, REPORT_APPS, "a:b:flash_hits", "6");
	assert_int_equal(sample.app_count, 2);
	assert_number(sample_app(&sample, "a:b")->count[APP_GETS], 4);
	assert_number(sample_app(&sample, "a:b")->count[APP_FLASH_HITS], 6);
	assert_unknown(sample_app(&sample, "a:b")->count[APP_SETS]);
	assert_null(sample_app(&sample, "b"));
}

static void timings_whose_names_begin_alike(void **state)
{
	struct sample sample;

	(void)state;
	a_sample(&sample, 1);
	give(&sample, REPORT_LATENCY, "flash_read_p99_us", "9.5");
	give(&sample, REPORT_LATENCY, "flash_hit_p999_us", "12");
	give(&sample, REPORT_LATENCY, "flash_p99_us", "1");
	assert_number(sample.timing[TIMING_flash_read][TIMING_P99], 9.5);
	assert_number(sample.timing[TIMING_flash_hit][TIMING_P999], 12);
	assert_unknown(sample.timing[TIMING_flash_hit][TIMING_P99]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_row_is_bad),
		cmocka_unit_test(a_zero_in_a_line_is_no_end_of_it),
		cmocka_unit_test(control_characters_do_not_pass),
		cmocka_unit_test(rows_and_ends),
		cmocka_unit_test(values_that_are_no_numbers_are_unknown),
		cmocka_unit_test(a_row_counts_in_its_own_report_only),
		cmocka_unit_test(extstore_stands_in_for_flash_only_where_there_is_none_of_ours),
		cmocka_unit_test(only_the_threshold_may_be_negative),
		cmocka_unit_test(long_and_many_applications_are_cut),
		cmocka_unit_test(applications_with_colons),
		cmocka_unit_test(timings_whose_names_begin_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
