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
		cmocka_unit_test(a_journal_that_is_not_standard_error_does_not_count),
		cmocka_unit_test(every_code_has_a_text),
	};

	unsetenv("JOURNAL_STREAM");
	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
