/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks: what can't be had, the lowest gap, and rows that name no block. */
#include "tests/unit/flashindex/frugal/world.h"

static void what_does_not_fit_is_refused(void **state)
{
	struct world w = { .config = { 0 } };
	struct block block;

	(void)state;
	world_open(&w);
	assert_int_equal(block_take(w.frugal, 0, &block), FS_ENOMEM);
	assert_int_equal(block.bytes, 0);
	assert_int_equal(block_take(w.frugal, UINT64_MAX, &block), FS_ENOMEM);
	assert_int_equal(block_take(w.frugal, region_most(w.region, REGION_FRUGAL), &block), FS_ENOMEM);
	fault_arm(FAULT_region_commit, FAULT_ALWAYS, 0);
#ifdef FS_FAULTS
	assert_int_equal(block_take(w.frugal, 1, &block), FS_ENOMEM);
#endif
	fault_disarm_all();
	block_give(w.frugal, &block); /* nothing was taken */
	world_close(&w);
}

static void there_is_an_end_of_blocks(void **state)
{
	struct world w = { .config = { 0 } };
	struct block block[BLOCKS_MOST];
	unsigned count = 0;

	(void)state;
	world_open(&w);
	while (block_take(w.frugal, 1, &block[count]) == FS_OK)
		count++;
	assert_int_equal(count, BLOCKS_MOST - 1); /* beside the prefilter */
	while (count > 0)
		block_give(w.frugal, &block[--count]);
	world_close(&w);
}

static void rows_that_name_no_block_are_refused(void **state)
{
	struct world w = { .config = { 0 } };
	uint64_t most, before;
	struct block there;

	(void)state;
	world_open(&w);
	most = region_most(w.region, REGION_FRUGAL);
	before = frugal_memory(w.frugal);
	there = w.frugal->used[0];
	const struct block wrong[] = {
		{ 0, 4096 },
		{ most - 4096, 0 },
		{ most, 4096 },
		{ most - 4096, 8192 },
		{ UINT64_MAX - 4095, 4096 },
		{ most - 4096 + 1, 4096 },
		{ most - 8192, 100 },
		there,
		{ there.offset + there.bytes - 4096, 8192 },
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(block_attach(w.frugal, &wrong[i]));
	assert_int_equal(frugal_memory(w.frugal), before);
	there = (struct block){ most - 8192, 4096 };
	assert_true(block_attach(w.frugal, &there));
	assert_int_equal(frugal_memory(w.frugal), before + 4096);
	world_close(&w);
}

static void the_lowest_gap_is_taken(void **state)
{
	struct world w = { .config = { 0 } };
	struct block a, b, c, d;
	uint64_t before;

	(void)state;
	world_open(&w);
	before = frugal_memory(w.frugal);
	assert_int_equal(block_take(w.frugal, 8000, &a), FS_OK);
	assert_int_equal(block_take(w.frugal, 4096, &b), FS_OK);
	assert_int_equal(block_take(w.frugal, 1, &c), FS_OK);
	assert_int_equal(a.bytes, 8192);
	assert_int_equal(b.offset, a.offset + 8192);
	assert_int_equal(c.offset, b.offset + 4096);
	assert_int_equal(frugal_memory(w.frugal), before + 8192 + 4096 + 4096);
	d = a;
	block_give(w.frugal, &a);
	assert_int_equal(block_take(w.frugal, 4096 * 3, &a), FS_OK); /* too large for the gap */
	assert_int_equal(a.offset, c.offset + 4096);
	assert_int_equal(block_take(w.frugal, 100, &b), FS_OK);
	assert_int_equal(b.offset, d.offset);
	for (uint64_t i = 0; i < b.bytes; i++)
		assert_int_equal(w.frugal->area[b.offset + i], 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(there_is_an_end_of_blocks),
		cmocka_unit_test(rows_that_name_no_block_are_refused),
		cmocka_unit_test(the_lowest_gap_is_taken),
	};

	return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
