/* SPDX-License-Identifier: BSD-3-Clause */
/* clock1 to clock3: as many rounds as hits, up to the highest count. */
#include "sim_test.h"

static void test_a_new_object_is_evicted_without_a_round(void **state)
{
	(void)state;
	play_objects("clock1", 0, 0, "aa", "..");
	play_objects("clock1", 2, 0, "abca", "....");
}

static void test_a_hit_saves_for_one_round(void **state)
{
	(void)state;
	play_objects("clock1", 2, 0, "aabca", ".+..+");
	play_objects("clock1", 2, 0, "aaabcda", ".++....");
	play_objects("clock2", 2, 0, "aaabcda", ".++...+");
}

static void test_counts_end_at_three_and_seven(void **state)
{
	(void)state;
	play_objects("clock2", 2, 0, "aaaaaabcdefa", ".+++++......");
	play_objects("clock3", 2, 0, "aaaaaabcdefa", ".+++++.....+");
	play_objects("clock3", 2, 0, "aaaaaaaaaaabcdefghija", ".++++++++++..........");
	play_objects("clock3", 2, 0, "aaaaaaaaaaabcdefghia", ".++++++++++........+");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_object_is_evicted_without_a_round),
		cmocka_unit_test(test_a_hit_saves_for_one_round),
		cmocka_unit_test(test_counts_end_at_three_and_seven),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
