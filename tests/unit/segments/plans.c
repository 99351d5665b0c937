/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/segments/plans.h"

#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"

struct seg_candidate *candidates_make(uint32_t *count, uint64_t bytes, double mean, double sigma, uint64_t seed)
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

int plan_simulate(uint64_t segment_bytes, unsigned functions, enum seg_placement placement,
		  const struct seg_candidate *candidates, uint32_t count, struct seg_plan *plan)
{
	int rc =
		seg_plan_simulate(segment_bytes, 77, functions, placement, candidates, count, filter_bytes, NULL, plan);

	if (rc == FS_OK)
		check(plan, candidates, count, segment_bytes, functions);
	return rc;
}

static void count_step(void *context)
{
	++*(unsigned *)context;
}

void planning_begin(struct planning *planning, const struct seg_candidate *candidates, uint32_t count,
		    uint64_t data_bytes, uint32_t granule, uint32_t functions)
{
	*planning = (struct planning){
		.plan = { .sequence = 77, .data_offset = SEG_PAGE, .data_bytes = data_bytes, .granule = granule },
		.step = { .call = count_step, .context = &planning->steps },
	};
	planning->plan.placed = mem_must_zalloc(((uint64_t)count + 1) * sizeof(*planning->plan.placed));
	planning->job = (struct plan_job){
		.candidates = candidates,
		.count = count,
		.grid = layout_grid(77, data_bytes, granule, functions),
		.segment_bytes = SEG_PAGE + data_bytes + SEG_PAGE,
		.max_objects = count,
		.expected_objects = count,
		.step = &planning->step,
		.plan = &planning->plan,
	};
}

void planning_end(struct planning *planning)
{
	seg_plan_fini(&planning->plan);
}

void planning_check(const struct planning *planning)
{
	const struct seg_plan *plan = &planning->plan;
	const struct layout_grid *grid = &planning->job.grid;
	uint8_t *used = mem_must_zalloc(plan->data_bytes + 1), *seen = mem_must_zalloc(planning->job.count + 1);

	assert_in_range(plan->count, 0, planning->job.max_objects);
	for (uint32_t n = 0; n < plan->count; n++) {
		const struct seg_placed *placed = &plan->placed[n];
		const struct seg_candidate *candidate = &planning->job.candidates[placed->candidate];
		uint64_t from = placed->offset - plan->data_offset;

		assert_true(placed->candidate < planning->job.count);
		assert_int_equal(seen[placed->candidate]++, 0);
		assert_true(plan_is_slot(candidate));
		assert_true(placed->function < grid->functions);
		assert_int_equal(from,
				 (uint64_t)grid->granule * layout_position(grid, candidate->place, placed->function));
		assert_true(from + candidate->length <= plan->data_bytes);
		for (uint64_t at = from; at < from + candidate->length; at++)
			assert_int_equal(used[at]++, 0);
	}
	mem_free(used);
	mem_free(seen);
}

void planner_places_nothing(int (*planner)(struct plan_job *job))
{
	const struct seg_candidate one = { .place = 5, .length = 1 };
	struct planning planning;

	planning_begin(&planning, NULL, 0, MIB, 8, 16);
	assert_int_equal(planner(&planning.job), FS_OK);
	assert_int_equal(planning.plan.count, 0);
	planning_end(&planning);
	planning_begin(&planning, &one, 1, 7, 8, 16); /* not even one position */
	assert_int_equal(planner(&planning.job), FS_OK);
	assert_int_equal(planning.plan.count, 0);
	planning_end(&planning);
}
