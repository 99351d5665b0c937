/* SPDX-License-Identifier: BSD-3-Clause */
/* Asserts: a false one ends the process and names its place, a true one costs nothing and changes nothing. */
#include "base/assert.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/base/base_test.h"

static char text[4096];
static int line_of_must; /* written before the child is made */

static void a_false_must(void)
{
	int apples = 2;

	must(apples == 3);
}

static void assert_aborted(int status)
{
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void a_false_must_aborts_and_logs_its_expression_and_file(void **state)
{
	(void)state;
	assert_aborted(run_in_child(a_false_must, text, sizeof(text)));
	assert_non_null(strstr(text, "assertion failed: apples == 3 ("));
	assert_non_null(strstr(text, "test_assert.c:"));
}

static void fail_with_a_line(void)
{
	assert_failed("sky == green", "world.c", line_of_must);
}

static void the_log_line_names_the_line(void **state)
{
	char expected[64];

	(void)state;
	line_of_must = 4711;
	snprintf(expected, sizeof(expected), "assertion failed: sky == green (world.c:%d)", line_of_must);
	assert_aborted(run_in_child(fail_with_a_line, text, sizeof(text)));
	assert_non_null(strstr(text, expected));
}

/* Fails in a build that has the costly checks. */
static void a_false_debug_must(void)
{
	int apples = 2;

	debug_must(apples == 3);
}

static void a_costly_check_fails_in_debug_builds_alone(void **state)
{
	int status = run_in_child(a_false_debug_must, text, sizeof(text));

	(void)state;
#ifdef FS_DEBUG
	assert_aborted(status);
	assert_non_null(strstr(text, "apples == 3"));
#else
	assert_int_equal(status, 0);
	assert_string_equal(text, "");
#endif
}

static unsigned calls;

static uint64_t called(uint64_t result)
{
	calls++;
	return result;
}

static void a_true_must_evaluates_its_expression_once(void **state)
{
	(void)state;
	calls = 0;
	must(called(1));
	assert_int_equal(calls, 1);
	/* A value whose low 32 bits are zero is true. */
	must(called(UINT64_C(1) << 40));
	assert_int_equal(calls, 2);
}

static void a_costly_check_is_evaluated_in_debug_builds_alone(void **state)
{
	unsigned expected = 0;

	(void)state;
#ifdef FS_DEBUG
	expected = 1;
#endif
	calls = 0;
	debug_must(called(1) == 1);
	assert_int_equal(calls, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_false_must_aborts_and_logs_its_expression_and_file),
		cmocka_unit_test(the_log_line_names_the_line),
		cmocka_unit_test(a_costly_check_fails_in_debug_builds_alone),
		cmocka_unit_test(a_true_must_evaluates_its_expression_once),
		cmocka_unit_test(a_costly_check_is_evaluated_in_debug_builds_alone),
	};

	return cmocka_run_group_tests_name("assert", tests, NULL, NULL);
}
