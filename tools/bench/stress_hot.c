/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "stress_hot": one object on flash that everybody asks for. How many reads does the drive do for a million
 * gets, on a fast drive and on one whose reads take a millisecond?
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tools/bench/stress_part.h"

#define STUDY "stress_hot"
#define MEMORY_MB 64
#define FLASH_BYTES (512ull << 20)
#define GETS 1000000 /* at scale 1 */
#define GETS_LEAST 20000
#define CONNECTIONS 200
#define NAME_BYTES 64

static const struct flash_size size = { .value_bytes = 257, .wanted = 20000, .filler = 40000, .cycles = 10 };

static const struct drive {
	const char *name;
	uint64_t latency_us;
} drives[] = { { "fast drive", 0 }, { "1 ms drive", 1000 } };

enum { DRIVES = sizeof(drives) / sizeof(drives[0]), CONTENDERS = 2 };
static const enum server_kind kinds[CONTENDERS] = { SERVER_FLASHIELD, SERVER_EXTSTORE };

struct hot {
	struct bench *bench;
	struct server servers[CONTENDERS];
	struct flash_range ranges[CONTENDERS];
	bool runs[CONTENDERS];
	uint64_t used[CONTENDERS]; /* keys of the range that were asked for: each measurement has a new one */
};

static void row_name(int who, const struct drive *drive, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%s, %s", server_names[kinds[who]], drive->name);
}

static struct load_spec spec_of(struct hot *hot, int who, uint64_t gets)
{
	return (struct load_spec){
		.kind = LOAD_GET,
		.order = LOAD_UNIFORM,
		.first_key = hot->ranges[who].first_key + hot->used[who],
		.keys = 1,
		.value_bytes = size.value_bytes,
		.connections = gets > 1 ? CONNECTIONS : 1,
		.operations = gets,
		.cpu = hot->bench->options->load_cpu,
	};
}

/* The next key that is read from the drive. *reads: of the drive before it was asked for. */
static int find_key(struct hot *hot, int who, uint64_t *reads)
{
	struct slowdrive *drive = hot->servers[who].drive;
	int rc;

	do {
		struct load_result result;
		struct load_spec spec;

		hot->used[who]++;
		spec = spec_of(hot, who, 1);
		*reads = atomic_load(&drive->reads.done);
		rc = stress_run(STUDY, &spec, &hot->servers[who], &result);
		load_result_fini(&result);
	} while (rc == FS_OK && atomic_load(&drive->reads.done) == *reads &&
		 hot->used[who] + 1 < hot->ranges[who].keys && !bench_interrupted());
	return rc;
}

static void add(struct hot *hot, const char *row, const struct load_result *result, uint64_t reads)
{
	struct figures *figures = hot->bench->figures;

	figures_add(figures, STUDY, row, "hot_gets", (double)result->gets);
	figures_add(figures, STUDY, row, "hot_reads", (double)reads);
	figures_add(figures, STUDY, row, "hot_reads_percent", 100 * (double)reads / (double)result->gets);
	figures_add(figures, STUDY, row, "hot_missed", (double)(result->gets - result->hits));
	figures_add(figures, STUDY, row, "hot_gets_s", (double)result->gets / result->seconds);
	figures_add(figures, STUDY, row, "hot_p50_us", (double)hist_quantile(result->get_latency, 0.5) / 1e3);
	figures_add(figures, STUDY, row, "hot_p99_us", (double)hist_quantile(result->get_latency, 0.99) / 1e3);
}

static int measure(struct hot *hot, int who, const struct drive *drive)
{
	struct slowdrive *control = hot->servers[who].drive;
	struct load_spec spec;
	struct load_result result;
	char row[NAME_BYTES];
	uint64_t reads;
	int rc = find_key(hot, who, &reads);

	if (rc != FS_OK)
		return rc;
	row_name(who, drive, row);
	spec = spec_of(hot, who, bench_scaled(hot->bench, GETS, GETS_LEAST));
	atomic_store(&control->reads.latency_us, drive->latency_us);
	rc = stress_run(STUDY, &spec, &hot->servers[who], &result);
	atomic_store(&control->reads.latency_us, 0);
	if (rc == FS_OK)
		add(hot, row, &result, atomic_load(&control->reads.done) - reads);
	load_result_fini(&result);
	return rc;
}

static int start(struct hot *hot, int who)
{
	const struct server_spec spec = {
		.kind = kinds[who],
		.memory_mb = MEMORY_MB,
		.threads = 1,
		.flash_bytes = FLASH_BYTES,
		.extra = kinds[who] == SERVER_FLASHIELD ? stress_ours : stress_theirs,
	};

	return stress_start_filled(hot->bench, STUDY, &spec, &size, &hot->servers[who], &hot->ranges[who],
				   &hot->runs[who]);
}

static void describe(struct figures *figures)
{
	figures_study(
		figures, STUDY, "one object on flash that everybody asks for, extstore beside",
		"One key whose object lies on flash, another in each measurement, is asked for by 200 connections, one get "
		"each, a million times (times the scale) in all. reads: of the emulated drive (tools/slowdrive), which is "
		"as fast as the real one, or takes a millisecond more for each read; the one before, by which the key "
		"was found, is among them. 257 B, -m 64 -t 1. extstore: 16 I/O "
		"threads; its default moves one object in 2000 reads back into memory.");
	figures_column(figures, "hot_gets", "gets", -1);
	figures_column(figures, "hot_reads", "drive reads", -1);
	figures_column(figures, "hot_reads_percent", "reads %", 2);
	figures_column(figures, "hot_missed", "missed", 0);
	figures_column(figures, "hot_gets_s", "gets/s", -1);
	figures_column(figures, "hot_p50_us", "p50 us", -1);
	figures_column(figures, "hot_p99_us", "p99 us", -1);
}

static void conclude(struct figures *figures)
{
	char row[NAME_BYTES], measure[96];

	for (int i = 0; i < DRIVES; i++) {
		snprintf(measure, sizeof(measure), "one hot object on flash, %s: drive reads per get", drives[i].name);
		row_name(0, &drives[i], row);
		figures_target(figures, measure, figures_median(figures, STUDY, row, "hot_reads_percent"),
			       FIGURES_AT_MOST, 1, "%");
		row_name(1, &drives[i], row);
		figures_beside(figures, "  extstore", figures_median(figures, STUDY, row, "hot_reads_percent"), "%");
	}
}

int study_stress_hot(struct bench *bench)
{
	struct hot hot = { .bench = bench };
	int rc = FS_OK;

	describe(bench->figures);
	if (!stress_possible(bench, STUDY))
		return FS_OK;
	for (int who = 0; who < CONTENDERS && rc == FS_OK && !bench_interrupted(); who++)
		rc = start(&hot, who);
	for (unsigned round = 0; round < bench->options->rounds && rc == FS_OK; round++)
		for (int i = 0; i < DRIVES; i++)
			for (int who = 0; who < CONTENDERS && rc == FS_OK && !bench_interrupted(); who++)
				if (hot.runs[who])
					rc = measure(&hot, who, &drives[i]);
	if (rc == FS_OK)
		conclude(bench->figures);
	for (int who = 0; who < CONTENDERS; who++)
		rc = stress_stop(&hot.servers[who], &hot.runs[who], rc);
	return rc;
}
