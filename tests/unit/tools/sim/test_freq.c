/* SPDX-License-Identifier: BSD-3-Clause */
/* freq: the budget bounds what is written, and the most accesses per byte win. */
#include "sim_test.h"

static void test_a_budget_of_nearly_nothing_writes_one_object(void **state)
{
	struct sim_space space = objects_space(1, 4);

	(void)state;
	assert_true(play_script("freq", &space, 1e-9, "abcdefgh", 1, "........").flash_bytes_written <= 1);
}

static void test_without_a_budget_all_is_written(void **state)
{
	(void)state;
	assert_int_equal(play_objects("freq", 1, 4, "abcab", "...++").flash_bytes_written, 2);
}

static void test_what_comes_often_is_written_and_the_rest_is_not(void **state)
{
	struct sim_space space = objects_space(1, 4);
	char requests[SCRIPT_MOST] = "";
	struct sim_figures figures;

	/* a comes every other time, with 24 others between that come by turns. The budget is a tenth. */
	(void)state;
	for (unsigned i = 0; i < 4000; i++)
		requests[i] = (char)(i % 2 ? (unsigned)'b' + i / 2 % 24 : (unsigned)'a');
	figures = play_script("freq", &space, 0.1, requests, 1, NULL);
	assert_true(figures.flash_hits > 1900);
	assert_true((double)figures.flash_bytes_written < 0.12 * 2100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_budget_of_nearly_nothing_writes_one_object),
		cmocka_unit_test(test_without_a_budget_all_is_written),
		cmocka_unit_test(test_what_comes_often_is_written_and_the_rest_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
