/* SPDX-License-Identifier: BSD-3-Clause */
/* sLSM-Tree as a cache: what DRAM evicts is read from its run, merges write it again, and DRAM pays for the index. */
#include "sim_test.h"

#define ALPHABET "abcdefghijklmnopqrstuvwxyz"

static void test_what_dram_evicts_is_on_flash(void **state)
{
	struct sim_figures figures = play_objects("slsm", 2, 100, "abca", "...+");

	(void)state;
	assert_int_equal(figures.flash_hits, 1);
	assert_true(figures.flash_reads >= 1);
	assert_int_equal(figures.flash_bytes_written, 1);
}

static void test_a_set_leaves_the_old_bytes_dead(void **state)
{
	struct sim_figures figures = play_objects("slsm", 1, 100, "abAca", "...+");

	(void)state;
	assert_int_equal(figures.flash_objects, 2);
	assert_int_equal(figures.flash_bytes_written, 3);
	play_objects("slsm", 1, 100, "ab-aa", "...");
}

/* 26 objects: 16 tables fill level 0, and the 17th merges them. */
static void test_merges_write_again_and_keep_all(void **state)
{
	struct sim_figures merged = play_objects("slsm:2", 1, 1000, ALPHABET ALPHABET,
						 ".........................."
						 "++++++++++++++++++++++++++");
	struct sim_figures fifo = play_objects("slsm:1", 1, 1000, ALPHABET ALPHABET,
					       ".........................."
					       "++++++++++++++++++++++++++");

	(void)state;
	assert_int_equal(fifo.flash_bytes_written, 25);
	assert_int_equal(fifo.flash_bytes_merged, 0);
	assert_int_equal(merged.flash_bytes_merged, 16);
	assert_int_equal(merged.flash_bytes_written, 25 + 16);
	assert_int_equal(merged.flash_hits, fifo.flash_hits);
}

/* With the keys in DRAM nothing is read in vain, whatever the number of runs. */
static void test_keys_in_dram_spare_reads_in_vain(void **state)
{
	struct sim_figures figures = play_objects("slsm-keys:1", 1, 1000, ALPHABET ALPHABET,
						  ".........................."
						  "++++++++++++++++++++++++++");

	(void)state;
	assert_int_equal(figures.flash_reads, figures.flash_hits);
	assert_int_equal(figures.flash_reads_missed, 0);
}

static void test_the_index_takes_dram(void **state)
{
	struct sim_space space = {
		.dram_bytes = 1000, .flash_bytes = 100000, .segment_bytes = 1000, .dram_charge = 46, .flash_charge = 32
	};
	struct sim_figures fences = play_script("slsm", &space, 0, ALPHABET, 100, NULL);
	struct sim_figures keys = play_script("slsm-keys", &space, 0, ALPHABET, 100, NULL);

	(void)state;
	/* Key, seven bytes, two pointers and ten bits for each object on flash. */
	assert_int_equal(keys.fixed_bytes, (uint64_t)((double)keys.flash_objects * (1 + 7 + 16 + 1.25)));
	assert_true(fences.fixed_bytes < keys.fixed_bytes / 10);
	assert_true(fences.dram_objects > keys.dram_objects);
	assert_int_equal(fences.dram_objects + fences.flash_objects, 26);
}

/* A flash with many objects and hardly any DRAM: the index leaves a fifth of it to items. */
static void test_an_index_without_room_drops_what_is_oldest(void **state)
{
	struct sim_space space = {
		.dram_bytes = 300, .flash_bytes = 100000, .segment_bytes = 200, .dram_charge = 46, .flash_charge = 32
	};
	struct sim_figures keys = play_script("slsm-keys", &space, 0, ALPHABET ALPHABET, 10, NULL);

	(void)state;
	assert_true(keys.fixed_bytes <= 240 + 26);
	assert_true(keys.flash_objects < 12);
	assert_true(keys.dram_objects >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_dram_evicts_is_on_flash),
		cmocka_unit_test(test_a_set_leaves_the_old_bytes_dead),
		cmocka_unit_test(test_merges_write_again_and_keep_all),
		cmocka_unit_test(test_keys_in_dram_spare_reads_in_vain),
		cmocka_unit_test(test_the_index_takes_dram),
		cmocka_unit_test(test_an_index_without_room_drops_what_is_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
