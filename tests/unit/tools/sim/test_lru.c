/* SPDX-License-Identifier: BSD-3-Clause */
/* lru: what is evicted, and what is never cached. */
#include "sim_test.h"

static void test_never_caches_what_is_larger_than_all(void **state)
{
	struct sim_space space = { .dram_bytes = 4, .value_bytes_only = true };

	(void)state;
	play_script("lru", &space, 0, "aa", 5, "..");
	play_script("lru", &space, 0, "aa", 4, ".+");
	play_objects("lru", 0, 0, "aa", "..");
}

static void test_evicts_what_was_used_longest_ago(void **state)
{
	(void)state;
	play_objects("lru", 2, 0, "abaca", "..+.+");
	play_objects("lru", 2, 0, "abacb", "..+..");
}

static void test_a_set_counts_as_use_and_a_delete_removes(void **state)
{
	(void)state;
	play_objects("lru", 2, 0, "abAca", "...+");
	play_objects("lru", 2, 0, "ab-aa", "...");
	play_objects("lru", 2, 0, "ab-acb", "...+");
}

static void test_dram_and_flash_are_one_and_nothing_is_written(void **state)
{
	struct sim_figures figures = play_objects("lru", 1, 2, "abcabcd", "...+++.");

	(void)state;
	assert_int_equal(figures.flash_bytes_written, 0);
	assert_int_equal(figures.dram_objects, 3);
}

static void test_charges_each_object(void **state)
{
	struct sim_space space = { .dram_bytes = 24, .dram_charge = 10 };

	(void)state;
	play_script("lru", &space, 0, "abab", 1, "..++"); /* key 1, value 1, charge 10: two fit */
	play_script("lru", &space, 0, "abab", 2, "....");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_caches_what_is_larger_than_all),
		cmocka_unit_test(test_evicts_what_was_used_longest_ago),
		cmocka_unit_test(test_a_set_counts_as_use_and_a_delete_removes),
		cmocka_unit_test(test_dram_and_flash_are_one_and_nothing_is_written),
		cmocka_unit_test(test_charges_each_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
