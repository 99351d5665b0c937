/* SPDX-License-Identifier: BSD-3-Clause */
/* read-once: a read in DRAM decides. */
#include "sim_test.h"

static void test_what_was_not_read_is_not_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("read-once", 1, 4, "abab", "....").flash_bytes_written, 0);
	assert_int_equal(play_objects("read-once", 1, 4, "aaAb", ".+.").flash_bytes_written,
			 0); /* the set is another value */
}

static void test_what_was_read_is_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("read-once", 1, 4, "aabcab", ".+..+.").flash_bytes_written, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_not_read_is_not_written),
		cmocka_unit_test(test_what_was_read_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
