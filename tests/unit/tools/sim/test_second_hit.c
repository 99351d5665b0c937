/* SPDX-License-Identifier: BSD-3-Clause */
/* second-hit: the second eviction decides, as far as the history reaches. */
#include "sim_test.h"

static void test_what_comes_once_is_not_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("second-hit", 1, 4, "aabcdefgh", ".+.......").flash_bytes_written, 0);
}

static void test_the_history_is_as_large_as_the_flash(void **state)
{
	(void)state;
	assert_int_equal(play_objects("second-hit", 1, 4, "abcdefagha", "..........").flash_bytes_written, 0);
	assert_int_equal(play_objects("second-hit", 1, 4, "abcdeaga", ".......+").flash_bytes_written, 1);
}

static void test_a_delete_forgets(void **state)
{
	(void)state;
	assert_int_equal(play_objects("second-hit", 1, 4, "ab-aaca", ".....").flash_bytes_written, 0);
}

static void test_the_second_eviction_is_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("second-hit", 1, 4, "abaca", "....+").flash_bytes_written, 1);
}

static void test_a_read_in_dram_counts_only_where_it_is_named(void **state)
{
	(void)state;
	play_objects("second-hit", 1, 4, "aaba", ".+..");
	play_objects("read-or-second-hit", 1, 4, "aaba", ".+.+");
	play_objects("read-or-second-hit", 1, 4, "abaca", "....+");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_comes_once_is_not_written),
		cmocka_unit_test(test_the_history_is_as_large_as_the_flash),
		cmocka_unit_test(test_a_delete_forgets),
		cmocka_unit_test(test_the_second_eviction_is_written),
		cmocka_unit_test(test_a_read_in_dram_counts_only_where_it_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
