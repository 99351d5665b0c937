/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures: medians and ratios, tables that fit, verdicts, and a JSON file that gives all samples back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/bench/figures.h"

#define TABLE_WIDTH 110

static struct figures *figures;
static char path[64];

static int set_up(void **state)
{
	int fd;

	(void)state;
	figures = figures_create();
	snprintf(path, sizeof(path), "/tmp/flashield-figures-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd) != 0;
}

static int tear_down(void **state)
{
	(void)state;
	figures_destroy(figures);
	return unlink(path);
}

static void add(const char *row, const char *column, size_t count, const double *samples)
{
	for (size_t i = 0; i < count; i++)
		figures_add(figures, "study", row, column, samples[i]);
}
#define ADD(row, column, ...) \
	add(row, column, sizeof((double[]){ __VA_ARGS__ }) / sizeof(double), (double[]){ __VA_ARGS__ })

static bool close_to(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* What a print function writes; the caller frees. */
static char *printed(void (*print)(FILE *out, const void *context), const void *context)
{
	static char *text; /* not on the stack: gcc doesn't know that the stream sets it */
	static size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	print(out, context);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void print_study(FILE *out, const void *name)
{
	figures_print_study(figures, name, out);
}

static void print_targets(FILE *out, const void *context)
{
	(void)context;
	figures_print_targets(figures, out);
}

static void print_comparison(FILE *out, const void *base)
{
	figures_print_comparison(figures, base, out);
}

static void write_file(const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

/* ---- medians --------------------------------------------------------------------------------- */

static void test_median_of_what_is_a_number(void **state)
{
	(void)state;
	assert_true(isnan(figures_median(figures, "study", "row", "x")));
	ADD("odd", "x", 3, 1, 2);
	ADD("even", "x", 4, 1, 2, 3);
	ADD("holes", "x", NAN, 7, NAN);
	ADD("none", "x", NAN, NAN);
	assert_true(close_to(figures_median(figures, "study", "odd", "x"), 2));
	assert_true(close_to(figures_median(figures, "study", "even", "x"), 2.5));
	assert_true(close_to(figures_median(figures, "study", "holes", "x"), 7));
	assert_true(isnan(figures_median(figures, "study", "none", "x")));
	assert_true(isnan(figures_median(figures, "study", "odd", "y")));
	assert_true(isnan(figures_median(figures, "other", "odd", "x")));
}

static void test_ratio_goes_round_by_round(void **state)
{
	(void)state;
	/* The machine slows down from round to round: the ratio of the medians would be 1. */
	ADD("ours", "x", 1, 4, 16);
	ADD("theirs", "x", 2, 8, 4);
	assert_true(close_to(figures_ratio(figures, "study", "ours", "theirs", "x"), 0.5));
	ADD("short", "x", 1); /* one round less far */
	assert_true(close_to(figures_ratio(figures, "study", "ours", "short", "x"), 1));
	ADD("zero", "x", 0, 0, 0);
	assert_true(isnan(figures_ratio(figures, "study", "ours", "zero", "x")));
	assert_true(isnan(figures_ratio(figures, "study", "ours", "nobody", "x")));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void test_no_line_is_wider_than_the_table(void **state)
{
	char column[64], words[600] = "";
	char *text;

	(void)state;
	for (int i = 0; i < 100; i++)
		strcat(words, "word ");
	figures_study(figures, "study", "title", words);
	figures_note(figures, "study", "%s", words);
	for (int i = 0; i < 30; i++) {
		snprintf(column, sizeof(column), "column_%d_us", i);
		ADD("a row with a name of some length", column, 1234.5 * i);
		ADD("another", column, 1e-4 * i);
	}
	text = printed(print_study, "study");
	for (char *line = text; *line; line += strcspn(line, "\n") + 1) {
		size_t length = strcspn(line, "\n");

		assert_true(length <= TABLE_WIDTH);
		assert_true(length == 0 || line[length - 1] != ' ');
	}
	assert_non_null(strstr(text, "column_29_us"));
	free(text);
}

static void test_numbers_have_three_digits_or_the_columns_decimals(void **state)
{
	char *text;

	(void)state;
	ADD("r", "a", 0.00123456);
	ADD("r", "b", 0.98765);
	ADD("r", "c", 12.3456);
	ADD("r", "d", 9999);
	ADD("r", "e", 201345);
	ADD("r", "f", 12.3456);
	ADD("r", "g", NAN);
	ADD("r", "h", 0);
	figures_column(figures, "f", "head of f", 1);
	text = printed(print_study, "study");
	assert_non_null(strstr(text, "0.00123  0.988  12.3  9999  201k  12.3  -  0\n"));
	assert_non_null(strstr(text, " head\n         a "));
	free(text);
}

static void test_rows_without_a_common_column_stand_apart(void **state)
{
	char *text;

	(void)state;
	ADD("get", "cpu", 1);
	ADD("fill", "bytes", 2);
	ADD("set", "cpu", 3);
	text = printed(print_study, "study");
	assert_non_null(strstr(text, "     cpu\nget    1\nset    3\n\n      bytes\nfill      2\n"));
	free(text);
}

static void test_a_note_is_kept_once(void **state)
{
	char *text, *first;

	(void)state;
	figures_note(figures, "study", "no %s here", "disk");
	figures_note(figures, "study", "no disk here");
	text = printed(print_study, "study");
	first = strstr(text, "no disk here");
	assert_non_null(first);
	assert_null(strstr(first + 1, "no disk here"));
	free(text);
}

static void test_nothing_is_printed_of_a_study_that_did_not_run(void **state)
{
	char *text = printed(print_study, "study");

	(void)state;
	assert_string_equal(text, "");
	free(text);
	text = printed(print_targets, NULL);
	assert_string_equal(text, "");
	free(text);
}

/* ---- targets --------------------------------------------------------------------------------- */

static bool line_has(const char *text, const char *measure, const char *verdict)
{
	const char *line = strstr(text, measure), *found;

	assert_non_null(line);
	found = strstr(line, verdict);
	return found && found < line + strcspn(line, "\n");
}

static void test_verdicts(void **state)
{
	char *text;

	(void)state;
	figures_target(figures, "at the limit", 0.9, FIGURES_AT_MOST, 0.9, "x");
	figures_target(figures, "above it", 0.99, FIGURES_AT_MOST, 0.9, "x");
	figures_target(figures, "enough", 96, FIGURES_AT_LEAST, 95, "%");
	figures_target(figures, "too few", 76, FIGURES_AT_LEAST, 95, "%");
	figures_target(figures, "unknown", NAN, FIGURES_AT_LEAST, 95, "%");
	figures_beside(figures, "beside", 126, "B");
	text = printed(print_targets, NULL);
	assert_true(line_has(text, "at the limit", "<= 0.900 x  reached"));
	assert_true(line_has(text, "above it", "missed by 10 %"));
	assert_true(line_has(text, "enough", ">= 95 %  reached"));
	assert_true(line_has(text, "too few", "missed by 20 %"));
	assert_true(line_has(text, "unknown", "not measured"));
	assert_true(line_has(text, "beside", "126 B"));
	assert_false(line_has(text, "beside", "="));
	free(text);
}

/* ---- comparison ------------------------------------------------------------------------------ */

static void test_changes_beyond_both_spreads_are_marked(void **state)
{
	struct figures *base = figures_create(), *swap = figures;
	char *text;

	(void)state;
	figures = base;
	ADD("clear", "x", 10, 11, 12);
	ADD("noisy", "x", 10, 11, 30);
	ADD("single", "x", 10);
	ADD("gone", "x", 10);
	figures = swap;
	ADD("clear", "x", 20, 22, 23);
	ADD("noisy", "x", 20, 22, 23);
	ADD("single", "x", 20);
	ADD("new", "x", 10);
	ADD("clear", "new_column", 10);
	text = printed(print_comparison, base);
	assert_non_null(strstr(text, "1 of 3 figures"));
	assert_non_null(strstr(text, "*+100%"));
	assert_non_null(strstr(text, "noisy   before      11\n"));
	assert_non_null(strstr(text, "        change   +100%\nsingle "));
	assert_null(strstr(text, "gone"));
	assert_null(strstr(text, "new"));
	free(text);
	figures_destroy(base);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void test_the_file_gives_all_samples_back(void **state)
{
	struct figures *read;
	char error[256], *text, *again;

	(void)state;
	figures_about(figures, "machine", "first");
	figures_about(figures, "machine", "%s", "a \"quoted\" one");
	figures_study(figures, "study", "title", "explanation");
	figures_column(figures, "x", "us CPU/op", 2);
	ADD("row", "x", 1.25, NAN, 3);
	ADD("row", "y", 1e-12);
	figures_note(figures, "study", "a note");
	figures_target(figures, "a target", 1, FIGURES_AT_LEAST, 2, "x");
	figures_beside(figures, "beside", NAN, "B");
	assert_int_equal(figures_write_json(figures, path), 0);
	read = figures_read_json(path, error);
	assert_non_null(read);
	assert_true(close_to(figures_median(read, "study", "row", "x"), 2.125));
	assert_true(close_to(figures_median(read, "study", "row", "y") * 1e12, 1));
	/* Pairwise with itself: the second sample's NaN stands where it stood. */
	assert_true(close_to(figures_ratio(read, "study", "row", "row", "x"), 1));

	text = printed(print_study, "study");
	figures_destroy(figures);
	figures = read;
	again = printed(print_study, "study");
	assert_string_equal(text, again);
	free(text);
	free(again);
	text = printed(print_targets, NULL);
	assert_true(line_has(text, "a target", ">= 2 x  missed by 50 %"));
	assert_true(line_has(text, "beside", "-"));
	free(text);
}

static void test_foreign_files_are_refused(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "{}", "{\"format\": 3}", "{\"format\": \"other\"}" };
	char error[256];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_file(texts[i]);
		*error = 0;
		assert_null(figures_read_json(path, error));
		assert_non_null(strstr(error, path));
	}
	assert_null(figures_read_json("/nowhere/at/all.json", error));
	assert_non_null(strstr(error, "No such file"));
}

static void test_parts_of_the_wrong_kind_are_left_out(void **state)
{
	struct figures *read;
	char error[256];

	(void)state;
	write_file("{\"format\": \"flashield-bench 1\", \"about\": 1, \"columns\": [2], \"targets\": {},"
		   " \"studies\": {\"s\": 3, \"t\": {\"notes\": 4, \"rows\": {\"r\": {\"x\": [\"five\", 6],"
		   " \"y\": 7}}}}}");
	read = figures_read_json(path, error);
	assert_non_null(read);
	assert_true(close_to(figures_median(read, "t", "r", "x"), 6));
	assert_true(isnan(figures_median(read, "t", "r", "y")));
	figures_destroy(read);
}

static void test_a_file_that_cannot_be_written(void **state)
{
	(void)state;
	assert_int_equal(figures_write_json(figures, "/nowhere/at/all.json"), -1);
	ADD("row", "x", 1);
	assert_int_equal(figures_write_json(figures, "/dev/full"), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_median_of_what_is_a_number),
		TEST(test_ratio_goes_round_by_round),
		TEST(test_no_line_is_wider_than_the_table),
		TEST(test_numbers_have_three_digits_or_the_columns_decimals),
		TEST(test_rows_without_a_common_column_stand_apart),
		TEST(test_a_note_is_kept_once),
		TEST(test_nothing_is_printed_of_a_study_that_did_not_run),
		TEST(test_verdicts),
		TEST(test_changes_beyond_both_spreads_are_marked),
		TEST(test_the_file_gives_all_samples_back),
		TEST(test_foreign_files_are_refused),
		TEST(test_parts_of_the_wrong_kind_are_left_out),
		TEST(test_a_file_that_cannot_be_written),
	};

	return cmocka_run_group_tests_name("bench/figures", tests, NULL, NULL);
}
