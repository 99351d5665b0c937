/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle: what is read again, and nothing else. */
#include "sim_test.h"

static void test_what_is_not_read_again_is_not_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("oracle", 1, 4, "abcd", "....").flash_bytes_written, 0);
}

static void test_a_set_or_a_delete_before_the_read_makes_it_useless(void **state)
{
	(void)state;
	assert_int_equal(play_objects("oracle", 1, 4, "abAca", "...+").flash_bytes_written, 1);
	assert_int_equal(play_objects("oracle", 1, 4, "ab-aa", "...").flash_bytes_written, 0);
}

static void test_what_is_read_again_is_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("oracle", 1, 4, "abca", "...+").flash_bytes_written, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_read_again_is_not_written),
		cmocka_unit_test(test_a_set_or_a_delete_before_the_read_makes_it_useless),
		cmocka_unit_test(test_what_is_read_again_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
