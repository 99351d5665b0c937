/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of plans share: random candidates, what holds for any plan, and a planner called by itself. */
#ifndef FS_TESTS_SEGMENTS_PLANS_H
#define FS_TESTS_SEGMENTS_PLANS_H

#include "segments/plan_internal.h"
#include "tests/unit/segments/fixture.h"

#define MIB (1u << 20)

/* Candidates of that many bytes in all, with values of log-normal sizes. The caller frees them by mem_free. */
struct seg_candidate *candidates_make(uint32_t *count, uint64_t bytes, double mean, double sigma, uint64_t seed);

/* Plans a segment without a flash, and asserts all that must hold for any plan. Codes of seg_plan_simulate. */
int plan_simulate(uint64_t segment_bytes, unsigned functions, enum seg_placement placement,
		  const struct seg_candidate *candidates, uint32_t count, struct seg_plan *plan);

/* A planner's job by itself, over a data area that begins after the header page. */
struct planning {
	struct plan_job job;
	struct seg_plan plan;
	struct seg_step step;
	unsigned steps;
};

/* There is room for all objects in plan and footer until the test changes that. */
void planning_begin(struct planning *planning, const struct seg_candidate *candidates, uint32_t count,
		    uint64_t data_bytes, uint32_t granule, uint32_t functions);
void planning_end(struct planning *planning);
/* Asserts that each record lies where its function leads, in the area, once, and that none overlaps another. */
void planning_check(const struct planning *planning);
/* Asserts that the planner takes no candidates, and an area without a position, as no error. */
void planner_places_nothing(int (*planner)(struct plan_job *job));

#endif
