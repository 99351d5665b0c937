/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: nothing overlaps, everything lies where its slot will lead, and segments get full. */
#include "base/alloc.h"
#include "base/fault.h"
#include "base/rng.h"
#include "tests/unit/segments/plans.h"

static void nonsense_is_refused(void **state)
{
	struct seg_plan plan;

	(void)state;
	assert_int_equal(plan_simulate(MIB, 0, SEG_PLACE_SWEEP, NULL, 0, &plan), FS_EINVAL);
	assert_int_equal(plan_simulate(MIB, SEG_SIMULATED_FUNCTIONS + 1, SEG_PLACE_SWEEP, NULL, 0, &plan), FS_EINVAL);
	assert_int_equal(plan_simulate(MIB + 1, 16, SEG_PLACE_SWEEP, NULL, 0, &plan), FS_EINVAL);
	assert_int_equal(plan_simulate(SEG_PAGE, 16, SEG_PLACE_SWEEP, NULL, 0, &plan), FS_EINVAL);
}

static void nothing_to_place_is_an_empty_plan(void **state)
{
	struct seg_plan plan;

	(void)state;
	for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
		assert_int_equal(plan_simulate(MIB, 16, (enum seg_placement)placement, NULL, 0, &plan), FS_OK);
		assert_int_equal(plan.count, 0);
		seg_plan_fini(&plan);
	}
}

static void without_memory_there_is_nothing_to_free(void **state)
{
	uint32_t count;
	struct seg_candidate *candidates = candidates_make(&count, MIB, 300, 0.1, 1);

	(void)state;
	for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
		bool fired = true;

		for (unsigned n = 0; fired; n++) {
			struct seg_plan plan;
			int code;

			fault_arm(FAULT_memory_alloc, FAULT_AFTER, n);
			code = plan_simulate(MIB, 16, (enum seg_placement)placement, candidates, count, &plan);
			fired = fault_fired(FAULT_memory_alloc) > 0;
			fault_disarm_all();
			assert_int_equal(code, fired ? FS_ENOMEM : FS_OK);
			if (fired)
				assert_null(plan.placed);
			else
				seg_plan_fini(&plan);
		}
	}
	mem_free(candidates);
}

static void what_is_too_long_waits(void **state)
{
	struct seg_candidate candidates[3] = { { .place = 1, .length = 2 * MIB },
					       { .place = 2, .length = 2 * MIB, .extent = 1 },
					       { .place = 3, .length = 100 } };
	struct seg_plan plan;

	(void)state;
	assert_int_equal(plan_simulate(MIB, 16, SEG_PLACE_SWEEP, candidates, 3, &plan), FS_OK);
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.placed[0].candidate, 2);
	seg_plan_fini(&plan);
}

/* Every shape: few or many functions, tiny segments with fewer positions than functions, one size. */
static void plans_hold_what_they_must(void **state)
{
	static const unsigned functions[] = { 1, 2, 3, 7, 16, SEG_SIMULATED_FUNCTIONS };
	static const double means[] = { 30, 300, 3000, 20000 };

	(void)state;
	for (unsigned f = 0; f < 6; f++) {
		for (unsigned m = 0; m < 4; m++) {
			for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
				struct seg_candidate *candidates;
				struct seg_plan plan;
				uint32_t count;

				candidates = candidates_make(&count, MIB, means[m], m % 2 ? 0 : 1, f * 10 + m);
				assert_int_equal(plan_simulate(f % 2 ? MIB / 2 : SEG_MIN_BYTES, functions[f],
							       (enum seg_placement)placement, candidates, count, &plan),
						 FS_OK);
				assert_true(plan.count > 0);
				seg_plan_fini(&plan);
				mem_free(candidates);
			}
		}
	}
}

static void a_plan_is_the_same_each_time(void **state)
{
	struct seg_candidate *candidates;
	struct seg_plan first, second;
	uint32_t count;

	(void)state;
	candidates = candidates_make(&count, 2 * MIB, 257, 1.25, 9);
	for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
		assert_int_equal(plan_simulate(MIB, 16, (enum seg_placement)placement, candidates, count, &first),
				 FS_OK);
		assert_int_equal(plan_simulate(MIB, 16, (enum seg_placement)placement, candidates, count, &second),
				 FS_OK);
		assert_int_equal(first.count, second.count);
		for (uint32_t n = 0; n < first.count; n++) {
			assert_int_equal(first.placed[n].candidate, second.placed[n].candidate);
			assert_int_equal(first.placed[n].offset, second.placed[n].offset);
			assert_int_equal(first.placed[n].function, second.placed[n].function);
		}
		seg_plan_fini(&first);
		seg_plan_fini(&second);
	}
	mem_free(candidates);
}

static void functions_are_spread_evenly(void **state)
{
	struct layout_grid grid = layout_grid(5, 16 * MIB, 8, 16);
	uint32_t hits[16][16] = { { 0 } };
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (int i = 0; i < 32000; i++) {
		uint64_t place = rng_next(&rng);
		unsigned parts = 0;

		for (uint32_t f = 0; f < 16; f++) {
			uint32_t part = layout_position(&grid, place, f) / (grid.positions / 16);

			hits[f][part]++;
			parts |= 1u << part;
		}
		assert_int_equal(parts, 0xffff); /* one chance in every part */
	}
	for (int f = 0; f < 16; f++)
		for (int part = 0; part < 16; part++)
			assert_in_range(hits[f][part], 1700, 2300);
}

static void extents_and_slots_share_the_segment(void **state)
{
	struct seg_candidate *candidates;
	struct seg_plan plan;
	uint32_t count;
	uint64_t extent_bytes;

	(void)state;
	candidates = candidates_make(&count, 4 * MIB, 8000, 0, 1);
	for (uint32_t i = 0; i < count; i += 2)
		candidates[i].extent = 1;
	assert_int_equal(plan_simulate(2 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	extent_bytes = plan.data_offset - SEG_PAGE;
	assert_in_range(extent_bytes, 2 * MIB * 4 / 10, 2 * MIB * 6 / 10);
	assert_true(plan.stats.fill > 0.95);
	seg_plan_fini(&plan);
	/* Extents alone take all of it. */
	for (uint32_t i = 0; i < count; i++)
		candidates[i].extent = 1;
	assert_int_equal(plan_simulate(2 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	assert_int_equal(plan.count, plan.extents);
	assert_true(plan.stats.placed_bytes > 2 * MIB * 0.97);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

static void l_covers_999_of_1000(void **state)
{
	struct seg_candidate *candidates;
	struct seg_plan plan;
	uint32_t count, longer = 0;

	(void)state;
	candidates = candidates_make(&count, 8 * MIB, 257, 1, 1);
	assert_int_equal(plan_simulate(4 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	for (uint32_t n = 0; n < plan.count; n++)
		longer += candidates[plan.placed[n].candidate].length > plan.longest_999;
	assert_true(longer <= plan.count / 1000);
	assert_true(longer >= plan.count / 1300);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

static void count_step(void *context)
{
	(*(unsigned *)context)++;
}

static void planning_calls_the_step(void **state)
{
	struct flash flash;
	unsigned steps = 0, then;
	struct batch batch;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEG_MIN_BYTES, 16, NULL), FS_OK);
	batch_make(&batch, 1, 100, 50, 200);
	seg_set_step(flash.seg, &(struct seg_step){ .call = count_step, .context = &steps });
	assert_int_equal(batch_plan(&batch, flash.seg, SEG_PLACE_SWEEP), FS_OK);
	assert_true(steps >= 16); /* each part at least */
	seg_set_step(flash.seg, &(struct seg_step){ 0 });
	then = steps;
	seg_plan_fini(&batch.plan);
	assert_int_equal(batch_plan(&batch, flash.seg, SEG_PLACE_SWEEP), FS_OK);
	assert_int_equal(steps, then);
	batch_fini(&batch);
	flash_close(&flash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(nothing_to_place_is_an_empty_plan),
		cmocka_unit_test(without_memory_there_is_nothing_to_free),
		cmocka_unit_test(what_is_too_long_waits),
		cmocka_unit_test(plans_hold_what_they_must),
		cmocka_unit_test(a_plan_is_the_same_each_time),
		cmocka_unit_test(functions_are_spread_evenly),
		cmocka_unit_test(extents_and_slots_share_the_segment),
		cmocka_unit_test(l_covers_999_of_1000),
		cmocka_unit_test(planning_calls_the_step),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
