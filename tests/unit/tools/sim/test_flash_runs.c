/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels of runs: what is merged and what is left behind, what makes room, and what filters let pass. */
#include <math.h>

#include "base/rng.h"
#include "sim_test.h"
#include "tools/sim/flash_runs.h"

#define OBJECTS 100000
#define KEY_BYTES 10

static struct object objects[OBJECTS];
static struct flash_runs runs;
static uint32_t drops;

static void dropped(void *context, uint32_t object)
{
	assert_ptr_equal(context, &runs);
	assert_int_equal(objects[object].state, OBJECT_OUT);
	drops++;
}

static void start(uint64_t capacity, uint64_t table, uint32_t levels)
{
	memset(objects, 0, sizeof(objects));
	drops = 0;
	runs_init(&runs, objects, capacity, table, levels, dropped, &runs);
}

static bool append(uint32_t object, uint64_t bytes)
{
	objects[object].bytes = bytes;
	return runs_append(&runs, object, KEY_BYTES);
}

static void append_all(uint32_t first, uint32_t count, uint64_t bytes)
{
	for (uint32_t i = first; i < first + count; i++)
		assert_true(append(i, bytes));
}

static void test_refuses_what_is_larger_than_a_quarter(void **state)
{
	(void)state;
	start(0, 0, 4);
	assert_false(append(0, 1));
	runs_fini(&runs);
	start(100, 10, 4);
	assert_false(append(0, 26));
	assert_int_equal(objects[0].state, OBJECT_OUT);
	assert_true(append(0, 25));
	assert_int_equal(objects[0].state, OBJECT_ON_FLASH);
	runs_fini(&runs);
}

static void test_one_level_is_a_fifo_of_tables(void **state)
{
	(void)state;
	start(64, 4, 1);
	append_all(0, 64, 1);
	assert_int_equal(runs.level[0].count, 16);
	append_all(64, 1, 1);
	assert_int_equal(drops, 4); /* a table at a time */
	for (uint32_t i = 0; i < 65; i++)
		assert_int_equal(objects[i].state, i < 4 ? OBJECT_OUT : OBJECT_ON_FLASH);
	append_all(65, 1000, 1);
	assert_int_equal(runs.merged_bytes, 0);
	assert_int_equal(runs.written_bytes, 1065);
	assert_true(runs.used_bytes <= 64);
	runs_fini(&runs);
}

static void test_a_full_level_becomes_one_run_of_the_next(void **state)
{
	(void)state;
	start(10000, 1, 2);
	append_all(0, 16, 1);
	assert_int_equal(runs.merged_bytes, 0);
	assert_int_equal(runs.level[0].count, 16);
	append_all(16, 1, 1);
	assert_int_equal(runs.merged_bytes, 16);
	assert_int_equal(runs.written_bytes, 17 + 16);
	assert_int_equal(runs.level[0].count, 1);
	assert_int_equal(runs.level[1].count, 2); /* blocks of eight tables */
	assert_int_equal(runs.blocks[runs.level[1].oldest].run, runs.blocks[runs.level[1].newest].run);
	assert_int_equal(runs.live_objects, 17);
	for (uint32_t i = 0; i < 17; i++)
		assert_int_equal(objects[i].state, OBJECT_ON_FLASH);
	runs_fini(&runs);
}

static void test_each_level_writes_an_object_once_more(void **state)
{
	(void)state;
	start(1000000, 1, 3);
	append_all(0, 64, 1); /* level 1 has six blocks */
	assert_int_equal(runs.merged_bytes, 48);
	append_all(64, 1, 1); /* and eight */
	assert_int_equal(runs.level[1].count, 8);
	append_all(65, 16, 1); /* which go to level 2 before more come */
	assert_int_equal(runs.merged_bytes, 64 + 64 + 16);
	assert_int_equal(runs.level[1].count, 2);
	assert_int_equal(runs.level[2].count, 2);
	assert_int_equal(runs.level[2].bytes, 64);
	runs_fini(&runs);
}

static void test_dead_bytes_are_left_behind_by_a_merge(void **state)
{
	(void)state;
	start(10000, 1, 2);
	append_all(0, 16, 1);
	for (uint32_t i = 0; i < 10; i++)
		runs_remove(&runs, i);
	assert_int_equal(runs.used_bytes, 16);
	assert_int_equal(runs.index_objects, 16);
	append_all(16, 1, 1);
	assert_int_equal(runs.merged_bytes, 6);
	assert_int_equal(runs.used_bytes, 7);
	assert_int_equal(runs.index_objects, 7);
	assert_int_equal(runs.index_key_bytes, 7 * KEY_BYTES);
	/* A level in which all is dead becomes nothing. */
	for (uint32_t i = 17; i < 32; i++)
		assert_true(append(i, 1));
	for (uint32_t i = 16; i < 32; i++)
		runs_remove(&runs, i);
	append_all(32, 1, 1);
	assert_int_equal(runs.level[1].count, 1);
	assert_int_equal(runs.used_bytes, 7);
	runs_fini(&runs);
}

static void test_large_objects_are_not_written_again(void **state)
{
	(void)state;
	start(10000000, 9000, 2);
	append_all(0, 17, 8193);
	assert_int_equal(runs.level[1].count, 2);
	assert_int_equal(runs.merged_bytes, 0);
	assert_int_equal(runs.written_bytes, 17 * 8193);
	runs_fini(&runs);
}

static void test_the_deepest_oldest_block_makes_room(void **state)
{
	(void)state;
	start(40, 1, 2);
	append_all(0, 17, 1); /* 16 of them in two blocks of level 1 */
	append_all(17, 15, 1);
	assert_int_equal(drops, 0);
	append_all(32, 1, 1); /* a merge of 16 has room only if 8 go */
	assert_in_range(drops, 4, 16);
	assert_true(runs.used_bytes <= 40);
	for (uint32_t i = 16; i < 33; i++)
		assert_int_equal(objects[i].state, OBJECT_ON_FLASH);
	runs_fini(&runs);
}

static void test_all_can_be_dropped(void **state)
{
	(void)state;
	start(1000, 1, 3);
	assert_false(runs_drop(&runs));
	append_all(0, 100, 1);
	while (runs_drop(&runs))
		;
	assert_int_equal(drops, 100);
	assert_int_equal(runs.used_bytes, 0);
	assert_int_equal(runs.index_objects, 0);
	assert_int_equal(runs.live_objects, 0);
	append_all(0, 100, 1);
	assert_int_equal(runs.live_objects, 100);
	runs_fini(&runs);
}

/* Whatever comes: within the flash, and every object counted once. */
static void test_sums_hold(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 1);
	for (uint32_t levels = 1; levels <= 5; levels++) {
		uint64_t live = 0, bytes = 0;

		start(20000, 0, levels);
		for (unsigned n = 0; n < 50000; n++) {
			uint32_t object = (uint32_t)rng_below(&rng, 5000);

			if (objects[object].state == OBJECT_ON_FLASH)
				runs_remove(&runs, object);
			else
				(void)append(object, 1 + rng_below(&rng, 30));
			assert_true(runs.used_bytes <= runs.capacity_bytes);
		}
		for (uint32_t i = 0; i < OBJECTS; i++)
			live += objects[i].state == OBJECT_ON_FLASH;
		for (uint32_t level = 0; level < levels; level++)
			bytes += runs.level[level].bytes;
		assert_int_equal(runs.live_objects, live);
		assert_int_equal(runs.used_bytes, bytes);
		assert_true(levels == 1 ? runs.merged_bytes == 0 : runs.merged_bytes > 0);
		runs_fini(&runs);
	}
}

/* ---- lookups ----------------------------------------------------------------------------------- */

static void test_a_lookup_reads_in_vain_at_the_filters_rate(void **state)
{
	double rate = pow(0.6185, RUNS_FILTER_BITS), expected = 64 * rate * 20000;
	uint64_t missed = 0, oldest = 0;

	(void)state;
	start(64, 1, 1);
	append_all(0, 64, 1);
	for (uint32_t i = 1000; i < 21000; i++)
		missed += runs_reads(&runs, i);
	assert_in_range(missed, (uint64_t)(expected * 0.9), (uint64_t)(expected * 1.1));
	/* The newest is found at once. */
	assert_int_equal(runs_reads(&runs, 63), 1);
	for (uint32_t i = 0; i < 64; i++) {
		assert_true(runs_reads(&runs, i) >= 1);
		assert_int_equal(runs_reads(&runs, i), runs_reads(&runs, i)); /* a run's filter stays as it is */
		oldest += runs_reads(&runs, i) - 1;
	}
	assert_in_range(oldest, 1, 64);
	runs_fini(&runs);
}

static void test_a_merge_leaves_fewer_filters_to_ask(void **state)
{
	uint64_t before = 0, after = 0;

	(void)state;
	start(10000, 1, 2);
	append_all(0, 16, 1);
	for (uint32_t i = 1000; i < 51000; i++)
		before += runs_reads(&runs, i);
	append_all(16, 1, 1); /* two runs are left of seventeen */
	for (uint32_t i = 1000; i < 51000; i++)
		after += runs_reads(&runs, i);
	assert_in_range(after * 8, before * 8 / 10, before * 12 / 10);
	runs_fini(&runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_what_is_larger_than_a_quarter),
		cmocka_unit_test(test_one_level_is_a_fifo_of_tables),
		cmocka_unit_test(test_a_full_level_becomes_one_run_of_the_next),
		cmocka_unit_test(test_each_level_writes_an_object_once_more),
		cmocka_unit_test(test_dead_bytes_are_left_behind_by_a_merge),
		cmocka_unit_test(test_large_objects_are_not_written_again),
		cmocka_unit_test(test_the_deepest_oldest_block_makes_room),
		cmocka_unit_test(test_all_can_be_dropped),
		cmocka_unit_test(test_sums_hold),
		cmocka_unit_test(test_a_lookup_reads_in_vain_at_the_filters_rate),
		cmocka_unit_test(test_a_merge_leaves_fewer_filters_to_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
