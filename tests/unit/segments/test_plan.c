/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: nothing overlaps, everything lies where its slot will lead, and segments get full. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/unit/segments/fixture.h"

#define MIB (1u << 20)

static struct seg_candidate *make(uint32_t *count, uint64_t bytes, double mean, double sigma, uint64_t seed)
{
	struct seg_candidate *candidates = mem_must_zalloc((bytes / 53 + 1) * sizeof(*candidates));
	struct rng rng;
	uint64_t sum = 0;

	rng_init(&rng, seed);
	for (*count = 0; sum < bytes; sum += candidates[(*count)++].length) {
		double u = rng_real(&rng) + 1e-18, v = rng_real(&rng);
		double normal = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
		double value = exp(log(mean) - sigma * sigma / 2 + sigma * normal);

		candidates[*count].place = rng_next(&rng);
		candidates[*count].length = 53 + (uint32_t)(value > 65000 ? 65000 : value);
	}
	return candidates;
}

/* All that must hold for any plan. */
static void check(const struct seg_plan *plan, const struct seg_candidate *candidates, uint32_t count,
		  uint64_t segment_bytes, unsigned functions)
{
	struct layout_grid grid = layout_grid(plan->sequence, plan->data_bytes, plan->granule, functions);
	uint8_t *seen = mem_must_zalloc(count + 1);
	uint64_t free_from = SEG_PAGE, bytes = 0;

	assert_int_equal(plan->data_offset + plan->data_bytes + plan->footer_bytes, segment_bytes);
	assert_int_equal(plan->data_offset % SEG_PAGE, 0);
	assert_int_equal(plan->footer_bytes % SEG_PAGE, 0);
	assert_true(plan_footer_bytes(plan->count, plan->extents, plan->data_bytes / plan->granule,
				      filter_bytes(NULL, plan->count)) <= plan->footer_bytes);
	for (uint32_t n = 0; n < plan->count; n++) {
		const struct seg_placed *placed = &plan->placed[n];
		const struct seg_candidate *candidate = &candidates[placed->candidate];

		assert_in_range(placed->candidate, 0, count - 1);
		assert_false(seen[placed->candidate]);
		seen[placed->candidate] = 1;
		if (n == plan->extents && free_from < plan->data_offset)
			free_from = plan->data_offset;
		assert_true(placed->offset >= free_from);
		free_from = placed->offset + candidate->length;
		assert_true(free_from <= (n < plan->extents ? plan->data_offset : segment_bytes - plan->footer_bytes));
		assert_int_equal(candidate->extent, n < plan->extents);
		assert_in_range(placed->function, 0, functions - 1);
		if (n >= plan->extents)
			assert_int_equal(placed->offset,
					 plan->data_offset +
						 (uint64_t)plan->granule *
							 layout_position(&grid, candidate->place, placed->function));
		bytes += candidate->length;
	}
	assert_int_equal(bytes, plan->stats.placed_bytes);
	mem_free(seen);
}

static int simulate(uint64_t segment_bytes, unsigned functions, enum seg_placement placement,
		    const struct seg_candidate *candidates, uint32_t count, struct seg_plan *plan)
{
	int rc =
		seg_plan_simulate(segment_bytes, 77, functions, placement, candidates, count, filter_bytes, NULL, plan);

	if (rc == FS_OK)
		check(plan, candidates, count, segment_bytes, functions);
	return rc;
}

static void nonsense_is_refused(void **state)
{
	struct seg_plan plan;

	(void)state;
	assert_int_equal(simulate(MIB, 0, SEG_PLACE_SWEEP, NULL, 0, &plan), FS_EINVAL);
	assert_int_equal(simulate(MIB, SEG_SIMULATED_FUNCTIONS + 1, SEG_PLACE_SWEEP, NULL, 0, &plan), FS_EINVAL);
	assert_int_equal(simulate(MIB + 1, 16, SEG_PLACE_SWEEP, NULL, 0, &plan), FS_EINVAL);
	assert_int_equal(simulate(SEG_PAGE, 16, SEG_PLACE_SWEEP, NULL, 0, &plan), FS_EINVAL);
}

static void nothing_to_place_is_an_empty_plan(void **state)
{
	struct seg_plan plan;

	(void)state;
	for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
		assert_int_equal(simulate(MIB, 16, (enum seg_placement)placement, NULL, 0, &plan), FS_OK);
		assert_int_equal(plan.count, 0);
		seg_plan_fini(&plan);
	}
}

static void what_is_too_long_waits(void **state)
{
	struct seg_candidate candidates[3] = { { .place = 1, .length = 2 * MIB },
					       { .place = 2, .length = 2 * MIB, .extent = 1 },
					       { .place = 3, .length = 100 } };
	struct seg_plan plan;

	(void)state;
	assert_int_equal(simulate(MIB, 16, SEG_PLACE_SWEEP, candidates, 3, &plan), FS_OK);
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

				candidates = make(&count, MIB, means[m], m % 2 ? 0 : 1, f * 10 + m);
				assert_int_equal(simulate(f % 2 ? MIB / 2 : SEG_MIN_BYTES, functions[f],
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
	candidates = make(&count, 2 * MIB, 257, 1.25, 9);
	for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
		assert_int_equal(simulate(MIB, 16, (enum seg_placement)placement, candidates, count, &first), FS_OK);
		assert_int_equal(simulate(MIB, 16, (enum seg_placement)placement, candidates, count, &second), FS_OK);
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

static void few_candidates_all_find_a_place(void **state)
{
	struct seg_candidate *candidates;
	struct seg_plan plan;
	uint32_t count;

	(void)state;
	candidates = make(&count, 16 * MIB / 2, 257, 1.25, 4);
	assert_int_equal(simulate(16 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
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
	candidates = make(&count, 32 * MIB, 257, 0, 1);
	assert_int_equal(simulate(16 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	assert_true(plan.stats.fill >= 0.99);
	assert_true(plan.stats.placed_bytes >= 0.97 * 16 * MIB); /* of the whole segment, too */
	assert_int_equal(plan.granule, candidates[0].length);
	seg_plan_fini(&plan);
	mem_free(candidates);
	candidates = make(&count, 32 * MIB, 257, 1.25, 1);
	assert_int_equal(simulate(16 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	assert_true(plan.stats.fill >= 0.985);
	seg_plan_fini(&plan);
	mem_free(candidates);
	candidates = make(&count, 32 * MIB, 900, 1.5, 1);
	assert_int_equal(simulate(16 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	assert_true(plan.stats.fill >= 0.99);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

static void the_better_rank_wins_among_equals(void **state)
{
	struct seg_candidate *candidates;
	struct seg_plan plan;
	uint64_t ranks = 0;
	uint32_t count;

	(void)state;
	candidates = make(&count, 2 * MIB, 257, 0, 1);
	assert_int_equal(simulate(MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	for (uint32_t n = 0; n < plan.count; n++)
		ranks += plan.placed[n].candidate;
	assert_true((double)ranks / plan.count < count * 0.35);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

static void extents_and_slots_share_the_segment(void **state)
{
	struct seg_candidate *candidates;
	struct seg_plan plan;
	uint32_t count;
	uint64_t extent_bytes;

	(void)state;
	candidates = make(&count, 4 * MIB, 8000, 0, 1);
	for (uint32_t i = 0; i < count; i += 2)
		candidates[i].extent = 1;
	assert_int_equal(simulate(2 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	extent_bytes = plan.data_offset - SEG_PAGE;
	assert_in_range(extent_bytes, 2 * MIB * 4 / 10, 2 * MIB * 6 / 10);
	assert_true(plan.stats.fill > 0.95);
	seg_plan_fini(&plan);
	/* Extents alone take all of it. */
	for (uint32_t i = 0; i < count; i++)
		candidates[i].extent = 1;
	assert_int_equal(simulate(2 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
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
	candidates = make(&count, 8 * MIB, 257, 1, 1);
	assert_int_equal(simulate(4 * MIB, 16, SEG_PLACE_SWEEP, candidates, count, &plan), FS_OK);
	for (uint32_t n = 0; n < plan.count; n++)
		longer += candidates[plan.placed[n].candidate].length > plan.longest_999;
	assert_true(longer <= plan.count / 1000);
	assert_true(longer >= plan.count / 1300);
	seg_plan_fini(&plan);
	mem_free(candidates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(nothing_to_place_is_an_empty_plan),
		cmocka_unit_test(what_is_too_long_waits),
		cmocka_unit_test(plans_hold_what_they_must),
		cmocka_unit_test(a_plan_is_the_same_each_time),
		cmocka_unit_test(functions_are_spread_evenly),
		cmocka_unit_test(few_candidates_all_find_a_place),
		cmocka_unit_test(segments_get_full),
		cmocka_unit_test(the_better_rank_wins_among_equals),
		cmocka_unit_test(extents_and_slots_share_the_segment),
		cmocka_unit_test(l_covers_999_of_1000),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
