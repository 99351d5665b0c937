/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans: the layout of the next segment. The areas are fixed first, because positions depend on
 * the data area's size: footer room for the expected number of objects, extents in proportion to their share
 * of the candidates' bytes, and the rest is data.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "segments/plan_internal.h"
#include "segments/segments_internal.h"

#define PAPER_GRANULE 8u
#define PILOT_SHARE 16u
#define PILOT_LEAST_BYTES (16u << 20)

struct sums {
	uint64_t slots, slot_bytes;
	uint64_t extents, extent_bytes; /* extents' bytes aligned */
	double mean_placed; /* expected mean length of the placed slot objects */
};

static struct sums sum_up(const struct seg_candidate *candidates, uint32_t count)
{
	struct sums sums = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		if (candidates[i].extent) {
			sums.extents++;
			sums.extent_bytes += layout_align8(candidates[i].length);
		} else if (plan_is_slot(&candidates[i])) {
			sums.slots++;
			sums.slot_bytes += candidates[i].length;
		}
	}
	sums.mean_placed = sums.slots ? (double)sums.slot_bytes / (double)sums.slots : 1;
	return sums;
}

static int make_plan(uint64_t segment_bytes, uint64_t sequence, unsigned functions, enum seg_placement placement,
		     const struct seg_candidate *candidates, uint32_t count,
		     uint64_t (*filter_bytes_for)(void *context, uint64_t n), void *context,
		     const struct seg_step *step, struct seg_plan *out);

/*
 * Planners prefer long records: the placed ones may be several times as long as the mean, and footer
 * room by the mean of all candidates would cost half a percent of the flash. So a small pilot segment is
 * planned first, with a sample of the candidates; the mean of its records is the better guess.
 */
static int plan_pilot(struct sums *sums, uint64_t segment_bytes, uint64_t sequence, unsigned functions,
		      enum seg_placement placement, const struct seg_candidate *candidates, uint32_t count,
		      const struct seg_step *step)
{
	uint32_t n = 0, most = count / PILOT_SHARE + 1;
	struct seg_candidate *sample;
	struct seg_plan plan;
	int rc;

	if (placement != SEG_PLACE_SWEEP || segment_bytes < PILOT_LEAST_BYTES || sums->slot_bytes <= segment_bytes)
		return FS_OK;
	sample = mem_alloc(most * sizeof(*sample));
	if (!sample)
		return FS_ENOMEM;
	for (uint32_t i = 0; i < count; i += PILOT_SHARE)
		if (plan_is_slot(&candidates[i]))
			sample[n++] = candidates[i];
	rc = make_plan(layout_page_up(segment_bytes / PILOT_SHARE), sequence, functions, placement, sample, n, NULL,
		       NULL, step, &plan);
	if (rc == FS_OK && plan.count > 0)
		sums->mean_placed = (double)plan.stats.placed_bytes / plan.count;
	if (rc == FS_OK)
		seg_plan_fini(&plan);
	mem_free(sample);
	return rc;
}

/* The number of slot objects for which to keep footer room, in that much data area. The sweep may place more. */
static uint64_t expected_slots(const struct sums *sums, uint64_t data_bytes)
{
	uint64_t expected;

	if (sums->slots == 0)
		return 0;
	expected = (uint64_t)((double)data_bytes / sums->mean_placed);
	expected += expected / 32 + 16;
	return expected < sums->slots ? expected : sums->slots;
}

uint64_t plan_footer_for(const struct plan_job *job, uint64_t objects)
{
	const struct seg_plan *plan = job->plan;
	uint64_t room = job->segment_bytes - plan->data_offset;

	return plan_footer_bytes(objects, plan->extents, room / plan->granule,
				 job->filter_bytes_for ? job->filter_bytes_for(job->context, objects) : 0);
}

uint64_t plan_footer_bytes(uint64_t objects, uint64_t extents, uint64_t positions, uint64_t filter_bytes)
{
	return layout_page_up(layout_align8(layout_offsets_bound(objects, extents, positions)) +
			      layout_align8(filter_bytes) + sizeof(struct layout_footer));
}

/* The bytes of the room after the header that extents may take. */
static uint64_t extents_room(const struct sums *sums, uint64_t room)
{
	uint64_t all = sums->slot_bytes + sums->extent_bytes;

	if (sums->extents == 0)
		return 0;
	if (all <= room)
		return layout_page_up(sums->extent_bytes) < room ? layout_page_up(sums->extent_bytes) : room;
	return (uint64_t)((unsigned __int128)room * sums->extent_bytes / all);
}

/*
 * Places extents in order of rank while they fit. The first may take more than the share of all, up to half of the
 * room, so that none waits for ever behind a crowd of small objects. Returns the bytes used.
 */
static uint64_t place_extents(struct plan_job *job, uint64_t share, uint64_t room)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < job->count; i++) {
		const struct seg_candidate *candidate = &job->candidates[i];
		uint64_t length = layout_align8(candidate->length);
		uint64_t limit = used == 0 ? room / 2 : share;

		if (limit < share)
			limit = share;
		if (!candidate->extent || job->plan->count == job->max_objects || used + length > limit)
			continue;
		plan_place(job, i, SEG_PAGE + used, 0);
		used += length;
	}
	job->plan->extents = job->plan->count;
	return used;
}

static int by_offset(const void *left, const void *right)
{
	const struct seg_placed *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

#define LENGTH_STEP 8u
#define STEP_OBJECTS 4096u
/* Finds the length that 99.9 % of the slot objects don't exceed, rounded up to a multiple of LENGTH_STEP. */
static int measure_lengths(struct plan_job *job)
{
	struct seg_plan *plan = job->plan;
	uint32_t *histogram = mem_zalloc((PLAN_SLOT_MAX / LENGTH_STEP + 1) * sizeof(*histogram));
	uint64_t slots = plan->count - plan->extents;
	uint64_t enough = slots - slots / 1000;
	uint64_t seen = 0;
	uint32_t longest = 0, step = 0;

	if (!histogram)
		return FS_ENOMEM;
	for (uint32_t i = 0; i < plan->count; i++) {
		uint32_t length = job->candidates[plan->placed[i].candidate].length;

		if (i % STEP_OBJECTS == 0)
			plan_step(job);
		plan->stats.placed_bytes += length;
		if (i < plan->extents)
			continue;
		must(length <= PLAN_SLOT_MAX);
		histogram[(length + LENGTH_STEP - 1) / LENGTH_STEP]++;
		if (length > longest)
			longest = length;
	}
	while (slots > 0 && (seen += histogram[step]) < enough)
		step++;
	plan->longest_999 = step * LENGTH_STEP < longest ? step * LENGTH_STEP : longest;
	mem_free(histogram);
	return FS_OK;
}

static int finish_plan(struct plan_job *job, const struct sums *sums, uint64_t extents_bytes)
{
	struct seg_plan *plan = job->plan;
	int rc = measure_lengths(job);
	uint64_t areas = extents_bytes + (sums->slots ? plan->data_bytes : 0);

	must(plan->count <= job->max_objects && plan->extents <= plan->count);
	if (plan->count > job->expected_objects)
		plan->footer_bytes = plan_footer_for(job, plan->count);
	must(plan->data_offset + plan->footer_bytes <= job->segment_bytes);
	plan->stats.candidates = job->count;
	plan->stats.candidate_bytes = sums->slot_bytes + sums->extent_bytes;
	plan->stats.placed = plan->count;
	plan->stats.placed_extents = plan->extents;
	plan->stats.granule = plan->granule;
	plan->stats.longest_999 = plan->longest_999;
	plan->stats.fill = areas ? (double)plan->stats.placed_bytes / (double)areas : 0;
	return rc;
}

/* Divides the rest of the segment into data area and footer, each of which depends on the other's size. */
static void divide_areas(struct plan_job *job, const struct sums *sums, enum seg_placement placement,
			 unsigned functions)
{
	struct seg_plan *plan = job->plan;
	uint64_t room = job->segment_bytes - plan->data_offset;
	uint64_t objects = plan->extents;

	plan->granule = placement == SEG_PLACE_PAPER ? PAPER_GRANULE
						     : plan_choose_granule(job->candidates, job->count, sums->slots,
									   sums->slot_bytes, room, functions);
	plan->data_bytes = room;
	for (int round = 0; round < 3; round++) {
		objects = plan->extents + expected_slots(sums, plan->data_bytes);
		plan->footer_bytes = plan_footer_for(job, objects);
		plan->data_bytes = room > plan->footer_bytes ? room - plan->footer_bytes : 0;
	}
	if (plan->footer_bytes > room)
		objects = plan->extents; /* extents alone: their footer was kept free */
	plan->footer_bytes = room - plan->data_bytes;
	job->expected_objects = (uint32_t)objects;
	job->grid = layout_grid(plan->sequence, plan->data_bytes, plan->granule, functions);
}

/* The most objects that a plan may place: half as many again as would fit at mean length. */
static uint32_t most_objects(const struct sums *sums, uint64_t room)
{
	uint64_t most = sums->slots ? room / (sums->slot_bytes / sums->slots) : 0;

	most += most / 2 + 16;
	return (uint32_t)(sums->extents + (most < sums->slots ? most : sums->slots));
}

static int make_plan(uint64_t segment_bytes, uint64_t sequence, unsigned functions, enum seg_placement placement,
		     const struct seg_candidate *candidates, uint32_t count,
		     uint64_t (*filter_bytes_for)(void *context, uint64_t n), void *context,
		     const struct seg_step *step, struct seg_plan *out)
{
	struct plan_job job = {
		.candidates = candidates,
		.count = count,
		.segment_bytes = segment_bytes,
		.filter_bytes_for = filter_bytes_for,
		.context = context,
		.step = step,
		.plan = out,
	};
	struct sums sums = sum_up(candidates, count);
	uint64_t room = segment_bytes - SEG_PAGE, tail, extents_bytes;
	int rc;

	*out = (struct seg_plan){ .sequence = sequence };
	if (functions < 1 || functions > SEG_SIMULATED_FUNCTIONS || count > PLAN_CANDIDATES_MAX ||
	    segment_bytes < SEG_MIN_BYTES || segment_bytes > SEG_MAX_BYTES || segment_bytes % SEG_PAGE)
		return FS_EINVAL;
	rc = plan_pilot(&sums, segment_bytes, sequence, functions, placement, candidates, count, step);
	if (rc != FS_OK)
		return rc;
	job.max_objects = most_objects(&sums, room);
	out->placed = mem_alloc(((uint64_t)job.max_objects + 1) * sizeof(*out->placed));
	if (!out->placed)
		return FS_ENOMEM;
	/* Extents leave room for the footer of a segment of extents alone. */
	tail = plan_footer_bytes(sums.extents, sums.extents, 0,
				 filter_bytes_for ? filter_bytes_for(context, sums.extents) : 0);
	room -= tail < room ? tail : room;
	extents_bytes = place_extents(&job, extents_room(&sums, room), room);
	out->data_offset = layout_page_up(SEG_PAGE + extents_bytes);
	divide_areas(&job, &sums, placement, functions);
	rc = placement == SEG_PLACE_PAPER ? plan_paper(&job) : plan_sweep(&job);
	if (rc == FS_OK && placement == SEG_PLACE_PAPER)
		qsort(out->placed, out->count, sizeof(*out->placed), by_offset);
	if (rc == FS_OK)
		rc = finish_plan(&job, &sums, extents_bytes);
	if (rc != FS_OK)
		seg_plan_fini(out);
	return rc;
}

int seg_plan_simulate(uint64_t segment_bytes, uint64_t sequence, unsigned functions, enum seg_placement placement,
		      const struct seg_candidate *candidates, uint32_t count,
		      uint64_t (*filter_bytes_for)(void *context, uint64_t n), void *context, struct seg_plan *out)
{
	const struct seg_step none = { 0 };

	return make_plan(segment_bytes, sequence, functions, placement, candidates, count, filter_bytes_for, context,
			 &none, out);
}

int seg_plan_make(const struct segments *seg, enum seg_placement placement, const struct seg_candidate *candidates,
		  uint32_t count, uint64_t (*filter_bytes_for)(void *context, uint64_t n), void *context,
		  struct seg_plan *out)
{
	return make_plan(seg->segment_bytes, seg->next_sequence, seg->functions, placement, candidates, count,
			 filter_bytes_for, context, &seg->step, out);
}

void seg_set_step(struct segments *seg, const struct seg_step *step)
{
	seg->step = *step;
}

void seg_plan_fini(struct seg_plan *plan)
{
	mem_free(plan->placed);
	plan->placed = NULL;
	plan->count = 0;
}
