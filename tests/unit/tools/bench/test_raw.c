/* SPDX-License-Identifier: BSD-3-Clause */
/* Raw reads: what is refused, and that each read asked for is done and counted. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/bench/raw.h"

#define PAGE 4096u
#define FILE_PAGES 32u

static char path[] = "/tmp/flashield-raw-XXXXXX";
static bool direct; /* does the file system of path know O_DIRECT? */

static struct raw_spec good_spec(void)
{
	return (struct raw_spec){ .path = path,
				  .bytes = FILE_PAGES * PAGE,
				  .unit = PAGE,
				  .read_bytes = PAGE,
				  .depth = 4,
				  .reads = 100,
				  .cpu = -1 };
}

static void assert_refused(struct raw_spec spec)
{
	struct raw_result result;

	assert_int_equal(raw_read(&spec, &result), FS_EINVAL);
	assert_null(result.latency);
}

static void test_refuses_specs_that_cannot_be(void **state)
{
	struct raw_spec spec = good_spec();

	(void)state;
	spec.read_bytes = 0;
	assert_refused(spec);
	spec.read_bytes = (FILE_PAGES + 1) * PAGE;
	assert_refused(spec);
	spec.read_bytes = 512;
	assert_refused(spec);
	spec = good_spec();
	spec.unit = 0;
	assert_refused(spec);
	spec.unit = 256;
	assert_refused(spec);
	spec.unit = 1000;
	assert_refused(spec);
	spec.unit = 2 * PAGE;
	assert_refused(spec);
	spec = good_spec();
	spec.depth = 0;
	assert_refused(spec);
	spec = good_spec();
	spec.offset = 512;
	assert_refused(spec);
	spec = good_spec();
	spec.bytes = PAGE - 1;
	assert_refused(spec);
}

static void test_tells_the_errno_of_a_missing_file(void **state)
{
	struct raw_spec spec = good_spec();
	struct raw_result result;

	(void)state;
	spec.path = "/nowhere/at/all";
	assert_int_equal(raw_read(&spec, &result), FS_ESYS);
	assert_int_equal(errno, ENOENT);
	assert_null(result.latency);
}

static void test_a_read_beyond_the_end_is_an_error(void **state)
{
	struct raw_spec spec = good_spec();
	struct raw_result result;

	(void)state;
	if (!direct)
		skip();
	spec.offset = FILE_PAGES * PAGE;
	assert_int_equal(raw_read(&spec, &result), FS_ESYS);
	assert_int_equal(errno, EIO);
	assert_null(result.latency);
}

static void test_a_cpu_that_is_not_there_is_an_error(void **state)
{
	struct raw_spec spec = good_spec();
	struct raw_result result;

	(void)state;
	if (!direct)
		skip();
	spec.cpu = 1023;
	assert_int_equal(raw_read(&spec, &result), FS_ESYS);
	assert_int_equal(errno, EINVAL);
}

static void assert_reads(unsigned pages, unsigned depth, uint64_t reads)
{
	struct raw_spec spec = good_spec();
	struct raw_result result;

	spec.read_bytes = pages * PAGE;
	spec.depth = depth;
	spec.reads = reads;
	assert_int_equal(raw_read(&spec, &result), FS_OK);
	assert_int_equal(result.reads, reads);
	assert_int_equal(result.latency->count, reads);
	assert_true(result.seconds > 0);
	raw_result_fini(&result);
}

static void test_does_as_many_reads_as_asked_for(void **state)
{
	(void)state;
	if (!direct)
		skip();
	assert_reads(1, 1, 50);
	assert_reads(3, 16, 500);
	assert_reads(FILE_PAGES, 2, 7);
	assert_reads(1, 64, 10); /* fewer reads than the depth */
	assert_reads(1, 1, 0);
}

static int make_file(void **state)
{
	static const char page[PAGE];
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	for (unsigned i = 0; i < FILE_PAGES; i++)
		if (write(fd, page, PAGE) != (ssize_t)PAGE)
			return -1;
	close(fd);
	fd = open(path, O_RDONLY | O_DIRECT);
	direct = fd >= 0;
	if (direct)
		close(fd);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_specs_that_cannot_be),
		cmocka_unit_test(test_tells_the_errno_of_a_missing_file),
		cmocka_unit_test(test_a_read_beyond_the_end_is_an_error),
		cmocka_unit_test(test_a_cpu_that_is_not_there_is_an_error),
		cmocka_unit_test(test_does_as_many_reads_as_asked_for),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
