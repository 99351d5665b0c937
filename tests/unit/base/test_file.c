/* SPDX-License-Identifier: BSD-3-Clause */
/* A file is read whole or not at all, whatever a read returns. */
#include "base/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST 16u

static int ends[2];

static int setup(void **state)
{
	(void)state;
	return pipe(ends);
}

static int teardown(void **state)
{
	(void)state;
	close(ends[0]);
	return 0;
}

static void write_and_end(const char *text)
{
	assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
	close(ends[1]);
}

static void a_file_that_is_too_long_is_refused(void **state)
{
	char text[MOST];

	(void)state;
	write_and_end("0123456789abcdef");
	assert_int_equal(file_read_all(ends[0], text, MOST), -1);
	assert_int_equal(errno, EFBIG);
}

static void an_error_is_told(void **state)
{
	char text[MOST];

	(void)state;
	assert_int_equal(file_read_all(ends[1], text, MOST), -1);
	assert_int_equal(errno, EBADF);
	close(ends[1]);
}

static void an_empty_file_has_no_bytes(void **state)
{
	char text[MOST];

	(void)state;
	close(ends[1]);
	assert_int_equal(file_read_all(ends[0], text, MOST), 0);
}

/* What was read before isn't read again. */
static void the_rest_of_a_file_is_read(void **state)
{
	char text[MOST], first;

	(void)state;
	write_and_end("0123456789abcde");
	assert_int_equal(read(ends[0], &first, 1), 1);
	assert_int_equal(file_read_all(ends[0], text, MOST), 14);
	assert_memory_equal(text, "123456789abcde", 14);
}

#define FILE_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(a_file_that_is_too_long_is_refused),
		FILE_TEST(an_error_is_told),
		FILE_TEST(an_empty_file_has_no_bytes),
		FILE_TEST(the_rest_of_a_file_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
