/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines, asserts and error texts. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/log.h"
#include "tests/unit/base/base_test.h"

static char text[8192];

static void below_the_level(void)
{
	log_set_level(LOG_LEVEL_WARN);
	log_notice("not to be seen");
}

static void a_line_below_the_level_is_not_written(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(below_the_level, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

static void failing_assert(void)
{
	must(1 + 1 == 3);
}

static void a_failed_assert_names_itself_and_aborts(void **state)
{
	int status = run_in_child(failing_assert, text, sizeof(text));

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(text, "error: assertion failed: 1 + 1 == 3 (tests/unit/base/test_log.c:"));
}

static void too_long(void)
{
	char line[5000];

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = 0;
	log_error("%s", line);
}

static void a_long_line_is_cut_and_still_one_line(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(too_long, text, sizeof(text)), 0);
	assert_true(strlen(text) > 1000 && strlen(text) < 5000);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void every_level(void)
{
	log_set_level(LOG_LEVEL_DEBUG);
	errno = ENOSPC;
	log_error("a %d: %m", 1);
	if (errno == ENOSPC)
		log_warn("errno is kept");
	log_notice("c");
	log_info("d");
	log_debug("e");
}

static void lines_begin_with_their_level(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(every_level, text, sizeof(text)), 0);
	assert_string_equal(text, "error: a 1: No space left on device\nwarning: errno is kept\nnotice: c\n"
				  "info: d\ndebug: e\n");
}

static void in_the_journal(void)
{
	char stream[64];
	struct stat st;

	fstat(STDERR_FILENO, &st);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_error("x");
	log_notice("y");
}

static void lines_to_the_journal_begin_with_their_priority(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(in_the_journal, text, sizeof(text)), 0);
	assert_string_equal(text, "<3>x\n<5>y\n");
}

static void from_a_client(void)
{
	log_error("%s", "a\r\nerror: forged\x1b[31m\t\x7f");
	log_error("%s", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	log_error("%s", "\xc3(\xe9\xc2\x9b\xe0\x80\x80\xed\xa0\x80\xf5\xff\xe2\x82");
}

static void what_a_client_sends_makes_no_second_line(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(from_a_client, text, sizeof(text)), 0);
	assert_string_equal(text, "error: a\\x0d\\nerror: forged\\x1b[31m\\t\\x7f\n"
				  "error: caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n"
				  "error: \\xc3(\\xe9\\xc2\\x9b\\xe0\\x80\\x80\\xed\\xa0\\x80\\xf5\\xff\\xe2\\x82\n");
}

static void only_escapes(void)
{
	char line[5000];

	memset(line, '\n', sizeof(line) - 1);
	line[sizeof(line) - 1] = 0;
	log_error("%s", line);
}

static void an_escaped_line_is_cut_too(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(only_escapes, text, sizeof(text)), 0);
	assert_true(strlen(text) > 1000 && strlen(text) < 5000);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void again_and_again(void)
{
	for (int i = 0; i < 1000; i++)
		log_limited(LOG_LEVEL_WARN, "line %d", i);
	log_limited(LOG_LEVEL_WARN, "from elsewhere");
}

static void a_place_writes_only_so_many_lines(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(again_and_again, text, sizeof(text)), 0);
	assert_string_equal(text,
			    "warning: line 0\nwarning: line 1\nwarning: line 2\nwarning: line 3\nwarning: line 4\n"
			    "warning: from elsewhere\n");
}

static void what_was_left_out_is_counted(void **state)
{
	struct log_rate rate = { 0 };
	uint64_t left_out = 99;

	(void)state;
	for (unsigned i = 0; i < LOG_BURST; i++)
		assert_true(log_rate_allows(&rate, 1000 + i, &left_out) && left_out == 0);
	for (unsigned i = 0; i < 7; i++)
		assert_false(log_rate_allows(&rate, 1000 + LOG_PERIOD_MS - 1, &left_out));
	assert_true(log_rate_allows(&rate, 1000 + LOG_PERIOD_MS, &left_out));
	assert_int_equal(left_out, 7);
	assert_true(log_rate_allows(&rate, 1000 + LOG_PERIOD_MS, &left_out));
	assert_int_equal(left_out, 0);
}

static bool sink_works;

static bool sink(const struct log_record *record)
{
	if (!sink_works)
		return false;
	dprintf(STDERR_FILENO, "[%d %s %s %s", record->priority, record->text, record->origin->function,
		record->event ? record->event : "-");
	for (const struct log_field *field = record->fields; field && field->name; field++)
		dprintf(STDERR_FILENO, " %s=%s/%u", field->name, field->text ? field->text : "",
			(unsigned)field->number);
	dprintf(STDERR_FILENO, "]\n");
	return true;
}

static void to_a_sink(void)
{
	log_set_sink(sink);
	sink_works = true;
	in_the_journal();
	log_event(LOG_LEVEL_WARN, "event", LOG_FIELDS(LOG_TEXT("A", "b"), LOG_NUMBER("N", 7)), "said %d", 1);
	log_event(LOG_LEVEL_DEBUG, "unseen", NULL, "said %d", 1);
	sink_works = false;
	log_event(LOG_LEVEL_WARN, "event", NULL, "without it");
}

static void the_journals_lines_go_to_a_sink_while_it_takes_them(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(to_a_sink, text, sizeof(text)), 0);
	assert_string_equal(text,
			    "[3 x in_the_journal -]\n[5 y in_the_journal -]\n[4 said 1 to_a_sink event A=b/0 N=/7]\n"
			    "<4>without it\n");
}

static void to_a_sink_outside_of_the_journal(void)
{
	log_set_sink(sink);
	sink_works = true;
	log_event(LOG_LEVEL_WARN, "event", NULL, "on a terminal");
}

static void a_sink_takes_lines_outside_of_the_journal_too(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(to_a_sink_outside_of_the_journal, text, sizeof(text)), 0);
	assert_string_equal(text, "[4 on a terminal to_a_sink_outside_of_the_journal event]\n");
}

static void with_times(void)
{
	log_set_times(true);
	log_error("x");
	in_the_journal();
	log_leave_journal();
	log_error("no journal any more");
}

static void lines_outside_of_the_journal_can_have_the_time(void **state)
{
	unsigned year, month, day, hour, minute, second, thousandth;
	char end[16] = "";

	(void)state;
	assert_int_equal(run_in_child(with_times, text, sizeof(text)), 0);
	assert_int_equal(sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u.%3uZ %15[^\n]", &year, &month, &day, &hour, &minute,
				&second, &thousandth, end),
			 8);
	assert_true(year >= 2024 && month >= 1 && month <= 12 && day <= 31 && hour < 24 && minute < 60);
	assert_string_equal(end, "error: x");
	assert_null(strstr(text, "<3>"));
	assert_non_null(strstr(text, "Z error: no journal any more\n"));
}

static void another_journal(void)
{
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_error("x");
}

static void a_journal_that_is_not_standard_error_does_not_count(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(another_journal, text, sizeof(text)), 0);
	assert_string_equal(text, "error: x\n");
}

static void every_code_has_a_text(void **state)
{
	(void)state;
	assert_string_equal(fs_strerror(12345), "unknown error code");
	assert_string_equal(fs_strerror(FS_OK), "success");
	for (int code = 0; code >= FS_ERANGE; code--)
		assert_string_not_equal(fs_strerror(code), "unknown error code");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_below_the_level_is_not_written),
		cmocka_unit_test(a_failed_assert_names_itself_and_aborts),
		cmocka_unit_test(a_long_line_is_cut_and_still_one_line),
		cmocka_unit_test(lines_begin_with_their_level),
		cmocka_unit_test(lines_to_the_journal_begin_with_their_priority),
		cmocka_unit_test(what_a_client_sends_makes_no_second_line),
		cmocka_unit_test(an_escaped_line_is_cut_too),
		cmocka_unit_test(a_place_writes_only_so_many_lines),
		cmocka_unit_test(what_was_left_out_is_counted),
		cmocka_unit_test(the_journals_lines_go_to_a_sink_while_it_takes_them),
		cmocka_unit_test(a_sink_takes_lines_outside_of_the_journal_too),
		cmocka_unit_test(a_journal_that_is_not_standard_error_does_not_count),
		cmocka_unit_test(lines_outside_of_the_journal_can_have_the_time),
		cmocka_unit_test(every_code_has_a_text),
	};

	unsetenv("JOURNAL_STREAM");
	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
