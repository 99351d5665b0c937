/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instructions per operation in user space, by callgrind: figures that no neighbour on the machine
 * disturbs. Each case is run twice, with N operations and with 2 N; the difference is what N cost,
 * without the start, the filling and what is done once.
 */
#include "tools/bench/bench.h"

#include <math.h>
#include <stdio.h>

#include "tools/bench/instructions_run.h"

#define STUDY "instructions"
#define OPERATIONS 20000
#define LEAST_OPERATIONS 2000
#define NOTED 10u /* of the most expensive functions */

enum contender { FLASHIELD, MEMCACHED, CONTENDERS };
static const enum server_kind kinds[CONTENDERS] = { SERVER_FLASHIELD, SERVER_MEMCACHED };
static const char *const columns[CONTENDERS] = { "flashield_instructions", "memcached_instructions" };

/* What a flash hit is told from comes before it: the same load on DRAM, and a miss. */
enum { GET, GET_PIPELINED, MISS = 3 };
static const struct instructions_case cases[] = {
	[GET] = { .name = "get, one at a time", .kind = LOAD_GET, .connections = 1 },
	[GET_PIPELINED] = { .name = "get, 16 pipelined", .kind = LOAD_GET, .connections = 1, .pipeline = 16 },
	{ .name = "get, 50 connections", .kind = LOAD_GET, .connections = 50 },
	[MISS] = { .name = "miss, one at a time", .kind = LOAD_GET, .connections = 1, .misses = true },
	{ .name = "multiget of 100, per key", .kind = LOAD_GET, .connections = 1, .keys_per_get = 100 },
	{ .name = "set, one at a time", .kind = LOAD_SET, .connections = 1 },
	{ .name = "set, 16 pipelined", .kind = LOAD_SET, .connections = 1, .pipeline = 16 },
	{ .name = "set, 50 connections", .kind = LOAD_SET, .connections = 50 },
	{ .name = "flash hit, one at a time", .kind = LOAD_GET, .connections = 1, .flash = true },
	{ .name = "flash hit, 16 pipelined", .kind = LOAD_GET, .connections = 1, .pipeline = 16, .flash = true },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

struct study {
	struct bench *bench;
	struct figures *figures;
	uint64_t operations;
	bool has_memcached;
};

/* ---- one case -------------------------------------------------------------------------------- */

/* The most expensive functions, in a line. */
static void note_functions(struct study *study, const struct instructions_case *one, enum contender who,
			   const struct profile *profile)
{
	char text[800];
	size_t used = 0;

	for (size_t i = 0; i < NOTED && i < profile->count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %.0f", i ? ", " : "",
					 profile->functions[i].name, profile->functions[i].self);
	figures_note(study->figures, STUDY, "%s, %s, of %.0f: %s", one->name, server_names[kinds[who]], profile->total,
		     text);
}

/*
 * Of the gets for what lies on flash, a few are served from DRAM and a few miss: they are taken out at what
 * they cost by themselves.
 */
static double flash_hit_cost(const struct study *study, const struct instructions_case *one, double all,
			     const struct instructions_counts counts[2])
{
	const char *get = cases[one->pipeline > 1 ? GET_PIPELINED : GET].name;
	double flash_hits = counts[1].flash_hits - counts[0].flash_hits;
	double hits = (double)counts[1].hits - (double)counts[0].hits;
	double gets = (double)counts[1].gets - (double)counts[0].gets;

	all -= (hits - flash_hits) * figures_median(study->figures, STUDY, get, columns[FLASHIELD]);
	all -= (gets - hits) * figures_median(study->figures, STUDY, cases[MISS].name, columns[FLASHIELD]);
	return all / flash_hits;
}

static void add_case(struct study *study, const struct instructions_case *one, enum contender who,
		     const struct instructions_counts counts[2], const struct profile *profile)
{
	double cost = profile->total;

	if (one->flash) {
		cost = flash_hit_cost(study, one, cost * (double)study->operations, counts);
		figures_add(study->figures, STUDY, one->name, "flash_percent",
			    100 * counts[1].flash_hits / (double)counts[1].gets);
	}
	figures_add(study->figures, STUDY, one->name, columns[who], cost);
}

static int measure(struct study *study, const struct instructions_case *one, enum contender who, unsigned round)
{
	struct profile profiles[2] = { 0 };
	struct instructions_counts counts[2];
	int rc = FS_OK;

	for (unsigned run = 0; rc == FS_OK && run < 2; run++)
		rc = instructions_run(study->bench, kinds[who], one, study->operations * (run + 1), &profiles[run],
				      &counts[run]);
	if (rc == FS_OK) {
		profile_per_operation(&profiles[1], &profiles[0], (double)study->operations);
		add_case(study, one, who, counts, &profiles[1]);
		if (round == 0 && (one == &cases[GET] || one->flash))
			note_functions(study, one, who, &profiles[1]);
	}
	profile_fini(&profiles[0]);
	profile_fini(&profiles[1]);
	return rc;
}

/* Only flash hits depend on timing, so that more than one round tells more. */
static int measure_case(struct study *study, const struct instructions_case *one)
{
	unsigned rounds = one->flash ? study->bench->options->rounds : 1;
	int rc = FS_OK;

	bench_progress(study->bench, "instructions: %s", one->name);
	for (unsigned round = 0; rc == FS_OK && round < rounds && !bench_interrupted(); round++)
		rc = measure(study, one, FLASHIELD, round);
	if (rc != FS_OK || one->flash || !study->has_memcached || bench_interrupted())
		return rc;
	rc = measure(study, one, MEMCACHED, 0);
	if (rc == FS_OK)
		figures_add(study->figures, STUDY, one->name, "instructions_ratio",
			    figures_median(study->figures, STUDY, one->name, columns[FLASHIELD]) /
				    figures_median(study->figures, STUDY, one->name, columns[MEMCACHED]));
	return rc;
}

/* ---- the study ------------------------------------------------------------------------------- */

/* Without valgrind a missing program is told from one that fails. */
static int look_for_memcached(struct study *study)
{
	struct server_spec spec = { .kind = SERVER_MEMCACHED, .memory_mb = 64, .threads = 1 };
	struct server server;
	int rc = server_start(&server, study->bench, &spec);

	study->has_memcached = rc == FS_OK;
	if (rc == FS_OK)
		return server_stop(&server);
	if (rc != FS_ENOTFOUND)
		return rc;
	figures_note(study->figures, STUDY, "memcached (%s) is not here: nothing to compare with.",
		     study->bench->options->memcached);
	return FS_OK;
}

static void describe(struct study *study)
{
	figures_study(study->figures, STUDY, "instructions per operation in user space, memcached beside",
		      "Counted by callgrind in the worker thread (-t 1), libraries included, the kernel not: "
		      "the difference of two runs, the second with twice the operations. Keys have 30 B, values "
		      "257 B; sets replace. Flash hits: what was served otherwise (flash %) is taken out. 16 "
		      "pipelined: on one connection. 50 connections: under valgrind the server is slow, so that "
		      "it finds all of them with a command. Notes: self cost of the most expensive functions.");
	figures_column(study->figures, columns[FLASHIELD], "flashield", 0);
	figures_column(study->figures, columns[MEMCACHED], "memcached", 0);
	figures_column(study->figures, "instructions_ratio", "instr. ratio", 3);
	figures_column(study->figures, "flash_percent", "flash %", 2);
}

int study_instructions(struct bench *bench)
{
	struct study study = {
		.bench = bench,
		.figures = bench->figures,
		.operations = bench_scaled(bench, OPERATIONS, LEAST_OPERATIONS),
	};
	int rc;

	describe(&study);
	rc = look_for_memcached(&study);
	for (size_t i = 0; rc == FS_OK && i < CASES && !bench_interrupted(); i++)
		rc = measure_case(&study, &cases[i]);
	if (rc == FS_ENOTFOUND) {
		figures_note(bench->figures, STUDY, "valgrind is not here: nothing was counted.");
		rc = FS_OK;
	} else if (rc == FS_EINVAL) {
		figures_note(bench->figures, STUDY, "the name of %s can't be given to valgrind: nothing was counted.",
			     bench->options->directory);
		rc = FS_OK;
	}
	return rc;
}
