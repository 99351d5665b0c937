/* SPDX-License-Identifier: BSD-3-Clause */
/* victim: two exclusive levels, and a write for each eviction. */
#include "sim_test.h"

static void test_without_flash_nothing_is_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("victim", 1, 0, "aba", "...").flash_bytes_written, 0);
}

static void test_a_hit_moves_back_and_each_eviction_is_written(void **state)
{
	struct sim_figures figures = play_objects("victim", 1, 2, "abcabdc", "...++..");

	(void)state;
	assert_int_equal(figures.flash_bytes_written, 6);
	assert_int_equal(figures.flash_hits, 2);
	assert_int_equal(figures.flash_objects, 2);
	assert_int_equal(figures.dram_objects, 1);
}

static void test_a_set_takes_the_old_value_off_flash(void **state)
{
	struct sim_figures figures = play_objects("victim", 1, 2, "abA-bb", "...");

	(void)state;
	assert_int_equal(figures.flash_objects, 1); /* a alone, which the last miss evicted */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_flash_nothing_is_written),
		cmocka_unit_test(test_a_hit_moves_back_and_each_eviction_is_written),
		cmocka_unit_test(test_a_set_takes_the_old_value_off_flash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
