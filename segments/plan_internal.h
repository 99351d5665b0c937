/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part that both planners share. plan.c divides the segment into areas, chooses the granule, packs the
 * extents, calls a planner for the rest and computes the figures. One thread per plan; no I/O.
 */
#ifndef FS_SEGMENTS_PLAN_INTERNAL_H
#define FS_SEGMENTS_PLAN_INTERNAL_H

#include "base/assert.h"
#include "segments/layout.h"

/* The longest record that a slot may name; a longer one finds no position unless it is an extent. */
#define PLAN_SLOT_MAX (1u << 20)
#define PLAN_CANDIDATES_MAX ((1u << 27) - 1)

struct plan_job {
	const struct seg_candidate *candidates;
	uint32_t count;
	struct layout_grid grid;
	uint64_t segment_bytes;
	uint32_t max_objects; /* room in plan->placed */
	uint32_t expected_objects; /* the planned footer has room for so many, extents included */
	uint64_t (*filter_bytes_for)(void *context, uint64_t n); /* may be NULL */
	void *context;
	const struct seg_step *step;
	struct seg_plan *plan; /* its areas are set */
};

/* Planners call it between pieces of work of some ten microseconds. */
static inline void plan_step(const struct plan_job *job)
{
	if (job->step->call)
		job->step->call(job->step->context);
}

/* Returns the footer's bytes for that many objects. */
uint64_t plan_footer_for(const struct plan_job *job, uint64_t objects);

/*
 * May one more record be placed, which ends at `end` in the data area, behind all others? Records beyond the expected
 * number make the footer grow into the free tail of the data area: only a planner that goes in order of offset can have
 * them.
 */
static inline bool plan_fits(const struct plan_job *job, uint64_t end)
{
	const struct seg_plan *plan = job->plan;

	if (plan->count >= job->max_objects || end > plan->data_bytes)
		return false;
	return plan->count < job->expected_objects ||
	       plan->data_offset + end + plan_footer_for(job, (uint64_t)plan->count + 1) <= job->segment_bytes;
}

/* The planners. Both append to plan->placed in any order, and add to plan->count and stats.hashes. FS_OK or
   FS_ENOMEM. */
FS_MUST_CHECK int plan_sweep(struct plan_job *job);
FS_MUST_CHECK int plan_paper(struct plan_job *job);

/* Returns the granule, in bytes, with which the sweep is expected to lose the fewest bytes. slot_count, slot_bytes: of
   the candidates that are no extents. */
uint32_t plan_choose_granule(const struct seg_candidate *candidates, uint32_t count, uint64_t slot_count,
			     uint64_t slot_bytes, uint64_t data_bytes, unsigned functions);

/* Is it a candidate for the data area? */
static inline bool plan_is_slot(const struct seg_candidate *candidate)
{
	return !candidate->extent && candidate->length <= PLAN_SLOT_MAX;
}

/* Appends a candidate at that offset of the segment. */
static inline void plan_place(struct plan_job *job, uint32_t candidate, uint64_t offset, uint32_t function)
{
	must(job->plan->count < job->max_objects && candidate < job->count && offset < job->segment_bytes);
	job->plan->placed[job->plan->count++] = (struct seg_placed){
		.candidate = candidate,
		.offset = (uint32_t)offset,
		.function = (uint8_t)function,
	};
}

#endif
