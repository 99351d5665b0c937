/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How full segments get: both placements, by candidates, functions and sizes (the paper's figure 8), and
 * what planning costs. Four groups of rows:
 *
 *   full size     512 MiB, 16 functions, 2 x candidates: the shape of the target
 *   steady state  segment after segment, an object without a position waits for the next one
 *   the table     64 MiB, functions and candidates varied, all candidates fresh
 *   extents       large objects, which get an extent from several lengths on, in a steady state of several segment sizes
 *
 * Plans are simulated, nothing is written.
 */
#include "tools/bench/engine.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "tools/bench/placement_objects.h"
#include "tools/bench/placement_run.h"
#include "tools/bench/report.h"

#define STEADY_TURNS 24u /* the second half is measured */
#define TARGET_FACTOR 2.0 /* x candidates */
#define FUNCTIONS 16u

static const struct {
	double factor;
	const char *column;
} ratios[] = {
	{ 1.0, "fill_1x_pct" },   { 1.1, "fill_1.1x_pct" }, { 1.25, "fill_1.25x_pct" },
	{ 1.5, "fill_1.5x_pct" }, { 2.0, "fill_2x_pct" },   { 3.0, "fill_3x_pct" },
};
#define RATIOS (sizeof(ratios) / sizeof(ratios[0]))
#define TARGET_COLUMN "fill_2x_pct"

struct study {
	unsigned rounds;
	struct placement_objects objects[PLACEMENT_SIZES];
	uint64_t full_bytes, table_bytes, steady_bytes;
	uint64_t sequence; /* another one for each plan */
};

/* Reports the figures of a plan beside its fill. */
static void add_costs(const char *row, const struct placement_outcome *outcome)
{
	report_add(row, "whole_2x_pct", outcome->whole);
	report_add(row, "pages_2x", outcome->pages);
	report_add(row, "hashes_2x", outcome->hashes);
	report_add(row, "plan_2x_mb_s", outcome->mb_s);
	report_add(row, "memory_2x_b", outcome->memory_bytes);
}

static int measure(struct study *study, const struct placement_run *shape, enum placement_sizes sizes, double ratio,
		   struct placement_outcome *outcome)
{
	const struct placement_objects *objects = &study->objects[sizes];
	struct placement_run run = *shape;
	struct seg_plan plan;
	uint32_t count;
	int rc;

	run.sequence = study->sequence++;
	count = placement_objects_for(objects, 0, (uint64_t)(ratio * (double)run.segment_bytes));
	rc = placement_measure(&run, objects->all, count, outcome, &plan);
	if (rc == FS_OK)
		seg_plan_fini(&plan);
	return rc;
}

/* ---- full size ------------------------------------------------------------------------------- */

static int measure_full(struct study *study, enum seg_placement placement, enum placement_sizes sizes)
{
	struct placement_run run = { study->full_bytes, 0, FUNCTIONS, placement };
	char row[80];

	snprintf(row, sizeof(row), "%.0f MiB %s %s, %u", (double)study->full_bytes / (1 << 20),
		 placement_kinds[placement], placement_names[sizes], FUNCTIONS);
	report_progress("placement: %s", row);
	for (unsigned round = 0; round < study->rounds; round++) {
		struct placement_outcome outcome;
		int rc = measure(study, &run, sizes, TARGET_FACTOR, &outcome);

		if (rc != FS_OK)
			return rc;
		report_add(row, TARGET_COLUMN, outcome.fill);
		add_costs(row, &outcome);
	}
	return FS_OK;
}

/* ---- steady state ---------------------------------------------------------------------------- */

/* Candidates that wait, the longest waiting first, filled up from fresh ones. */
struct queue {
	struct seg_candidate *waiting;
	uint32_t count;
	uint64_t bytes;
	uint32_t next; /* fresh one */
};

static void fill_up(struct queue *queue, const struct placement_objects *objects, uint64_t bytes)
{
	while (queue->bytes < bytes && queue->next < objects->count) {
		queue->waiting[queue->count++] = objects->all[queue->next];
		queue->bytes += objects->all[queue->next++].length;
	}
}

/* Removes the placed candidates. */
static void leave(struct queue *queue, const struct seg_plan *plan)
{
	uint32_t kept = 0;

	for (uint32_t n = 0; n < plan->count; n++)
		queue->waiting[plan->placed[n].candidate].length = 0;
	for (uint32_t i = 0; i < queue->count; i++)
		if (queue->waiting[i].length > 0)
			queue->waiting[kept++] = queue->waiting[i];
	queue->count = kept;
	queue->bytes -= plan->stats.placed_bytes;
}

static int measure_turns(struct study *study, const char *row, const struct placement_run *shape,
			 const struct placement_objects *objects)
{
	struct queue queue = { .waiting = mem_must_zalloc((objects->count + 1ull) * sizeof(*queue.waiting)) };
	struct placement_run run = *shape;
	int rc = FS_OK;

	report_progress("placement: %s", row);
	for (unsigned turn = 0; rc == FS_OK && turn < STEADY_TURNS; turn++) {
		struct placement_outcome outcome;
		struct seg_plan plan;

		run.sequence = study->sequence++;
		fill_up(&queue, objects, (uint64_t)(TARGET_FACTOR * (double)run.segment_bytes));
		rc = placement_measure(&run, queue.waiting, queue.count, &outcome, &plan);
		if (rc != FS_OK)
			break;
		leave(&queue, &plan);
		seg_plan_fini(&plan);
		if (turn < STEADY_TURNS / 2)
			continue;
		report_add(row, TARGET_COLUMN, outcome.fill);
		add_costs(row, &outcome);
		report_add(row, "waiting_b", (double)queue.bytes / (queue.count ? queue.count : 1));
		report_add(row, "extents_pct", outcome.extents);
	}
	mem_free(queue.waiting);
	return rc;
}

static int measure_steady(struct study *study, enum seg_placement placement, enum placement_sizes sizes)
{
	const struct placement_run run = { study->steady_bytes, 0, FUNCTIONS, placement };
	char row[80];

	snprintf(row, sizeof(row), "steady %s %s, %u", placement_kinds[placement], placement_names[sizes], FUNCTIONS);
	return measure_turns(study, row, &run, &study->objects[sizes]);
}

/* Measures both placements for the sizes that the targets name. */
static int each_placement(struct study *study, int (*measure_one)(struct study *study, enum seg_placement placement,
								  enum placement_sizes sizes))
{
	static const enum placement_sizes shown[] = { PLACEMENT_MIX, PLACEMENT_EQUAL };
	int rc = FS_OK;

	for (unsigned i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER && rc == FS_OK; placement++)
			rc = measure_one(study, (enum seg_placement)placement, shown[i]);
	return rc;
}

/* ---- extents --------------------------------------------------------------------------------- */

static int measure_threshold(struct study *study, uint64_t segment_bytes, uint32_t threshold)
{
	struct placement_objects *objects = &study->objects[PLACEMENT_LARGE];
	const struct placement_run run = { segment_bytes, 0, FUNCTIONS, SEG_PLACE_SWEEP };
	char row[80];

	for (uint32_t i = 0; i < objects->count; i++)
		objects->all[i].extent = objects->all[i].length > threshold;
	snprintf(row, sizeof(row), "extents over %u KiB, %.0f MiB", threshold >> 10, (double)segment_bytes / (1 << 20));
	return measure_turns(study, row, &run, objects);
}

static int study_extents(struct study *study)
{
	static const uint32_t thresholds[] = { 4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10 };
	int rc = FS_OK;

	for (uint64_t bytes = 1 << 20; bytes <= study->table_bytes && rc == FS_OK; bytes *= 8)
		for (unsigned i = 0; i < sizeof(thresholds) / sizeof(thresholds[0]) && rc == FS_OK; i++)
			rc = measure_threshold(study, bytes, thresholds[i]);
	return rc;
}

/* ---- the table ------------------------------------------------------------------------------- */

static int measure_ratios(struct study *study, enum seg_placement placement, enum placement_sizes sizes,
			  unsigned functions)
{
	struct placement_run run = { study->table_bytes, 0, functions, placement };
	char row[80];

	snprintf(row, sizeof(row), "%s %s, %u", placement_kinds[placement], placement_names[sizes], functions);
	for (unsigned r = 0; r < RATIOS; r++) {
		struct placement_outcome outcome;
		int rc = measure(study, &run, sizes, ratios[r].factor, &outcome);

		if (rc != FS_OK)
			return rc;
		report_add(row, ratios[r].column, outcome.fill);
		if (ratios[r].factor == TARGET_FACTOR)
			add_costs(row, &outcome);
	}
	return FS_OK;
}

static int study_table(struct study *study)
{
	for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
		for (int sizes = 0; sizes <= PLACEMENT_MIX; sizes++) {
			report_progress("placement: table, %s %s", placement_kinds[placement], placement_names[sizes]);
			for (unsigned functions = 1; functions <= SEG_SIMULATED_FUNCTIONS; functions *= 2) {
				int rc = measure_ratios(study, (enum seg_placement)placement,
							(enum placement_sizes)sizes, functions);

				if (rc != FS_OK)
					return rc;
			}
		}
	}
	return FS_OK;
}

/* ---- the study ------------------------------------------------------------------------------- */

static void make_objects(struct study *study)
{
	for (int sizes = 0; sizes < PLACEMENT_SIZES; sizes++) {
		uint64_t steady = (STEADY_TURNS + 2) * study->steady_bytes, bytes = 3 * study->table_bytes;
		uint64_t large = (STEADY_TURNS + 2) * study->table_bytes;
		struct placement_objects *objects = &study->objects[sizes];

		if (sizes == PLACEMENT_MIX || sizes == PLACEMENT_EQUAL) {
			uint64_t full = (uint64_t)(TARGET_FACTOR * (double)study->full_bytes);

			bytes = bytes > full ? bytes : full;
			bytes = bytes > steady ? bytes : steady;
		}
		if (sizes == PLACEMENT_LARGE)
			bytes = large;
		report_progress("placement: drawing %s objects", placement_names[sizes]);
		placement_objects_make(objects, (enum placement_sizes)sizes, bytes, 1 + (uint64_t)sizes);
		report_note("%s: %u records drawn, mean %.1f B", placement_names[sizes], objects->count,
			    (double)objects->bytes / objects->count);
	}
}

int engine_placement(unsigned rounds, uint64_t full_bytes, uint64_t steady_bytes, uint64_t table_bytes)
{
	struct study study = {
		.rounds = rounds,
		.full_bytes = full_bytes / SEG_PAGE * SEG_PAGE,
		.table_bytes = table_bytes / SEG_PAGE * SEG_PAGE,
		.steady_bytes = steady_bytes / SEG_PAGE * SEG_PAGE,
		.sequence = 1,
	};
	int rc;

	if (!study.full_bytes || !study.table_bytes || !study.steady_bytes)
		return FS_EINVAL;
	make_objects(&study);
	rc = each_placement(&study, measure_full);
	if (rc == FS_OK)
		rc = each_placement(&study, measure_steady);
	if (rc == FS_OK)
		rc = study_extents(&study);
	if (rc == FS_OK)
		rc = study_table(&study);
	for (int sizes = 0; sizes < PLACEMENT_SIZES; sizes++)
		placement_objects_free(&study.objects[sizes]);
	return rc;
}
