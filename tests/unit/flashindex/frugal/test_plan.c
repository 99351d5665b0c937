/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment of bins from plan to commit: without memory, given up, and changes while it is written. */
#include "tests/unit/flashindex/frugal/world.h"

static void without_memory_nothing_changes(void **state)
{
	struct world w = { .config = { 0 } };
	uint64_t x[2], before;

	(void)state;
	world_open(&w);
	x[0] = w.key[0].key.x;
	x[1] = w.key[1].key.x;
	before = frugal_memory(w.frugal);
	frugal_plan_begin(w.frugal, 100);
	fault_arm(FAULT_region_commit, FAULT_ALWAYS, 0);
	if (HAVE_FAULTS)
		assert_int_equal(frugal_reserve(w.frugal, 2), FS_ENOMEM);
	fault_disarm_all();
	frugal_plan_end(w.frugal);
	frugal_plan_begin(w.frugal, 100);
	assert_int_equal(frugal_reserve(w.frugal, UINT64_MAX), FS_ENOMEM);
	frugal_plan_end(w.frugal);
	frugal_plan_begin(w.frugal, 100);
	(void)frugal_kill(w.frugal, &w.key[2].key, true);
	assert_int_equal(frugal_reserve(w.frugal, 2), FS_OK);
	fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
	if (HAVE_FAULTS)
		assert_int_equal(frugal_open(w.frugal, 0, 100, x, 2, 600), FS_ENOMEM);
	fault_disarm_all();
	frugal_plan_end(w.frugal);
	assert_false(frugal_is_open(w.frugal, 0, 100));
	assert_true(kills_has(w.frugal, &w.key[2].key));
	assert_int_equal(frugal_memory(w.frugal), before);
	world_close(&w);
}

static void a_plan_that_is_given_up_leaves_its_kills(void **state)
{
	struct world w = { .config = { 0 } };

	(void)state;
	world_open(&w);
	(void)frugal_kill(w.frugal, &w.key[0].key, true);
	frugal_plan_begin(w.frugal, 100);
	assert_int_equal(frugal_reserve(w.frugal, 10), FS_OK);
	frugal_plan_end(w.frugal);
	assert_true(kills_has(w.frugal, &w.key[0].key));
	assert_int_equal(w.frugal->bundles, 0);
	world_close(&w);
}

static void change_planned(struct world *w)
{
	world_set(w, 1);
	world_delete(w, 2);
}

/* An object that changes while it is planned has a record, which nobody may find: not in this segment, and not when its kill has
   gone into a later bundle. */
static void records_that_are_dead_on_commit_stay_dead(void **state)
{
	struct world w = { .config = { .share = 0.5 } };

	(void)state;
	world_open(&w);
	for (uint32_t k = 0; k < 4; k++)
		world_set(&w, k);
	assert_true(world_write(&w, 1, change_planned));
	world_evict(&w, 1);
	for (unsigned n = 0; n < 12; n++) {
		world_check_all(&w);
		assert_int_equal(world_search(&w, 1), 0);
		assert_int_equal(world_search(&w, 2), 0);
		assert_true(w.key[3].kept || world_search(&w, 3) == w.key[3].sequence);
		world_set(&w, 10 + n);
		assert_true(world_write(&w, 1, NULL));
		world_merge_if_due(&w);
	}
	world_close(&w);
}

static void kills_are_taken_without_a_segment(void **state)
{
	struct world w = { .config = { 0 } };

	(void)state;
	world_open(&w);
	assert_int_equal(frugal_take_kills(w.frugal), FS_OK);
	assert_int_equal(w.frugal->bundles, 0); /* there was none */
	for (uint32_t k = 0; k < 200; k++)
		world_set(&w, k);
	assert_true(world_write(&w, 1, NULL));
	for (uint32_t k = 0; k < 100; k++)
		world_delete(&w, k);
	fault_arm(FAULT_region_commit, FAULT_ALWAYS, 0);
	if (HAVE_FAULTS)
		assert_int_equal(frugal_take_kills(w.frugal), FS_ENOMEM);
	fault_disarm_all();
	world_check_all(&w);
	assert_int_equal(frugal_take_kills(w.frugal), FS_OK);
	assert_int_equal(w.frugal->bundles, 2);
	assert_int_equal(atomic_load(&w.frugal->kill_count), 0);
	world_check_all(&w);
	assert_true(w.found > 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_nothing_changes),
		cmocka_unit_test(a_plan_that_is_given_up_leaves_its_kills),
		cmocka_unit_test(records_that_are_dead_on_commit_stay_dead),
		cmocka_unit_test(kills_are_taken_without_a_segment),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
