/* SPDX-License-Identifier: BSD-3-Clause */
/* Merges: when one is due, without memory, old records that are wrong, too many segments, and another prefilter. */
#include "tests/unit/flashindex/frugal/world.h"

static void write_some(struct world *w, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		world_set(w, (uint32_t)rng_below(&w->rng, WORLD_KEYS));
	assert_true(world_write(w, 1, NULL));
}

static void without_memory_none_begins(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_merge *merge, *second;
	uint64_t memory;

	(void)state;
	world_open(&w);
	assert_int_equal(frugal_merge_begin(&merge, w.frugal), FS_EBUSY); /* there is nothing */
	write_some(&w, 50);
	memory = frugal_memory(w.frugal);
	for (unsigned n = 0; n < 6; n++) {
		fault_arm(FAULT_memory_alloc, FAULT_AFTER, n);
		if (frugal_merge_begin(&merge, w.frugal) == FS_OK) {
			frugal_merge_cancel(merge);
			break;
		}
		assert_null(merge);
		assert_null(w.frugal->merge);
		assert_int_equal(frugal_memory(w.frugal), memory);
	}
	fault_arm(FAULT_region_commit, FAULT_ALWAYS, 0);
#ifdef FS_FAULTS
	assert_int_equal(frugal_merge_begin(&merge, w.frugal), FS_ENOMEM);
#endif
	fault_disarm_all();
	assert_int_equal(frugal_merge_begin(&merge, w.frugal), FS_OK);
	assert_int_equal(frugal_merge_begin(&second, w.frugal), FS_EBUSY);
	assert_false(frugal_merge_is_due(w.frugal));
	frugal_merge_cancel(merge);
	frugal_merge_cancel(NULL);
	assert_int_equal(frugal_memory(w.frugal), memory);
	world_check_all(&w);
	world_close(&w);
}

/* Old bytes are judged by their sizes; what isn't a record counts as unreadable. */
static void old_records_that_are_none_count_as_unreadable(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_merge *merge;
	struct frugal_found place;
	_Alignas(8) uint8_t wrong[64];
	uint64_t length, with, without;
	const void *old;

	(void)state;
	world_open(&w);
	write_some(&w, 300);
	world_merge(&w, 7, 0, true);
	write_some(&w, 10);
	assert_int_equal(frugal_merge_begin(&merge, w.frugal), FS_OK);
	assert_true(frugal_merge_old(merge, 2, &place));
	old = world_chain_value(&w, &place, 2, &length);
	assert_non_null(frugal_merge_make(merge, 2, old, length, &with));
	assert_non_null(frugal_merge_make(merge, 2, NULL, 0, &without));
	assert_true(with > without);
	for (unsigned n = 0; n < 100; n++) {
		uint64_t made;

		for (unsigned i = 0; i < sizeof(wrong); i++)
			wrong[i] = (uint8_t)rng_next(&w.rng);
		assert_non_null(frugal_merge_make(merge, 2, wrong, sizeof(wrong), &made));
		assert_int_equal(made, without);
	}
	frugal_merge_cancel(merge);
	world_check_all(&w);
	world_close(&w);
}

static void a_chain_has_no_more_segments_than_it_may(void **state)
{
	struct world w = { .config = { .share = 0.25, .partitions = 1100 } };
	struct frugal_merge *merge;
	const uint32_t length = 64;

	(void)state;
	world_open(&w);
	write_some(&w, 300);
	assert_int_equal(frugal_merge_begin(&merge, w.frugal), FS_OK);
	for (uint32_t p = 0; p < FRUGAL_CHAIN_SEGMENTS; p++)
		assert_int_equal(frugal_merge_written(merge, 3, 900 + p, 0, p, 1, &length), FS_OK);
	assert_int_equal(frugal_merge_written(merge, 3, 9000, 0, FRUGAL_CHAIN_SEGMENTS, 1, &length), FS_EFULL);
	frugal_merge_cancel(merge);
	world_check_all(&w);
	world_close(&w);
}

static void a_share_of_columns_makes_one_due(void **state)
{
	struct world w = { .config = { .share = 0.25 } };

	(void)state;
	world_open(&w);
	for (unsigned n = 0; n < WORLD_SEGMENTS / 4; n++) {
		assert_false(frugal_merge_is_due(w.frugal));
		for (uint32_t k = 0; k < 100; k++)
			world_set(&w, 100 * n + k);
		assert_true(world_write(&w, 1, NULL));
	}
	assert_true(frugal_merge_is_due(w.frugal));
	world_merge(&w, 7, 0, true);
	assert_false(frugal_merge_is_due(w.frugal));
	world_close(&w);
}

static void many_kills_make_one_due(void **state)
{
	struct world w = { .config = { .share = 0.25 } };

	(void)state;
	world_open(&w);
	for (unsigned n = 0; n < 5; n++)
		write_some(&w, 200);
	world_merge(&w, 7, 0, true);
	write_some(&w, 50);
	assert_false(frugal_merge_is_due(w.frugal));
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		world_set(&w, k);
	assert_int_equal(frugal_take_kills(w.frugal), FS_OK);
	assert_true(frugal_merge_is_due(w.frugal));
	world_merge(&w, 7, 0, true);
	assert_int_equal(w.frugal->bundles, 1); /* that of the segment that was written meanwhile */
	world_check_all(&w);
	world_close(&w);
}

/* Objects are far smaller than was expected, and then larger again. */
static void the_prefilter_follows_the_number_of_objects(void **state)
{
	struct world w = { .config = { .share = 0.25, .objects = 10, .partitions = 2 } };
	uint64_t before;

	(void)state;
	world_open(&w);
	before = w.frugal->prefilter->blocks;
	for (unsigned n = 0; n < 5; n++)
		write_some(&w, 700);
	world_merge(&w, 1, 0, false);
	assert_int_equal(w.frugal->prefilter->blocks, before);
	world_merge(&w, 1, 0, true);
	assert_true(w.frugal->prefilter->blocks > 5 * before);
	before = w.frugal->prefilter->blocks;
	world_check_all(&w);
	for (unsigned n = 0; n < WORLD_SEGMENTS; n++) {
		write_some(&w, 12);
		world_merge_if_due(&w);
	}
	assert_true(w.frugal->prefilter->blocks < before / 2);
	world_check_all(&w);
	assert_true(w.found > 0 && !w.lossy);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_none_begins),
		cmocka_unit_test(old_records_that_are_none_count_as_unreadable),
		cmocka_unit_test(a_chain_has_no_more_segments_than_it_may),
		cmocka_unit_test(a_share_of_columns_makes_one_due),
		cmocka_unit_test(many_kills_make_one_due),
		cmocka_unit_test(the_prefilter_follows_the_number_of_objects),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
