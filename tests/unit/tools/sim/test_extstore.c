/* SPDX-License-Identifier: BSD-3-Clause */
/* extstore: small values stay out, headers take DRAM, pages are lost in turn. */
#include "sim_test.h"

static void test_small_values_are_not_written(void **state)
{
	struct sim_space space = { .dram_bytes = 1, .flash_bytes = 4, .segment_bytes = 1, .value_bytes_only = true };

	(void)state;
	assert_int_equal(play_script("extstore:2", &space, 0, "abcab", 1, ".....").flash_bytes_written, 0);
	assert_int_equal(play_script("extstore", &space, 0, "abcab", 1, ".....").flash_bytes_written, 0);
}

static void test_what_dram_evicts_is_written_and_stays(void **state)
{
	struct sim_space space = { .dram_bytes = 1, .flash_bytes = 4, .segment_bytes = 1, .value_bytes_only = true };
	struct sim_figures figures = play_script("extstore:1", &space, 0, "abcab", 1, "...++");

	(void)state;
	assert_int_equal(figures.flash_bytes_written, 2);
	assert_int_equal(figures.flash_hits, 2);
	play_script("extstore:1", &space, 0, "abcdefab", 1, "........");
}

static void test_headers_take_dram(void **state)
{
	/* An item takes 58 bytes and a header 69: one item and two headers are what 200 bytes hold. */
	struct sim_space space = { .dram_bytes = 200, .flash_bytes = 10000, .dram_charge = 56, .flash_charge = 32 };

	(void)state;
	play_script("extstore:0", &space, 0, "abcda", 1, ".....");
	play_script("extstore:0", &space, 0, "abcdbc", 1, "....++");
	assert_int_equal(play_script("extstore:0", &space, 0, "abcd", 1, "....").fixed_bytes, 138);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_values_are_not_written),
		cmocka_unit_test(test_what_dram_evicts_is_written_and_stays),
		cmocka_unit_test(test_headers_take_dram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
