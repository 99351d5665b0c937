/* SPDX-License-Identifier: BSD-3-Clause */
/* Bundles are laid together, go when they are over, and stay as they are without memory. */
#include "tests/unit/flashindex/frugal/world.h"

static void write_one(struct world *w)
{
	for (unsigned i = 0; i < 20; i++)
		world_set(w, (uint32_t)rng_below(&w->rng, WORLD_KEYS));
	assert_true(world_write(w, 1, NULL));
}

static void without_memory_they_stay_as_they_are(void **state)
{
	struct world w = { .config = { 0 } };

	(void)state;
	world_open(&w);
	for (unsigned n = 0; n < 7; n++)
		write_one(&w);
	assert_int_equal(w.frugal->bundles, 7);
	for (unsigned i = 0; i < 20; i++)
		world_set(&w, i);
	frugal_plan_begin(w.frugal, 500);
	assert_int_equal(frugal_reserve(w.frugal, 0), FS_OK);
	assert_int_equal(frugal_open(w.frugal, 20, 500, NULL, 0, 0), FS_OK);
	fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
	frugal_plan_end(w.frugal);
	fault_disarm_all();
#ifdef FS_FAULTS
	assert_int_equal(w.frugal->bundles, 8);
#endif
	world_check_all(&w);
	bundles_tidy(w.frugal);
	assert_int_equal(w.frugal->bundles, 1);
	assert_int_equal(w.frugal->bundle[0]->columns, 8);
	world_check_all(&w);
	world_close(&w);
}

static void many_segments_leave_few_bundles(void **state)
{
	struct world w = { .config = { 0 } };
	unsigned most = 0;

	(void)state;
	world_open(&w);
	for (unsigned n = 0; n < 200; n++) {
		write_one(&w);
		if (n % 3 == 0)
			assert_int_equal(frugal_take_kills(w.frugal), FS_OK);
		if (w.frugal->bundles > most)
			most = w.frugal->bundles;
		for (unsigned b = 0; b + 1 < w.frugal->bundles; b++)
			assert_true(w.frugal->bundle[b]->oldest == w.frugal->bundle[b + 1]->serial + 1);
	}
	assert_true(most < 20);
	world_check_all(&w);
	world_close(&w);
}

static void the_oldest_goes_with_its_last_segment(void **state)
{
	struct world w = { .config = { 0 } };

	(void)state;
	world_open(&w);
	for (unsigned n = 0; n < 4; n++)
		write_one(&w);
	for (uint32_t k = 0; k < 10; k++)
		world_delete(&w, k);
	world_reclaim(&w, 1);
	bundles_tidy(w.frugal);
	assert_int_equal(w.frugal->bundles, 4); /* its column hides what is older */
	world_reclaim(&w, 0);
	bundles_tidy(w.frugal);
	assert_int_equal(w.frugal->bundles, 2);
	world_reclaim(&w, 2);
	world_reclaim(&w, 3);
	bundles_tidy(w.frugal);
	assert_int_equal(w.frugal->bundles, 0);
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		assert_false(frugal_may_hold(w.frugal, &w.key[k].key));
	assert_int_equal(w.frugal->used_count, 1);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_they_stay_as_they_are),
		cmocka_unit_test(many_segments_leave_few_bundles),
		cmocka_unit_test(the_oldest_goes_with_its_last_segment),
	};

	return cmocka_run_group_tests_name("tidy", tests, NULL, NULL);
}
