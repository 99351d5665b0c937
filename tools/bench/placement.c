/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How full segments get: both placements, by candidates, functions and sizes (the paper's figure 8), and
 * what planning costs. Three groups of rows:
 *
 *   full size     512 MiB, 16 functions, 2 x candidates: what the promise is about
 *   steady state  segment after segment, what found no place waits for the next one
 *   the table     64 MiB, functions and candidates varied, all candidates fresh
 *
 * Plans are simulated, nothing is written.
 */
#include "tools/bench/bench.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "tools/bench/placement_objects.h"
#include "tools/bench/placement_run.h"

#define STUDY "placement"
#define FULL_BYTES (512ull << 20)
#define TABLE_BYTES (64ull << 20)
#define STEADY_BYTES (16ull << 20)
#define LEAST_BYTES (4ull << 20) /* large objects are told from small ones as in real segments */
#define STEADY_TURNS 24u /* the second half is measured */
#define PROMISED 2.0 /* x candidates */
#define FUNCTIONS 16u

static const struct {
	double factor;
	const char *column, *head;
} ratios[] = {
	{ 1.0, "fill_1x_pct", "fill % 1x" }, { 1.1, "fill_1.1x_pct", "1.1x" }, { 1.25, "fill_1.25x_pct", "1.25x" },
	{ 1.5, "fill_1.5x_pct", "1.5x" },    { 2.0, "fill_2x_pct", "2x" },     { 3.0, "fill_3x_pct", "3x" },
};
#define RATIOS (sizeof(ratios) / sizeof(ratios[0]))
#define PROMISED_COLUMN "fill_2x_pct"
#define PAPER_ROW "512 MB, paper's figure 8, 16"

struct study {
	struct bench *bench;
	struct figures *figures;
	struct placement_objects objects[PLACEMENT_SIZES];
	uint64_t full_bytes, table_bytes, steady_bytes;
	uint64_t sequence; /* another one for each plan */
};

static uint64_t scaled_segment(const struct bench *bench, uint64_t bytes)
{
	return bench_scaled(bench, bytes, LEAST_BYTES) / SEG_PAGE * SEG_PAGE;
}

/* What is told of a plan beside its fill. */
static void add_costs(struct figures *figures, const char *row, const struct placement_outcome *outcome)
{
	figures_add(figures, STUDY, row, "whole_2x_pct", outcome->whole);
	figures_add(figures, STUDY, row, "hashes_2x", outcome->hashes);
	figures_add(figures, STUDY, row, "plan_2x_mb_s", outcome->mb_s);
	figures_add(figures, STUDY, row, "memory_2x_b", outcome->memory_bytes);
}

static int measure(struct study *study, const struct placement_run *shape, enum placement_sizes sizes, double ratio,
		   struct placement_outcome *outcome)
{
	const struct placement_objects *objects = &study->objects[sizes];
	struct placement_run run = *shape;
	struct seg_plan plan;
	uint32_t count;
	int rc;

	if (bench_interrupted())
		return FS_ESYS;
	run.sequence = study->sequence++;
	count = placement_objects_for(objects, 0, (uint64_t)(ratio * (double)run.segment_bytes));
	rc = placement_measure(&run, objects->all, count, outcome, &plan);
	if (rc == FS_OK)
		seg_plan_fini(&plan);
	return rc;
}

/* ---- full size ------------------------------------------------------------------------------- */

static void full_row(const struct study *study, char *row, size_t bytes, enum seg_placement placement,
		     enum placement_sizes sizes)
{
	snprintf(row, bytes, "%.0f MiB %s %s, %u", (double)study->full_bytes / (1 << 20), placement_kinds[placement],
		 placement_names[sizes], FUNCTIONS);
}

static int measure_full(struct study *study, enum seg_placement placement, enum placement_sizes sizes)
{
	struct placement_run run = { study->full_bytes, 0, FUNCTIONS, placement };
	char row[80];

	full_row(study, row, sizeof(row), placement, sizes);
	bench_progress(study->bench, "placement: %s", row);
	for (unsigned round = 0; round < study->bench->options->rounds; round++) {
		struct placement_outcome outcome;
		int rc = measure(study, &run, sizes, PROMISED, &outcome);

		if (rc != FS_OK)
			return rc;
		figures_add(study->figures, STUDY, row, PROMISED_COLUMN, outcome.fill);
		add_costs(study->figures, row, &outcome);
	}
	return FS_OK;
}

static int study_full_size(struct study *study)
{
	static const enum placement_sizes shown[] = { PLACEMENT_MIX, PLACEMENT_EQUAL };

	for (unsigned i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
			int rc = measure_full(study, (enum seg_placement)placement, shown[i]);

			if (rc != FS_OK)
				return rc;
		}
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

/* What was placed leaves. */
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

static int measure_steady(struct study *study, enum seg_placement placement, enum placement_sizes sizes)
{
	const struct placement_objects *objects = &study->objects[sizes];
	struct queue queue = { .waiting = mem_must_zalloc((objects->count + 1ull) * sizeof(*queue.waiting)) };
	struct placement_run run = { study->steady_bytes, 0, FUNCTIONS, placement };
	char row[80];
	int rc = FS_OK;

	snprintf(row, sizeof(row), "steady %s %s, %u", placement_kinds[placement], placement_names[sizes], FUNCTIONS);
	bench_progress(study->bench, "placement: %s", row);
	for (unsigned turn = 0; rc == FS_OK && turn < STEADY_TURNS && !bench_interrupted(); turn++) {
		struct placement_outcome outcome;
		struct seg_plan plan;

		run.sequence = study->sequence++;
		fill_up(&queue, objects, (uint64_t)(PROMISED * (double)study->steady_bytes));
		rc = placement_measure(&run, queue.waiting, queue.count, &outcome, &plan);
		if (rc != FS_OK)
			break;
		leave(&queue, &plan);
		seg_plan_fini(&plan);
		if (turn < STEADY_TURNS / 2)
			continue;
		figures_add(study->figures, STUDY, row, PROMISED_COLUMN, outcome.fill);
		add_costs(study->figures, row, &outcome);
		figures_add(study->figures, STUDY, row, "waiting_b",
			    (double)queue.bytes / (queue.count ? queue.count : 1));
	}
	mem_free(queue.waiting);
	return rc;
}

static int study_steady_state(struct study *study)
{
	static const enum placement_sizes shown[] = { PLACEMENT_MIX, PLACEMENT_EQUAL };

	for (unsigned i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
			int rc = measure_steady(study, (enum seg_placement)placement, shown[i]);

			if (rc != FS_OK)
				return rc;
		}
	}
	return FS_OK;
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
		figures_add(study->figures, STUDY, row, ratios[r].column, outcome.fill);
		if (ratios[r].factor == PROMISED)
			add_costs(study->figures, row, &outcome);
	}
	return FS_OK;
}

static int study_table(struct study *study)
{
	for (int placement = SEG_PLACE_SWEEP; placement <= SEG_PLACE_PAPER; placement++) {
		for (int sizes = 0; sizes < PLACEMENT_SIZES; sizes++) {
			bench_progress(study->bench, "placement: table, %s %s", placement_kinds[placement],
				       placement_names[sizes]);
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

static void describe(struct study *study)
{
	char text[900];

	snprintf(text, sizeof(text),
		 "A row: placement, sizes, hash functions. Candidates are records of 32 B "
		 "header, key and value; \"x\" is their bytes over the segment's. equal: 30 B "
		 "keys, 257 B values; log: the same with log-normal values of that mean; mix: "
		 "the keys of the twenty Memcachier applications as flashield-tracegen draws "
		 "them. Fill is of the areas that records may lie in, \"whole\" of the segment "
		 "with header and footer. First %.0f MiB segments, then a steady state of %.0f "
		 "MiB segments where what found no place waits for the next (\"waiting\": mean "
		 "length of what waits), then the table, %.0f MiB segments. Whole, hashes, "
		 "speed (10^6 B of segment per CPU second) and memory (peak, per candidate) at 2 x. "
		 "Paper: figure 8, 512 MB segments, 16 functions, about 1 GB of candidates.",
		 (double)study->full_bytes / (1 << 20), (double)study->steady_bytes / (1 << 20),
		 (double)study->table_bytes / (1 << 20));
	figures_study(study->figures, STUDY, "Segment fill and planning", text);
	for (unsigned r = 0; r < RATIOS; r++)
		figures_column(study->figures, ratios[r].column, ratios[r].head, 2);
	figures_column(study->figures, "whole_2x_pct", "whole %", 2);
	figures_column(study->figures, "hashes_2x", "hashes", 2);
	figures_column(study->figures, "plan_2x_mb_s", "MB/s", 0);
	figures_column(study->figures, "memory_2x_b", "mem B", 1);
	figures_column(study->figures, "waiting_b", "waiting B", 0);
	/* The first row sets the order of the columns. */
	for (unsigned r = 0; r < RATIOS; r++)
		figures_add(study->figures, STUDY, PAPER_ROW, ratios[r].column,
			    ratios[r].factor == PROMISED ? 99 : NAN);
	figures_add(study->figures, STUDY, PAPER_ROW, "hashes_2x", 8.2);
}

static void make_objects(struct study *study)
{
	for (int sizes = 0; sizes < PLACEMENT_SIZES; sizes++) {
		uint64_t steady = (STEADY_TURNS + 2) * study->steady_bytes, bytes = 3 * study->table_bytes;
		struct placement_objects *objects = &study->objects[sizes];

		if (sizes == PLACEMENT_MIX || sizes == PLACEMENT_EQUAL) {
			uint64_t full = (uint64_t)(PROMISED * (double)study->full_bytes);

			bytes = bytes > full ? bytes : full;
			bytes = bytes > steady ? bytes : steady;
		}
		bench_progress(study->bench, "placement: drawing %s objects", placement_names[sizes]);
		placement_objects_make(objects, (enum placement_sizes)sizes, bytes, 1 + (uint64_t)sizes);
		figures_note(study->figures, STUDY, "%s: %u records drawn, mean %.1f B", placement_names[sizes],
			     objects->count, (double)objects->bytes / objects->count);
	}
}

static void add_targets(struct study *study)
{
	struct figures *figures = study->figures;
	char mix[80], equal[80], paper[80];

	full_row(study, mix, sizeof(mix), SEG_PLACE_SWEEP, PLACEMENT_MIX);
	full_row(study, equal, sizeof(equal), SEG_PLACE_SWEEP, PLACEMENT_EQUAL);
	full_row(study, paper, sizeof(paper), SEG_PLACE_PAPER, PLACEMENT_MIX);
	figures_target(figures, "segment fill at 2 x candidates, Memcachier-like mix",
		       figures_median(figures, STUDY, mix, PROMISED_COLUMN), FIGURES_AT_LEAST, 99, "%");
	figures_target(figures, "segment fill at 2 x candidates, equal sizes",
		       figures_median(figures, STUDY, equal, PROMISED_COLUMN), FIGURES_AT_LEAST, 97, "%");
	figures_beside(figures, "segment fill, the paper's placement here, mix",
		       figures_median(figures, STUDY, paper, PROMISED_COLUMN), "%");
	figures_beside(figures, "segment fill, the paper's figure 8", 99, "%");
	figures_beside(figures, "hashes per placed object, mix", figures_median(figures, STUDY, mix, "hashes_2x"), "");
	figures_beside(figures, "hashes per placed object, the paper's figure 8", 8.2, "");
	figures_beside(figures, "planning, mix, per CPU second", figures_median(figures, STUDY, mix, "plan_2x_mb_s"),
		       "MB");
}

int study_placement(struct bench *bench)
{
	struct study study = {
		.bench = bench,
		.figures = bench->figures,
		.full_bytes = scaled_segment(bench, FULL_BYTES),
		.table_bytes = scaled_segment(bench, TABLE_BYTES),
		.steady_bytes = scaled_segment(bench, STEADY_BYTES),
		.sequence = 1,
	};
	int rc;

	describe(&study);
	make_objects(&study);
	rc = study_full_size(&study);
	if (rc == FS_OK)
		rc = study_steady_state(&study);
	if (rc == FS_OK)
		rc = study_table(&study);
	if (rc == FS_OK)
		add_targets(&study);
	for (int sizes = 0; sizes < PLACEMENT_SIZES; sizes++)
		placement_objects_free(&study.objects[sizes]);
	return rc;
}
