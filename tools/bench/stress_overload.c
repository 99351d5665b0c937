/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "stress_overload": a drive that does N reads a second is asked for up to 16 x N. What comes out, how long
 * do clients wait, and what does a hit from DRAM wait beside it?
 *
 * The load is paced: x times N keys a second, whatever the answers. It may have as many keys under way as clients
 * ask for in the read timeout, and a quarter more; a server that answers later than that is asked for less. Figures
 * are taken amid the load, when its queues are full.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tools/bench/sample.h"
#include "tools/bench/stress_part.h"

#define STUDY "stress_overload"
#define MEMORY_MB 64
#define FLASH_BYTES (1ull << 30)
#define CONNECTIONS_MOST 8192
#define TIMEOUT_SECONDS 0.2
#define TIMEOUT_OPTION "200ms"
#define LATE_SHARE 1.1 /* of the timeout: what answers may take at the most */
#define UNDER_WAY_SHARE 1.25
#define SETTLE_SECONDS 1.5 /* queues of a server are full by then */
#define WINDOW_SECONDS 3.0
#define THIRDS 3 /* whose median is taken */
#define HOT_FIRST 2000000000ull /* keys in DRAM that are timed beside the load */
#define HOT_KEYS 100
#define HOT_BYTES 16 /* extstore keeps such small ones in DRAM */
#define HOT_RATE 2000
#define PIPELINED_CONNECTIONS 64
#define NAME_BYTES 64

static const struct flash_size size = { .value_bytes = 257, .wanted = 20000, .filler = 40000, .cycles = 12 };

/* How the load is raised. */
static const struct way {
	const char *name;
	unsigned reads_per_second; /* of the drive */
	unsigned keys_per_get;
	unsigned connections; /* then pipelines grow; 0: connections grow */
} ways[] = {
	{ "mget", 5000, 100, 0 },
	{ "get", 1000, 1, 0 },
	{ "pipe", 5000, 1, PIPELINED_CONNECTIONS },
};

static const double factors[] = { 0.5, 1, 2, 4, 8, 16 };

enum { WAYS = sizeof(ways) / sizeof(ways[0]), FACTORS = sizeof(factors) / sizeof(factors[0]), CONTENDERS = 4 };

_Static_assert(THIRDS == 3 && WAYS == 3, "median takes three");

static const struct contender {
	enum server_kind kind;
	unsigned threads;
} contenders[CONTENDERS] = {
	{ SERVER_FLASHIELD, 1 }, { SERVER_EXTSTORE, 1 }, { SERVER_FLASHIELD, 2 }, { SERVER_EXTSTORE, 2 }
};

struct overload {
	struct bench *bench;
	struct server servers[CONTENDERS];
	struct flash_range ranges[CONTENDERS];
	bool runs[CONTENDERS];
	/* of the present round: */
	double alone_us[CONTENDERS][WAYS]; /* p99 of DRAM hits without a load, before each way */
	double beside_us[CONTENDERS][WAYS][FACTORS];
	double hits_s[CONTENDERS][FACTORS]; /* of the present way */
};

static void row_name(int who, const struct way *way, double factor, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%s -t %u %s x%g", server_names[contenders[who].kind], contenders[who].threads,
		 way->name, factor);
}

static void add(struct overload *overload, const char *row, const char *column, double value)
{
	figures_add(overload->bench->figures, STUDY, row, column, value);
}

/* ---- loads ----------------------------------------------------------------------------------- */

static struct load_spec hot_spec(const struct overload *overload, double seconds)
{
	return (struct load_spec){
		.kind = LOAD_GET,
		.order = LOAD_UNIFORM,
		.first_key = HOT_FIRST,
		.keys = HOT_KEYS,
		.value_bytes = HOT_BYTES,
		.connections = 1,
		.seconds = seconds,
		.rate = HOT_RATE,
		.cpu = overload->bench->options->load_cpu,
		.urgent = true,
	};
}

static struct load_spec flash_spec(const struct overload *overload, int who, const struct way *way, double factor)
{
	double rate = factor * way->reads_per_second;
	double under_way = ceil(rate * TIMEOUT_SECONDS * UNDER_WAY_SHARE);
	unsigned connections = way->connections ? way->connections : (unsigned)ceil(under_way / way->keys_per_get);

	return (struct load_spec){
		.kind = LOAD_GET,
		.order = LOAD_UNIFORM,
		.first_key = overload->ranges[who].first_key,
		.keys = overload->ranges[who].keys,
		.value_bytes = size.value_bytes,
		.connections = connections,
		.pipeline = way->connections ? (unsigned)ceil(under_way / connections) : 1,
		.keys_per_get = way->keys_per_get,
		.seconds = 1e6, /* until it is stopped */
		.rate = rate,
		.timed_from_sending = true,
		.cpu = overload->bench->options->load_cpu,
	};
}

static double quantile_us(const struct hist *hist, double quantile)
{
	return atomic_load(&hist->count) ? (double)hist_quantile(hist, quantile) / 1e3 : NAN;
}

/* What is set lies in DRAM, and stays there while nothing else is set. */
static int set_hot(struct overload *overload, int who)
{
	struct load_spec spec = hot_spec(overload, 0);
	struct load_result result;
	int rc;

	spec.kind = LOAD_SET;
	spec.order = LOAD_SEQUENTIAL;
	spec.operations = HOT_KEYS;
	spec.rate = 0;
	rc = stress_run(STUDY, &spec, &overload->servers[who], &result);
	load_result_fini(&result);
	return rc;
}

static int time_third(struct overload *overload, int who, double *hot_us)
{
	struct load_spec spec = hot_spec(overload, sample_seconds(overload->bench, WINDOW_SECONDS) / THIRDS);
	struct load_result result;
	int rc = stress_run(STUDY, &spec, &overload->servers[who], &result);

	*hot_us = rc == FS_OK ? quantile_us(result.get_latency, 0.99) : NAN;
	if (rc == FS_OK && result.hits < result.gets)
		figures_note(overload->bench->figures, STUDY, "%s: some gets of hot keys were misses.",
			     server_names[contenders[who].kind]);
	load_result_fini(&result);
	return rc;
}

static double median(const double of[3])
{
	return fmax(fmin(of[0], of[1]), fmin(fmax(of[0], of[1]), of[2]));
}

/* p99 of a third, in the median: what disturbs the machine for a moment is no figure of the server's. */
static int time_hot(struct overload *overload, int who, double *hot_us)
{
	double third[THIRDS];
	int rc = FS_OK;

	*hot_us = NAN;
	for (int i = 0; i < THIRDS && rc == FS_OK; i++)
		rc = time_third(overload, who, &third[i]);
	if (rc == FS_OK)
		*hot_us = median(third);
	return rc;
}

/* ---- a load point ---------------------------------------------------------------------------- */

/* What both sides count of a load point. */
struct point {
	struct stress_counts before, after;
	struct load_result result;
};

/*
 * Ours counts a flash hit when it is answered. Extstore counts a read that it then has no memory to answer from, so
 * its hits are the client's; its queues are as full when the load is stopped, so that what is answered after that
 * comes at the same rate.
 */
static double hits_rate(int who, const struct point *point)
{
	return contenders[who].kind == SERVER_FLASHIELD ? stress_rate(&point->before, &point->after, STRESS_FLASH_HITS)
							: (double)point->result.hits / point->result.seconds;
}

static double misses_rate(int who, const struct point *point)
{
	const struct load_result *result = &point->result;

	return contenders[who].kind == SERVER_FLASHIELD ? stress_rate(&point->before, &point->after, STRESS_MISSES)
							: (double)(result->gets - result->hits) / result->seconds;
}

/* Some keys of the range lie in DRAM: where nothing else is hit, their latency is not that of a flash hit. */
static double hit_ms(const struct point *point, double hits_s, double quantile)
{
	double all_s = (double)point->result.hits / point->result.seconds;

	return hits_s > all_s / 2 ? quantile_us(point->result.hit_latency, quantile) / 1e3 : NAN;
}

static void add_point(struct overload *overload, int who, const char *row, int factor, const struct point *point)
{
	const struct stress_counts *before = &point->before, *after = &point->after;
	double hits_s = hits_rate(who, point), misses_s = misses_rate(who, point);

	overload->hits_s[who][factor] = hits_s;
	add(overload, row, "asked_s", hits_s + misses_s);
	add(overload, row, "flash_hits_s", hits_s);
	add(overload, row, "misses_s", misses_s);
	add(overload, row, "hit_p50_ms", hit_ms(point, hits_s, 0.5));
	add(overload, row, "hit_p99_ms", hit_ms(point, hits_s, 0.99));
	add(overload, row, "all_p99_ms", quantile_us(point->result.get_latency, 0.99) / 1e3);
	add(overload, row, "drive_reads_s", stress_rate(before, after, STRESS_DRIVE_READS));
	add(overload, row, "shed_s", stress_rate(before, after, STRESS_SHED));
	add(overload, row, "shared_s", stress_rate(before, after, STRESS_SHARED));
	add(overload, row, "server_percent", 100 * stress_rate(before, after, STRESS_CPU));
	if (point->result.errors)
		figures_note(overload->bench->figures, STUDY, "%s: commands failed, the first with: %s", row,
			     point->result.first_error);
}

/* Beside a load that runs. */
static int time_beside(struct overload *overload, int who, const struct load *load, double *hot_us, struct point *point)
{
	int rc;

	stress_count(&overload->servers[who], &point->before);
	rc = time_hot(overload, who, hot_us);
	stress_count(&overload->servers[who], &point->after);
	if (!load_running(load))
		*hot_us = NAN; /* what broke the load off is told when it is joined */
	return rc;
}

static int measure_point(struct overload *overload, int who, const struct way *way, int factor)
{
	double *hot_us = &overload->beside_us[who][way - ways][factor];
	struct load_spec spec = flash_spec(overload, who, way, factors[factor]);
	struct server *server = &overload->servers[who];
	struct point point;
	char row[NAME_BYTES];
	struct load *load;
	int rc, joined;

	row_name(who, way, factors[factor], row);
	rc = set_hot(overload, who);
	if (rc != FS_OK)
		return rc;
	atomic_store(&server->drive->reads.per_second, way->reads_per_second);
	rc = load_start(&load, &spec, server);
	if (rc != FS_OK)
		return rc;
	stress_sleep(SETTLE_SECONDS);
	load_forget(load);
	rc = time_beside(overload, who, load, hot_us, &point);
	load_stop(load);
	joined = load_join(load, &point.result);
	if (joined == FS_OK && point.result.wrong)
		joined = FS_ECORRUPT;
	if (rc == FS_OK && joined == FS_OK) {
		add(overload, row, "dram_p99_us", *hot_us);
		add_point(overload, who, row, factor, &point);
	}
	load_result_fini(&point.result);
	stress_drain(server);
	return rc != FS_OK ? rc : joined;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Of the best of the same server, way and round. */
static void add_shares(struct overload *overload, int who, const struct way *way)
{
	double best = 0;
	char row[NAME_BYTES];

	for (int i = 0; i < FACTORS; i++)
		best = fmax(best, overload->hits_s[who][i]);
	for (int i = 0; i < FACTORS; i++) {
		row_name(who, way, factors[i], row);
		add(overload, row, "share_percent", 100 * overload->hits_s[who][i] / best);
	}
}

/* The hot keys' latency while nothing else is asked for; they must be where they are to be. */
static int measure_alone(struct overload *overload, int who, const struct way *way)
{
	struct stress_counts before, after;
	int rc = set_hot(overload, who);

	if (rc != FS_OK)
		return rc;
	stress_count(&overload->servers[who], &before);
	rc = time_hot(overload, who, &overload->alone_us[who][way - ways]);
	stress_count(&overload->servers[who], &after);
	if (stress_gain(&before, &after, STRESS_FLASH_HITS) > 0)
		figures_note(overload->bench->figures, STUDY, "Some hot keys of %s lie on flash.",
			     server_names[contenders[who].kind]);
	return rc;
}

/* The servers take turns, in the opposite order in each other round. */
static int measure_way(struct overload *overload, const struct way *way, unsigned round)
{
	int rc = FS_OK;

	for (int who = 0; who < CONTENDERS && rc == FS_OK; who++)
		if (overload->runs[who])
			rc = measure_alone(overload, who, way);
	for (int i = 0; i < FACTORS && rc == FS_OK && !bench_interrupted(); i++)
		for (int turn = 0; turn < CONTENDERS && rc == FS_OK; turn++) {
			int who = round % 2 ? CONTENDERS - 1 - turn : turn;

			if (overload->runs[who])
				rc = measure_point(overload, who, way, i);
		}
	for (int who = 0; who < CONTENDERS && rc == FS_OK && !bench_interrupted(); who++)
		if (overload->runs[who])
			add_shares(overload, who, way);
	return rc;
}

/* To what it was without a load, in the median of the round. */
static void add_ratios(struct overload *overload, int who)
{
	double alone_us = median(overload->alone_us[who]);
	char row[NAME_BYTES];

	for (int way = 0; way < WAYS; way++)
		for (int i = 0; i < FACTORS; i++) {
			row_name(who, &ways[way], factors[i], row);
			add(overload, row, "dram_ratio", overload->beside_us[who][way][i] / alone_us);
		}
}

static int measure_round(struct overload *overload, unsigned round)
{
	struct bench *bench = overload->bench;
	int rc = FS_OK;

	for (int way = 0; way < WAYS && rc == FS_OK && !bench_interrupted(); way++) {
		bench_progress(bench, STUDY ": round %u of %u, %s", round + 1, bench->options->rounds, ways[way].name);
		rc = measure_way(overload, &ways[way], round);
	}
	for (int who = 0; who < CONTENDERS && rc == FS_OK && !bench_interrupted(); who++)
		if (overload->runs[who])
			add_ratios(overload, who);
	return rc;
}

/* ---- the study ------------------------------------------------------------------------------- */

static int start(struct overload *overload, int who)
{
	static const char *const ours[] = { "--admission", "read-once", "--flash-read-timeout", TIMEOUT_OPTION, NULL };
	bool is_ours = contenders[who].kind == SERVER_FLASHIELD;
	const struct server_spec spec = {
		.kind = contenders[who].kind,
		.memory_mb = MEMORY_MB,
		.threads = contenders[who].threads,
		.max_connections = CONNECTIONS_MOST,
		.flash_bytes = FLASH_BYTES,
		.extra = is_ours ? ours : stress_theirs,
	};

	return stress_start_filled(overload->bench, STUDY, &spec, &size, &overload->servers[who],
				   &overload->ranges[who], &overload->runs[who]);
}

static void describe(struct figures *figures)
{
	figures_study(
		figures, STUDY, "a drive that does fewer reads than are asked for, extstore beside",
		"The drive is emulated (tools/slowdrive): it does N reads a second. xF: F x N keys a second are asked for, "
		"paced, drawn uniformly from those on flash. mget: N = 5000, multigets of 100; get: N = 1000, single gets; "
		"both have as many connections as have F x N x 0.25 s keys under way. pipe: N = 5000, 64 connections, whose "
		"pipelines have as many. Where all connections wait, less is asked for. "
		"257 B values, keys of 30 B. -m 64, --flash-read-timeout 200ms, the server on one CPU; extstore has 16 I/O "
		"threads and no timeout. hit p50, p99: of commands with at least one hit, where most hits are from flash; all: of "
		"all commands, from when they are sent. "
		"share: of the best flash hits/s of the same server and way. shed, shared: flash_reads_shed and "
		"flash_reads_shared. DRAM p99: of 2000 gets a second of objects in memory, on a connection beside, the median of "
		"those of three thirds of the time; ratio: to the same without a flash load, the median of three measurements of "
		"the round.");
	figures_column(figures, "asked_s", "asked /s", -1);
	figures_column(figures, "flash_hits_s", "flash hits/s", -1);
	figures_column(figures, "share_percent", "share %", 0);
	figures_column(figures, "hit_p50_ms", "hit p50 ms", -1);
	figures_column(figures, "hit_p99_ms", "hit p99 ms", -1);
	figures_column(figures, "all_p99_ms", "all p99 ms", -1);
	figures_column(figures, "drive_reads_s", "drive reads/s", -1);
	figures_column(figures, "misses_s", "misses /s", -1);
	figures_column(figures, "shed_s", "shed /s", -1);
	figures_column(figures, "shared_s", "shared /s", -1);
	figures_column(figures, "server_percent", "server CPU %", 0);
	figures_column(figures, "dram_p99_us", "DRAM p99 us", 0);
	figures_column(figures, "dram_ratio", "DRAM ratio", 2);
}

/* The worst median of a kind of server over all ways and threads, from a factor on. */
static double worst(const struct figures *figures, enum server_kind kind, int from, const char *column, bool least)
{
	double value = NAN;
	char row[NAME_BYTES];

	for (int who = 0; who < CONTENDERS; who++)
		for (int way = 0; way < WAYS && contenders[who].kind == kind; way++)
			for (int i = from; i < FACTORS; i++) {
				double of_rounds;

				row_name(who, &ways[way], factors[i], row);
				of_rounds = figures_median(figures, STUDY, row, column);
				value = least ? fmin(value, of_rounds) : fmax(value, of_rounds);
			}
	return value;
}

static void conclude(struct figures *figures)
{
	figures_target(figures, "overload x16: flash hits/s, of the best (worst case)",
		       worst(figures, SERVER_FLASHIELD, FACTORS - 1, "share_percent", true), FIGURES_AT_LEAST, 90, "%");
	figures_beside(figures, "  extstore", worst(figures, SERVER_EXTSTORE, FACTORS - 1, "share_percent", true), "%");
	figures_target(figures, "overload: p99 of all answers (worst case)",
		       worst(figures, SERVER_FLASHIELD, 0, "all_p99_ms", false), FIGURES_AT_MOST,
		       1000 * TIMEOUT_SECONDS * LATE_SHARE, "ms");
	figures_beside(figures, "  extstore", worst(figures, SERVER_EXTSTORE, 0, "all_p99_ms", false), "ms");
	figures_target(figures, "overload: p99 of DRAM hits, against no flash load (worst case)",
		       worst(figures, SERVER_FLASHIELD, 0, "dram_ratio", false), FIGURES_AT_MOST, 2, "x");
	figures_beside(figures, "  extstore", worst(figures, SERVER_EXTSTORE, 0, "dram_ratio", false), "x");
}

int study_stress_overload(struct bench *bench)
{
	struct overload overload = { .bench = bench };
	int rc = FS_OK;

	describe(bench->figures);
	if (!stress_possible(bench, STUDY))
		return FS_OK;
	for (int who = 0; who < CONTENDERS && rc == FS_OK && !bench_interrupted(); who++)
		rc = start(&overload, who);
	for (unsigned round = 0; round < bench->options->rounds && rc == FS_OK && !bench_interrupted(); round++)
		rc = measure_round(&overload, round);
	if (rc == FS_OK)
		conclude(bench->figures);
	for (int who = 0; who < CONTENDERS; who++)
		rc = stress_stop(&overload.servers[who], &overload.runs[who], rc);
	return rc;
}
