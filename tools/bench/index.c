/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index from 10 million slots to a billion: CPU per operation, memory per slot, false matches.
 * Sizes for which memory is short are extrapolated, and say so.
 */
#include "tools/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/index_model.h"
#include "tools/bench/index_run.h"

#define STUDY "index"
#define ROW_BYTES 64
#define MILLION 1000000ull
#define OPERATIONS (MILLION / 2)
#define LARGEST (1000 * MILLION)
#define OF_MODEL 1023u /* segments of the rows that are one series */

static const struct index_shape shapes[] = {
	{ .slots = 10 * MILLION, .segments = OF_MODEL },
	{ .slots = 30 * MILLION, .segments = OF_MODEL },
	{ .slots = 100 * MILLION, .segments = OF_MODEL },
	{ .slots = 300 * MILLION, .segments = OF_MODEL },
	{ .slots = LARGEST, .segments = OF_MODEL },
	{ .slots = 30 * MILLION, .segments = OF_MODEL, .small_pages = true },
	{ .slots = 10 * MILLION, .segments = 16383, .filter_bits = 1 },
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

enum cost { COST_INSERT = INDEX_OPERATIONS, COST_INSERT_FULL, COSTS };
static const struct {
	const char *column, *head;
} columns[COSTS] = {
	[INDEX_HIT] = { "hit_ns", "hit ns" },
	[INDEX_MISS] = { "miss_ns", "miss" },
	[INDEX_TOUCH] = { "hit_touch_ns", "hit+touch" },
	[INDEX_HAND] = { "hand_ns", "hand" },
	[INDEX_CLEAR_NOTHING] = { "clear_nothing_ns", "clear none" },
	[INDEX_CLEAR] = { "clear_ns", "clear" },
	[COST_INSERT] = { "insert_ns", "insert" },
	[COST_INSERT_FULL] = { "insert_full_ns", "at 0.95" },
};

struct study {
	struct bench *bench;
	struct figures *figures;
	uint64_t operations;
	struct index_model models[COSTS];
};

/* ---- the machine ----------------------------------------------------------------------------- */

/* A line "name: N kB" of a file in /proc, in bytes; 0 without it. */
static uint64_t proc_bytes(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	size_t length = strlen(name);
	uint64_t bytes = 0;
	char line[256];

	if (!file)
		return 0;
	while (bytes == 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, name, length) == 0)
			bytes = strtoull(line + length, NULL, 10) * 1024;
	fclose(file);
	return bytes;
}

static void note_huge_pages(struct figures *figures)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char setting[80] = "none known";

	if (file && fgets(setting, sizeof(setting), file))
		setting[strcspn(setting, "\n")] = 0;
	if (file)
		fclose(file);
	figures_note(figures, STUDY, "transparent huge pages: %s (the index asks for them by madvise)", setting);
}

static uint64_t available_bytes(void)
{
	return proc_bytes("/proc/meminfo", "MemAvailable:");
}

/* A third of what is available stays free: a bench must not make the machine swap. */
static bool fits(const struct index_shape *shape)
{
	return index_run_bytes(shape) <= available_bytes() / 3 * 2;
}

/* ---- measured -------------------------------------------------------------------------------- */

static bool is_of_model(const struct index_shape *shape)
{
	return shape->segments == OF_MODEL && !shape->small_pages;
}

static void row_name(const struct index_shape *shape, char row[ROW_BYTES])
{
	unsigned long long millions = shape->slots / MILLION;

	if (shape->filter_bits)
		snprintf(row, ROW_BYTES, "%llu M, %u segments, %u filter bit", millions, shape->segments,
			 shape->filter_bits);
	else
		snprintf(row, ROW_BYTES, "%llu M slots%s", millions, shape->small_pages ? ", 4 KiB pages" : "");
}

static void add_cost(struct study *study, const struct index_shape *shape, const char *row, unsigned cost, double ns)
{
	figures_add(study->figures, STUDY, row, columns[cost].column, ns);
	if (is_of_model(shape))
		index_model_add(&study->models[cost], shape->slots, ns);
}

/* What is known once it is full, and shown behind the costs. */
struct facts {
	double moves_per_insert, bytes_per_slot, huge_pages;
};

static struct facts facts_of(const struct index_run *run)
{
	double huge = (double)proc_bytes("/proc/self/smaps_rollup", "AnonHugePages:");

	return (struct facts){
		.moves_per_insert = (double)run->moves / (double)run->keys,
		.bytes_per_slot = index_run_bytes_per_slot(run),
		.huge_pages = 100 * fmin(huge / ((double)run->shape.slots * sizeof(uint32_t)), 1),
	};
}

static void add_facts(struct study *study, const struct index_run *run, const char *row, const struct facts *facts)
{
	figures_add(study->figures, STUDY, row, "moves_per_insert", facts->moves_per_insert);
	figures_add(study->figures, STUDY, row, "drops", (double)run->drops);
	figures_add(study->figures, STUDY, row, "bytes_per_slot", facts->bytes_per_slot);
	figures_add(study->figures, STUDY, row, "tag_bits", fidx_tag_bits(run->index));
	figures_add(study->figures, STUDY, row, "huge_pages_pct", facts->huge_pages);
}

static int measure_operation(struct study *study, struct index_run *run, const char *row,
			     enum index_operation operation)
{
	unsigned rounds = operation == INDEX_CLEAR ? 1 : study->bench->options->rounds;

	for (unsigned round = 0; round < rounds; round++) {
		struct index_cost cost;
		int rc = bench_interrupted() ? FS_ESYS
					     : index_run_measure(run, operation, round, study->operations, &cost);

		if (rc != FS_OK)
			return rc;
		add_cost(study, &run->shape, row, operation, cost.ns);
		if (operation == INDEX_MISS)
			figures_add(study->figures, STUDY, row, "false_matches_per_miss",
				    (double)cost.matches / (double)cost.done);
	}
	return FS_OK;
}

static int measure_shape(struct study *study, const struct index_shape *shape)
{
	struct index_run run;
	struct facts facts;
	char row[ROW_BYTES];
	int rc;

	row_name(shape, row);
	bench_progress(study->bench, "index: %s", row);
	rc = index_run_init(&run, shape, study->operations / 16);
	if (rc != FS_OK)
		return rc;
	facts = facts_of(&run);
	add_cost(study, shape, row, COST_INSERT, run.insert_ns);
	add_cost(study, shape, row, COST_INSERT_FULL, run.insert_full_ns);
	for (int operation = 0; rc == FS_OK && operation < INDEX_OPERATIONS; operation++)
		rc = measure_operation(study, &run, row, (enum index_operation)operation);
	add_facts(study, &run, row, &facts);
	index_run_fini(&run);
	return rc;
}

/* ---- extrapolated ---------------------------------------------------------------------------- */

static void extrapolate(struct study *study, const struct index_shape *shape)
{
	char name[ROW_BYTES], row[ROW_BYTES + 16], reason[80] = "--scale leaves these sizes out";

	row_name(shape, name);
	snprintf(row, sizeof(row), "%s, EXTRAPOLATED", name);
	for (unsigned cost = 0; cost < COSTS; cost++)
		figures_add(study->figures, STUDY, row, columns[cost].column,
			    index_model_predict(&study->models[cost], shape->slots));
	if (!fits(shape))
		snprintf(reason, sizeof(reason), "%.1f GB of memory are available, and a third is to stay free",
			 (double)available_bytes() / 1e9);
	figures_note(study->figures, STUDY,
		     "EXTRAPOLATED: %s. Model: cost = a + b log2(slots), least squares over the sizes measured "
		     "(a hit: %.1f ns more for each doubling). A lower bound: a size that outgrows the reach of "
		     "the address translation buffers costs more than smaller ones foretell",
		     reason, index_model_slope(&study->models[INDEX_HIT]));
}

/* How well the model would have foretold the largest size, had it not been measured. */
static void note_model_error(struct study *study, const struct index_model before[COSTS],
			     const struct index_shape *shape)
{
	double hit = index_model_predict(&before[INDEX_HIT], shape->slots);
	double miss = index_model_predict(&before[INDEX_MISS], shape->slots);
	double insert = index_model_predict(&before[COST_INSERT], shape->slots);
	char row[ROW_BYTES];

	if (isnan(hit))
		return;
	row_name(shape, row);
	figures_note(study->figures, STUDY,
		     "the model cost = a + b log2(slots), fitted to the smaller sizes, would have foretold "
		     "%s as "
		     "hit %.0f, miss %.0f, insert %.0f ns; measured %.0f, %.0f, %.0f",
		     row, hit, miss, insert, figures_median(study->figures, STUDY, row, columns[INDEX_HIT].column),
		     figures_median(study->figures, STUDY, row, columns[INDEX_MISS].column),
		     figures_median(study->figures, STUDY, row, columns[COST_INSERT].column));
}

/* ---- the study ------------------------------------------------------------------------------- */

static void describe(struct study *study)
{
	struct figures *figures = study->figures;

	figures_study(figures, STUDY, "The index by its size",
		      "CPU nanoseconds per operation of one thread, at a load of 0.95 (insert: mean "
		      "while it fills, and the last ones), on random keys and without overlap of one "
		      "operation with the next; hashing the key's bytes is not in it. Hit+touch: as of "
		      "a get from flash. Clear none: a set or delete of a key that is not on flash. "
		      "Hand: per live slot passed. B/slot: all of the index's memory over slots in use. "
		      "1023 segments leave 15 bits of tag and need no filters; 16383 segments leave 11, "
		      "to which the daemon adds a filter of a bit per key. Huge: share of the slots in "
		      "huge pages.");
	for (unsigned cost = 0; cost < COSTS; cost++)
		figures_column(figures, columns[cost].column, columns[cost].head, cost == INDEX_HAND ? 1 : 0);
	figures_column(figures, "false_matches_per_miss", "false/miss", 5);
	figures_column(figures, "moves_per_insert", "moves", 3);
	figures_column(figures, "drops", "drops", 0);
	figures_column(figures, "bytes_per_slot", "B/slot", 3);
	figures_column(figures, "tag_bits", "tag", 0);
	figures_column(figures, "huge_pages_pct", "huge %", 0);
	note_huge_pages(figures);
}

int study_index(struct bench *bench)
{
	struct study study = {
		.bench = bench,
		.figures = bench->figures,
		.operations = bench_scaled(bench, OPERATIONS, 100000),
	};
	uint64_t largest = bench_scaled(bench, LARGEST, shapes[1].slots); /* two make a model */
	int rc = FS_OK;

	describe(&study);
	for (unsigned i = 0; rc == FS_OK && i < SHAPES; i++) {
		const struct index_shape *shape = &shapes[i];
		struct index_model before[COSTS];

		if (shape->slots > largest || !fits(shape)) {
			if (is_of_model(shape))
				extrapolate(&study, shape);
			continue;
		}
		memcpy(before, study.models, sizeof(before));
		rc = measure_shape(&study, shape);
		if (rc == FS_OK && shape->slots == LARGEST)
			note_model_error(&study, before, shape);
	}
	return rc;
}
