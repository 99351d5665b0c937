/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "pause": what the cleaner does to hits. Hits on hot keys at a fixed rate far below what the server can
 * do, alone and beside slow sets of new keys; on a server with flash, where each segment that these fill takes
 * the place of one that has to be reclaimed, and on one without, where they only evict: that is what the sets
 * themselves do to the hits. One worker, which shares its CPU with the cleaner.
 *
 * The load runs in short windows; one in which a segment was under way at its beginning, at its end or wholly
 * within counts as such. The hot keys' values are larger than those that are set: a size group of its own, of
 * which never enough wait to fill a segment, so that they stay in DRAM although they are worth flash.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/bench/sample.h"

#define STUDY "pause"
#define MEMORY_MB 128
#define FLASH_BYTES (256ull << 20)
#define HOT_KEYS 1000
#define HOT_BYTES 2100
#define HIT_CONNECTIONS 50
#define RATE_SHARE 0.2 /* of the hits that the server can do */
#define NEW_FIRST 1000000000ull
#define NEW_BYTES 257
#define NEW_CONNECTIONS 4
#define NEW_RATE 20000.0 /* sets and gets per second, half of each */
#define FILL_SHARE 1.1 /* of flash and memory, in objects of the background load */
#define RECORD_BYTES 319
#define FILL_CONNECTIONS 16
#define FILL_PIPELINE 8
#define WINDOW_SECONDS 0.2
#define CASE_SECONDS 5.0

enum { FLASH, DRAM, SERVERS };
enum { ALONE, ALONE_DRAM, SETS_DRAM, UNDER_WAY, BETWEEN, ROWS };
static const char *const row_names[ROWS] = { "hits alone", "hits alone, no flash", "hits + sets, no flash",
					     "hits + sets, a segment under way", "hits + sets, between segments" };

struct pause {
	struct bench *bench;
	struct server servers[SERVERS];
	unsigned started;
	double rate;
	uint64_t next_key; /* of new ones */
	unsigned windows[2]; /* with sets on flash: with a segment under way, and all */
};

/* What the load saw in the windows of a row, in one round. */
struct seen {
	struct hist *latency;
	double seconds;
	uint64_t hits;
};

/* ---- loads ----------------------------------------------------------------------------------- */

static struct load_spec hits_spec(const struct pause *pause, double seconds)
{
	return (struct load_spec){
		.kind = LOAD_GET,
		.order = LOAD_UNIFORM,
		.keys = HOT_KEYS,
		.value_bytes = HOT_BYTES,
		.connections = HIT_CONNECTIONS,
		.seconds = seconds,
		.rate = pause->rate,
		.cpu = pause->bench->options->load_cpu,
	};
}

static struct load_spec sets_spec(struct pause *pause, uint64_t keys, double rate)
{
	struct load_spec spec = {
		.kind = LOAD_SET_GET,
		.first_key = NEW_FIRST + pause->next_key,
		.keys = keys,
		.value_bytes = NEW_BYTES,
		.connections = NEW_CONNECTIONS,
		.operations = 2 * keys,
		.rate = rate,
		.cpu = pause->bench->options->load_cpu,
	};

	pause->next_key += keys;
	return spec;
}

static int judged(const char *what, int rc, const struct load_result *result)
{
	if (rc == FS_OK && (result->wrong || result->errors)) {
		fprintf(stderr, "flashield-bench: pause: %s: %" PRIu64 " wrong values, %" PRIu64 " errors %s\n", what,
			result->wrong, result->errors, result->first_error);
		rc = FS_ECORRUPT;
	}
	return rc;
}

static int run(const char *what, const struct load_spec *spec, struct server *server)
{
	struct load_result result;
	int rc = judged(what, load_run(spec, server, &result), &result);

	load_result_fini(&result);
	return rc;
}

/* ---- windows --------------------------------------------------------------------------------- */

struct progress {
	double written, plan_bytes;
};

static struct progress progress_of(struct server *server)
{
	return (struct progress){ server_stat(server, "flash", "segments_written"),
				  server_stat(server, "flash", "plan_bytes") };
}

static int measure_window(struct pause *pause, struct server *server, struct seen *seen)
{
	struct load_spec spec = hits_spec(pause, WINDOW_SECONDS);
	struct load_result result;
	int rc = judged("hits", load_run(&spec, server, &result), &result);

	if (rc == FS_OK) {
		hist_merge(seen->latency, result.get_latency);
		seen->seconds += result.seconds;
		seen->hits += result.hits;
		if (result.hits < result.gets)
			figures_note(pause->bench->figures, STUDY, "Some hits were misses.");
	}
	load_result_fini(&result);
	return rc;
}

static double quantile_us(const struct seen *seen, double quantile)
{
	return (double)hist_quantile(seen->latency, quantile) / 1e3;
}

static void add_seen(struct pause *pause, int row, const struct seen *seen)
{
	struct figures *figures = pause->bench->figures;

	if (seen->hits == 0)
		return;
	figures_add(figures, STUDY, row_names[row], "ops_s", (double)seen->hits / seen->seconds);
	figures_add(figures, STUDY, row_names[row], "p50_us", quantile_us(seen, 0.5));
	figures_add(figures, STUDY, row_names[row], "p99_us", quantile_us(seen, 0.99));
	figures_add(figures, STUDY, row_names[row], "p999_us", quantile_us(seen, 0.999));
	figures_add(figures, STUDY, row_names[row], "max_us", quantile_us(seen, 1));
}

/* Windows into one row, or, with sets on flash, each into the one that it belongs to. */
static int measure_windows(struct pause *pause, struct server *server, int row)
{
	unsigned windows = (unsigned)ceil(sample_seconds(pause->bench, CASE_SECONDS) / WINDOW_SECONDS);
	struct seen seen[ROWS] = { { 0 } };
	int rc = FS_OK;

	for (int i = 0; i < ROWS; i++)
		seen[i].latency = hist_create();
	for (unsigned i = 0; i < windows && rc == FS_OK && !bench_interrupted(); i++) {
		struct seen apart = { .latency = hist_create() };
		struct progress before = { 0 }, after = { 0 };
		int into = row;

		if (row == UNDER_WAY)
			before = progress_of(server);
		rc = measure_window(pause, server, &apart);
		if (row == UNDER_WAY) {
			after = progress_of(server);
			if (before.plan_bytes == 0 && after.plan_bytes == 0 && before.written == after.written)
				into = BETWEEN;
			pause->windows[0] += into == UNDER_WAY;
			pause->windows[1]++;
		}
		hist_merge(seen[into].latency, apart.latency);
		seen[into].seconds += apart.seconds;
		seen[into].hits += apart.hits;
		hist_destroy(apart.latency);
	}
	for (int i = 0; i < ROWS; i++) {
		if (rc == FS_OK)
			add_seen(pause, i, &seen[i]);
		hist_destroy(seen[i].latency);
	}
	return rc;
}

/* The same beside sets that go on all the while. */
static int measure_beside_sets(struct pause *pause, struct server *server, int row)
{
	struct load_spec spec = sets_spec(pause, 1u << 30, NEW_RATE);
	struct load_result result;
	struct load *load;
	int rc = load_start(&load, &spec, server), joined;

	if (rc != FS_OK)
		return rc;
	rc = measure_windows(pause, server, row);
	load_stop(load);
	joined = judged("sets", load_join(load, &result), &result);
	load_result_fini(&result);
	return rc != FS_OK ? rc : joined;
}

static int measure_round(struct pause *pause)
{
	struct server *flash = &pause->servers[FLASH], *dram = &pause->servers[DRAM];
	int rc = measure_windows(pause, flash, ALONE);

	if (rc == FS_OK)
		rc = measure_beside_sets(pause, flash, UNDER_WAY);
	if (rc == FS_OK)
		rc = measure_windows(pause, dram, ALONE_DRAM);
	if (rc == FS_OK)
		rc = measure_beside_sets(pause, dram, SETS_DRAM);
	return rc;
}

/* ---- the study ------------------------------------------------------------------------------- */

/* New keys first, so that flash is full; then the hot ones, which nothing has pushed out yet when they are
   read. */
static int fill(struct pause *pause, struct server *server)
{
	uint64_t bytes = server->spec.flash_bytes + (server->spec.memory_mb << 20);
	struct load_spec hot = hits_spec(pause, 0);
	struct load_spec new = sets_spec(pause, (uint64_t)(FILL_SHARE * (double)bytes / RECORD_BYTES), 0);
	int rc;

	new.connections = FILL_CONNECTIONS;
	new.pipeline = FILL_PIPELINE;
	hot.kind = LOAD_SET_GET;
	hot.order = LOAD_SEQUENTIAL;
	hot.operations = 2 * HOT_KEYS;
	rc = run("filling", &new, server);
	return rc == FS_OK ? run("hot keys", &hot, server) : rc;
}

static int start(struct pause *pause, int which)
{
	const struct server_spec spec = {
		.kind = SERVER_FLASHIELD,
		.memory_mb = MEMORY_MB,
		.threads = 1,
		.flash_bytes = which == FLASH ? FLASH_BYTES : 0,
	};
	int rc = server_start(&pause->servers[which], pause->bench, &spec);

	if (rc != FS_OK)
		return rc;
	pause->started++;
	bench_progress(pause->bench, "pause: filling %s", which == FLASH ? "flash" : "DRAM");
	return fill(pause, &pause->servers[which]);
}

/* The rate of hits: a share of what comes out without one. */
static int find_rate(struct pause *pause)
{
	struct load_spec spec = hits_spec(pause, 1);
	struct load_result result;
	int rc = load_run(&spec, &pause->servers[FLASH], &result);

	if (rc == FS_OK)
		pause->rate = RATE_SHARE * (double)result.operations / result.seconds;
	load_result_fini(&result);
	return rc;
}

static void describe(struct figures *figures)
{
	figures_study(
		figures, STUDY, "latency of DRAM hits while segments are written and reclaimed",
		"Hits: 50 connections, one get at a time, 2100 B values, at 20 % of the rate that the server "
		"reaches. Sets: 10,000 new keys per second of 257 B, each read once. -m 128 -t 1, 256 MiB of flash, "
		"full; server and cleaner on one CPU. Windows of 0.2 s; under way: a segment was being gathered, "
		"planned, written or committed, or the one in its place reclaimed, in some part of the window.");
	sample_columns(figures);
	figures_column(figures, "max_us", "max us", 0);
}

static void conclude(const struct pause *pause)
{
	struct figures *figures = pause->bench->figures;

	figures_note(figures, STUDY, "%u of %u windows with sets on flash had a segment under way.", pause->windows[0],
		     pause->windows[1]);
	figures_target(figures, "p99 of DRAM hits while a segment is written and one reclaimed, against idle",
		       figures_ratio(figures, STUDY, row_names[UNDER_WAY], row_names[ALONE], "p99_us"), FIGURES_AT_MOST,
		       2, "x");
	figures_beside(figures, "  the same sets without flash, against idle",
		       figures_ratio(figures, STUDY, row_names[SETS_DRAM], row_names[ALONE_DRAM], "p99_us"), "x");
}

int study_pause(struct bench *bench)
{
	struct pause pause = { .bench = bench };
	int rc;

	describe(bench->figures);
	rc = start(&pause, FLASH);
	if (rc == FS_OK)
		rc = start(&pause, DRAM);
	if (rc == FS_OK)
		rc = find_rate(&pause);
	for (unsigned round = 0; round < bench->options->rounds && rc == FS_OK && !bench_interrupted(); round++) {
		bench_progress(bench, "pause: round %u of %u", round + 1, bench->options->rounds);
		rc = measure_round(&pause);
	}
	if (rc == FS_OK)
		conclude(&pause);
	for (unsigned i = 0; i < pause.started; i++) {
		int stopped = server_stop(&pause.servers[i]);

		rc = rc != FS_OK ? rc : stopped;
	}
	return rc;
}
