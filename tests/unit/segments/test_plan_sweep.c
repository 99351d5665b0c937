/* SPDX-License-Identifier: BSD-3-Clause */
/* The sweep: what it places lies where it may, as much as fits, and the better ones first where that is all the same. */
#include "base/alloc.h"
#include "base/rng.h"
#include "tests/unit/segments/plans.h"

static void nothing_to_place_is_no_error(void **state)
{
	(void)state;
	planner_places_nothing(plan_sweep);
}

static void what_is_no_slot_is_passed_over(void **state)
{
	const struct seg_candidate candidates[] = {
		{ .place = 1, .length = 100, .extent = 1 },
		{ .place = 2, .length = PLAN_SLOT_MAX + 1 },
		{ .place = 3, .length = 100 },
		{ .place = 4, .length = MIB / 2 + 1 }, /* does not fit */
	};
	struct planning planning;

	(void)state;
	planning_begin(&planning, candidates, 4, MIB / 2, 8, 16);
	assert_int_equal(plan_sweep(&planning.job), FS_OK);
	planning_check(&planning);
	assert_int_equal(planning.plan.count, 1);
	assert_int_equal(planning.plan.placed[0].candidate, 2);
	planning_end(&planning);
}

/* Functions, granules and areas of all kinds, down to fewer positions than functions. */
static void no_two_records_overlap(void **state)
{
	static const unsigned functions[] = { 1, 2, 7, 16, SEG_SIMULATED_FUNCTIONS };
	static const uint32_t granules[] = { 8, 24, 257, 4096, 30000 };
	static const uint64_t areas[] = { 4096, 60000, MIB };

	(void)state;
	for (unsigned f = 0; f < 5; f++)
		for (unsigned g = 0; g < 5; g++)
			for (unsigned a = 0; a < 3; a++) {
				struct planning planning;
				uint32_t count;
				struct seg_candidate *candidates =
					candidates_make(&count, 2 * areas[a], 200, 1.2, f * 100 + g * 10 + a);

				planning_begin(&planning, candidates, count, areas[a], granules[g], functions[f]);
				assert_int_equal(plan_sweep(&planning.job), FS_OK);
				planning_check(&planning);
				assert_true(planning.plan.count > 0 || granules[g] > areas[a]);
				planning_end(&planning);
				mem_free(candidates);
			}
}

/* One position: the longest covers most of it, and among equal ones the first is the best. */
static void coverage_decides_before_rank(void **state)
{
	struct seg_candidate candidates[5];
	struct planning planning;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		candidates[i] = (struct seg_candidate){ .place = i, .length = i >= 2 ? 900 : 100 };
	planning_begin(&planning, candidates, 5, 1000, 1000, 16);
	assert_int_equal(plan_sweep(&planning.job), FS_OK);
	planning_check(&planning);
	assert_int_equal(planning.plan.count, 1);
	assert_int_equal(planning.plan.placed[0].candidate, 2);
	assert_int_equal(planning.plan.stats.hashes, 1);
	planning_end(&planning);
}

static void no_more_are_placed_than_there_is_room_for(void **state)
{
	struct planning planning;
	uint32_t count;
	struct seg_candidate *candidates = candidates_make(&count, MIB, 200, 0, 3);

	(void)state;
	for (uint32_t most = 0; most <= 100; most += 25) {
		planning_begin(&planning, candidates, count, MIB / 2, 8, 16);
		planning.job.max_objects = most;
		assert_int_equal(plan_sweep(&planning.job), FS_OK);
		planning_check(&planning);
		assert_int_equal(planning.plan.count, most);
		planning_end(&planning);
	}
	mem_free(candidates);
}

/* Records beyond the expected number make the footer grow: the last of them must leave it room. */
static void the_footer_of_more_records_than_expected_fits(void **state)
{
	struct planning planning;
	uint32_t count;
	struct seg_candidate *candidates = candidates_make(&count, 2 * MIB, 30, 0, 4);

	(void)state;
	planning_begin(&planning, candidates, count, MIB - SEG_PAGE, 8, 16);
	planning.job.expected_objects = 5;
	planning.job.segment_bytes = SEG_PAGE + MIB; /* the planned footer has a page */
	assert_int_equal(plan_sweep(&planning.job), FS_OK);
	planning_check(&planning);
	assert_true(planning.plan.count > 1000);
	for (uint32_t n = 0; n < planning.plan.count; n++) {
		const struct seg_placed *placed = &planning.plan.placed[n];
		uint64_t end = placed->offset + candidates[placed->candidate].length;

		assert_true(end + plan_footer_for(&planning.job, n + 1) <= planning.job.segment_bytes || n < 5);
	}
	planning_end(&planning);
	mem_free(candidates);
}

static void others_get_the_processor_meanwhile(void **state)
{
	struct planning planning;
	uint32_t count;
	struct seg_candidate *candidates = candidates_make(&count, 4 * MIB, 257, 1.25, 5);

	(void)state;
	planning_begin(&planning, candidates, count, 2 * MIB, 8, 16);
	assert_int_equal(plan_sweep(&planning.job), FS_OK);
	assert_true(planning.steps >= 2 * planning.job.grid.parts);
	planning_end(&planning);
	planning_begin(&planning, candidates, count, 2 * MIB, 8, 16);
	planning.step.call = NULL;
	assert_int_equal(plan_sweep(&planning.job), FS_OK);
	assert_int_equal(planning.steps, 0);
	planning_end(&planning);
	mem_free(candidates);
}

static void the_better_rank_wins_among_equals(void **state)
{
	struct seg_candidate *candidates;
	struct seg_plan plan;
	uint64_t ranks = 0;
	uint32_t count;

	(void)state;
	candidates = candidates_make(&count, 2 * MIB, 257, 0, 1);
	assert_int_equal(plan_simulate(MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	for (uint32_t n = 0; n < plan.count; n++)
		ranks += plan.placed[n].candidate;
	assert_true((double)ranks / plan.count < count * 0.35);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

static void few_candidates_all_find_a_place(void **state)
{
	struct seg_candidate *candidates;
	struct seg_plan plan;
	uint32_t count;

	(void)state;
	candidates = candidates_make(&count, 16 * MIB / 2, 257, 1.25, 4);
	assert_int_equal(plan_simulate(16 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	assert_true(plan.count > count * 0.99);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

/* The target: at twice the candidates, 97 % with equal sizes. The mix of all applications is heavier
   in its tail than one log-normal of mean 257 B; that one fills 98.8 %. */
static void segments_get_full(void **state)
{
	struct seg_candidate *candidates;
	struct seg_plan plan;
	uint32_t count;

	(void)state;
	candidates = candidates_make(&count, 32 * MIB, 257, 0, 1);
	assert_int_equal(plan_simulate(16 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	assert_true(plan.stats.fill >= 0.99);
	assert_true(plan.stats.placed_bytes >= 0.97 * 16 * MIB); /* of the whole segment, too */
	assert_int_equal(plan.granule, candidates[0].length);
	seg_plan_fini(&plan);
	mem_free(candidates);
	candidates = candidates_make(&count, 32 * MIB, 257, 1.25, 1);
	assert_int_equal(plan_simulate(16 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	assert_true(plan.stats.fill >= 0.985);
	seg_plan_fini(&plan);
	mem_free(candidates);
	candidates = candidates_make(&count, 32 * MIB, 900, 1.5, 1);
	assert_int_equal(plan_simulate(16 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	assert_true(plan.stats.fill >= 0.9895);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_place_is_no_error),
		cmocka_unit_test(what_is_no_slot_is_passed_over),
		cmocka_unit_test(no_two_records_overlap),
		cmocka_unit_test(coverage_decides_before_rank),
		cmocka_unit_test(no_more_are_placed_than_there_is_room_for),
		cmocka_unit_test(the_footer_of_more_records_than_expected_fits),
		cmocka_unit_test(others_get_the_processor_meanwhile),
		cmocka_unit_test(the_better_rank_wins_among_equals),
		cmocka_unit_test(few_candidates_all_find_a_place),
		cmocka_unit_test(segments_get_full),
	};

	return cmocka_run_group_tests_name("plan_sweep", tests, NULL, NULL);
}
