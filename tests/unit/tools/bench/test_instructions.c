/* SPDX-License-Identifier: BSD-3-Clause */
/* Callgrind's file: what is none is refused, costs go to the functions that they are of. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/bench/instructions_profile.h"

static int read_text(struct profile *profile, const char *text)
{
	char path[] = "/tmp/flashield-profile-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	rc = profile_read(profile, path);
	unlink(path);
	return rc;
}

static void refused(const char *text)
{
	struct profile profile;

	assert_int_equal(read_text(&profile, text), FS_ECORRUPT);
	profile_fini(&profile);
}

static void a_file_that_is_not_there_is_told(void **state)
{
	struct profile profile;

	(void)state;
	assert_int_equal(profile_read(&profile, "/nonexistent/profile"), FS_ESYS);
	assert_int_equal(errno, ENOENT);
	profile_fini(&profile);
}

static void what_is_no_profile_is_refused(void **state)
{
	(void)state;
	refused("");
	refused("events: Ir\nfn=(1) main\n0 5\n"); /* ends before the total */
	refused("0 5\ntotals: 5\n"); /* a cost of no function */
	refused("fn=(1) main\n5\ntotals: 5\n"); /* a line without a cost */
	refused("fn=main\n0 5\ntotals: 5\n"); /* no number */
	refused("fn=(1\n0 5\ntotals: 5\n");
	refused("fn=(7)\n0 5\ntotals: 5\n"); /* a number that has no name */
	refused("fn=(99999999999) main\n0 5\ntotals: 5\n"); /* one that is none */
	refused("ob=(3)\nfn=(1) main\n0 5\ntotals: 5\n");
}

static const char sample[] = "# callgrind format\n"
			     "events: Ir\n"
			     "summary: 1060\n"
			     "\n"
			     "ob=(1) /usr/bin/server\n"
			     "fl=(1) server.c\n"
			     "fn=(1) main\n"
			     "10 20\n"
			     "cfn=(2) serve\n"
			     "calls=4 30\n"
			     "+2 1000\n"
			     "* 10\n"
			     "\n"
			     "fn=(2)\n"
			     "30 300\n"
			     "cob=(2) /usr/lib/library.so.1\n"
			     "cfn=(3) 0x00000000000012f0\n"
			     "calls=4 0\n"
			     "31 600\n"
			     "cfn=(4) 0x0000000000000042\n"
			     "calls=1 0\n"
			     "-1 100\n"
			     "\n"
			     "ob=(2)\n"
			     "fn=(3)\n"
			     "0 600\n"
			     "\n"
			     "ob=(1)\n"
			     "fn=(4)\n"
			     "0 100\n"
			     "fn=(9) main\n" /* a static function of the same name elsewhere */
			     "7 30\n"
			     "totals: 1060\n";

static void costs_are_those_of_the_function_itself(void **state)
{
	struct profile profile;

	(void)state;
	assert_int_equal(read_text(&profile, sample), FS_OK);
	assert_true(profile.total == 1060);
	assert_int_equal(profile.count, 4);
	assert_true(profile_self(&profile, "main") == 60);
	assert_true(profile_self(&profile, "serve") == 300);
	assert_true(profile_self(&profile, "library.so.1 0x00000000000012f0") == 600);
	assert_true(profile_self(&profile, "server 0x0000000000000042") == 100);
	assert_true(profile_self(&profile, "nobody") == 0);
	profile_fini(&profile);
}

static void a_difference_is_per_operation_and_in_order_of_cost(void **state)
{
	static const char less[] = "fn=(5) serve\n0 100\nfn=(6) gone\n0 7\ntotals: 107\n";
	struct profile more, before;

	(void)state;
	assert_int_equal(read_text(&more, sample), FS_OK);
	assert_int_equal(read_text(&before, less), FS_OK);
	profile_per_operation(&more, &before, 10);
	assert_true(fabs(more.total - 95.3) < 1e-9);
	assert_string_equal(more.functions[0].name, "library.so.1 0x00000000000012f0");
	assert_true(more.functions[0].self == 60);
	assert_string_equal(more.functions[1].name, "serve");
	assert_true(more.functions[1].self == 20);
	assert_string_equal(more.functions[3].name, "main");
	assert_true(more.functions[3].self == 6);
	profile_fini(&more);
	profile_fini(&before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_is_not_there_is_told),
		cmocka_unit_test(what_is_no_profile_is_refused),
		cmocka_unit_test(costs_are_those_of_the_function_itself),
		cmocka_unit_test(a_difference_is_per_operation_and_in_order_of_cost),
	};

	return cmocka_run_group_tests_name("instructions", tests, NULL, NULL);
}
