/* SPDX-License-Identifier: BSD-3-Clause */
/* The paper's placement, beside a simple one that keeps a byte for each granule. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/unit/segments/plans.h"

static void nothing_to_place_is_no_error(void **state)
{
	(void)state;
	planner_places_nothing(plan_paper);
}

static void what_is_no_slot_is_passed_over(void **state)
{
	const struct seg_candidate candidates[] = {
		{ .place = 1, .length = 100, .extent = 1 },
		{ .place = 2, .length = PLAN_SLOT_MAX + 1 },
		{ .place = 3, .length = 100 },
	};
	struct planning planning;

	(void)state;
	planning_begin(&planning, candidates, 3, 4 * MIB, 8, 16);
	assert_int_equal(plan_paper(&planning.job), FS_OK);
	assert_int_equal(planning.plan.count, 1);
	assert_int_equal(planning.plan.placed[0].candidate, 2);
	planning_end(&planning);
}

/* An area of one position: the record must begin at its start, and may fill it to the end. */
static void a_record_may_fill_the_area_and_no_more(void **state)
{
	struct seg_candidate one = { .place = 5 };
	struct planning planning;

	(void)state;
	for (uint32_t length = 999; length <= 1001; length++) {
		one.length = length;
		planning_begin(&planning, &one, 1, 1000, 1000, 16);
		assert_int_equal(plan_paper(&planning.job), FS_OK);
		assert_int_equal(planning.plan.count, length <= 1000);
		planning_check(&planning);
		planning_end(&planning);
	}
}

static void the_longest_comes_first_and_then_the_better_rank(void **state)
{
	static const uint32_t lengths[] = { 10, 30, 30, 20 };
	struct seg_candidate candidates[4];
	struct planning planning;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		candidates[i] = (struct seg_candidate){ .place = i, .length = lengths[i] };
	planning_begin(&planning, candidates, 4, 1000, 1000, 16);
	assert_int_equal(plan_paper(&planning.job), FS_OK);
	assert_int_equal(planning.plan.count, 1);
	assert_int_equal(planning.plan.placed[0].candidate, 1);
	planning_end(&planning);
}

static void no_more_are_placed_than_are_expected(void **state)
{
	struct planning planning;
	uint32_t count;
	struct seg_candidate *candidates = candidates_make(&count, MIB / 4, 200, 0, 3);

	(void)state;
	for (uint32_t expected = 0; expected <= 100; expected += 25) {
		planning_begin(&planning, candidates, count, MIB, 8, 16);
		planning.job.expected_objects = expected;
		assert_int_equal(plan_paper(&planning.job), FS_OK);
		planning_check(&planning);
		assert_int_equal(planning.plan.count, expected);
		planning_end(&planning);
	}
	mem_free(candidates);
}

/* ---- the simple one -------------------------------------------------------------------------- */

struct entry {
	uint32_t length, candidate;
};

static int longest_first(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->length != b->length)
		return a->length < b->length ? 1 : -1;
	return a->candidate < b->candidate ? -1 : 1;
}

static bool fits(const uint8_t *used, const struct layout_grid *grid, uint32_t position, uint32_t granules)
{
	for (uint32_t i = 0; i < granules; i++)
		if (position + i >= grid->positions || used[position + i])
			return false;
	return true;
}

/* Asserts that the plan has the records that the simple placement has, in its order, and as many positions tried. */
static void assert_is_the_simple_one(const struct planning *planning)
{
	const struct plan_job *job = &planning->job;
	const struct layout_grid *grid = &job->grid;
	struct entry *order = mem_must_zalloc(job->count * sizeof(*order));
	uint8_t *used = mem_must_zalloc(grid->positions + 1);
	uint64_t hashes = 0;
	uint32_t placed = 0;

	for (uint32_t i = 0; i < job->count; i++)
		order[i] = (struct entry){ job->candidates[i].length, i };
	qsort(order, job->count, sizeof(*order), longest_first);
	for (uint32_t i = 0; i < job->count; i++) {
		uint32_t granules = (order[i].length + grid->granule - 1) / grid->granule, function = 0, position = 0;

		for (; function < grid->functions; function++) {
			position = layout_position(grid, job->candidates[order[i].candidate].place, function);
			if (fits(used, grid, position, granules))
				break;
		}
		if (function == grid->functions)
			continue;
		memset(used + position, 1, granules);
		hashes += function + 1;
		assert_true(placed < job->plan->count);
		assert_int_equal(job->plan->placed[placed].candidate, order[i].candidate);
		assert_int_equal(job->plan->placed[placed].function, function);
		placed++;
	}
	assert_int_equal(job->plan->count, placed);
	assert_int_equal(job->plan->stats.hashes, hashes);
	mem_free(used);
	mem_free(order);
}

/* Lengths from a granule to several words of 64, granules of all kinds, down to fewer positions than functions. */
static void it_places_what_the_simple_one_places(void **state)
{
	static const unsigned functions[] = { 1, 2, 7, 16, SEG_SIMULATED_FUNCTIONS };
	static const uint32_t granules[] = { 1, 8, 24, 257, 30000 };
	static const uint64_t areas[] = { 512, 4096, 60000, MIB / 2 };

	(void)state;
	for (unsigned f = 0; f < 5; f++)
		for (unsigned g = 0; g < 5; g++)
			for (unsigned a = 0; a < 4; a++) {
				struct planning planning;
				uint32_t count;
				struct seg_candidate *candidates =
					candidates_make(&count, 2 * areas[a], 200, 1.2, f * 100 + g * 10 + a);

				planning_begin(&planning, candidates, count, areas[a], granules[g], functions[f]);
				assert_int_equal(plan_paper(&planning.job), FS_OK);
				planning_check(&planning);
				if (planning.job.grid.positions > 0)
					assert_is_the_simple_one(&planning);
				planning_end(&planning);
				mem_free(candidates);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_place_is_no_error),
		cmocka_unit_test(what_is_no_slot_is_passed_over),
		cmocka_unit_test(a_record_may_fill_the_area_and_no_more),
		cmocka_unit_test(the_longest_comes_first_and_then_the_better_rank),
		cmocka_unit_test(no_more_are_placed_than_are_expected),
		cmocka_unit_test(it_places_what_the_simple_one_places),
	};

	return cmocka_run_group_tests_name("plan_paper", tests, NULL, NULL);
}
