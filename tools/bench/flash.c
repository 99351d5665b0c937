/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "flash": hits that are served from flash, beside DRAM hits of the same daemon, raw reads of the
 * same file, and extstore, the page cache cold everywhere.
 *
 *   flash hit  <=  DRAM hit + 1.3 x raw read      server CPU, as many reads under way
 *   flash hit  <=  DRAM hit + raw read + 20 us    median latency, one connection
 *
 * All servers run all the while and idle but for the one that is loaded; the contenders of a case take
 * turns within a round, in the opposite order in the next one.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/bench/flash_part.h"
#include "tools/bench/raw.h"
#include "tools/bench/sample.h"

#define CASE_SECONDS 0.8
#define MISS_SECONDS 0.5
#define WARMUP_SHARE 0.1
#define RAW_PROBE_READS 500
#define RAW_SHARE 1.3
#define ABSENT 1000000000000ull /* keys from here on are never set */
#define NAME_BYTES 64

static const struct flash_size sizes[] = {
	{ "257 B", .value_bytes = 257, .wanted = 20000, .filler = 40000, .cycles = 24, .dram_keys = 80000 },
	{ "4 KB", .value_bytes = 4096, .wanted = 2000, .filler = 4000, .cycles = 20, .dram_keys = 6000 },
};

static const struct flash_case {
	const char *name;
	unsigned connections, keys_per_get;
} cases[] = {
	{ "c1", 1, 1 },
	{ "c16", 16, 1 },
	{ "c50", 50, 1 },
	{ "mget c4", 4, 100 },
};
enum { CASES = sizeof(cases) / sizeof(cases[0]), MAIN_CASE = 2 };

struct measured {
	double cpu_us, ops_s, p50_us, p99_us; /* NaN: not measured */
	double server_percent, load_percent; /* of a CPU; of raw reads, their thread's and nothing */
};

/* ---- one measurement ------------------------------------------------------------------------- */

static void row_name(const struct flash *flash, const struct flash_case *one, const char *who, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%s %s%s%s", flash->size->name, one->name, *who ? " " : "", who);
}

static void add_measured(const struct flash *flash, const char *row, const struct measured *measured)
{
	struct figures *figures = flash->bench->figures;

	figures_add(figures, FLASH_STUDY, row, "cpu_us", measured->cpu_us);
	figures_add(figures, FLASH_STUDY, row, "ops_s", measured->ops_s);
	figures_add(figures, FLASH_STUDY, row, "p50_us", measured->p50_us);
	figures_add(figures, FLASH_STUDY, row, "p99_us", measured->p99_us);
	figures_add(figures, FLASH_STUDY, row, "server_percent", measured->server_percent);
	if (!isnan(measured->load_percent))
		figures_add(figures, FLASH_STUDY, row, "load_percent", measured->load_percent);
}

static struct load_spec spec_of(const struct flash *flash, const struct flash_case *one, enum contender who,
				unsigned round)
{
	return (struct load_spec){
		.kind = LOAD_GET,
		.order = LOAD_UNIFORM,
		.first_key = flash->ranges[who].first_key,
		.keys = flash->ranges[who].keys,
		.value_bytes = flash->size->value_bytes,
		.connections = one->connections,
		.keys_per_get = one->keys_per_get,
		.seconds = sample_seconds(flash->bench, CASE_SECONDS),
		.warmup_share = WARMUP_SHARE,
		.seed = round + 1,
		.cpu = flash->bench->options->load_cpu,
	};
}

static struct measured measured_of(const struct load_result *result)
{
	double operations = (double)result->operations;

	return (struct measured){
		.cpu_us = (double)result->server_cpu_ns / 1e3 / operations,
		.ops_s = operations / result->seconds,
		.p50_us = (double)hist_quantile(result->get_latency, 0.5) / 1e3,
		.p99_us = (double)hist_quantile(result->get_latency, 0.99) / 1e3,
		.server_percent = (double)result->server_cpu_ns / 1e7 / result->seconds,
		.load_percent = (double)result->load_cpu_ns / 1e7 / result->seconds,
	};
}

/* Where the hits came from: a measurement of something else is noted as such. */
static void add_sources(struct flash *flash, enum contender who, const char *row, const struct load_result *result,
			const struct flash_counts *counts)
{
	struct figures *figures = flash->bench->figures;
	double share = counts->flash_hits / counts->hits;
	bool meant = who == DRAM ? share <= 1 - FLASH_SHARE_LEAST : share >= FLASH_SHARE_LEAST;

	figures_add(figures, FLASH_STUDY, row, "hit_percent", 100 * (double)result->hits / (double)result->gets);
	figures_add(figures, FLASH_STUDY, row, "flash_percent", 100 * share);
	if (who != DRAM)
		figures_add(figures, FLASH_STUDY, row, "disk_reads", counts->disk_bytes / 4096 / counts->flash_hits);
	if (!meant)
		figures_note(figures, FLASH_STUDY, "%s: hits were not from where they should be (see flash %%).", row);
	if (result->errors)
		figures_note(figures, FLASH_STUDY, "%s: commands failed, the first with: %s", row, result->first_error);
	if (who != OURS)
		return;
	flash->total.reads += counts->reads;
	flash->total.pages += counts->pages;
	flash->total.reads_on_hit += counts->reads_on_hit;
	flash->total.lookups_hit += counts->lookups_hit;
}

static int measure_server(struct flash *flash, const struct flash_case *one, enum contender who, unsigned round,
			  struct measured *out)
{
	struct load_spec spec = spec_of(flash, one, who, round);
	struct flash_counts counts;
	struct load_result result;
	char row[NAME_BYTES];
	int rc = flash_load(flash->bench, &spec, &flash->servers[who], &result, &counts);

	if (rc == FS_OK && result.operations > 0) {
		row_name(flash, one, flash_names[who], row);
		*out = measured_of(&result);
		add_measured(flash, row, out);
		add_sources(flash, who, row, &result, &counts);
	}
	load_result_fini(&result);
	return rc;
}

/* Of the part of our file that holds segments, with as many pages per read as ours took so far. */
static int make_raw(struct flash *flash, const struct flash_case *one, unsigned round, struct raw_spec *spec)
{
	struct server *server = &flash->servers[OURS];
	struct flash_counts counts;
	double bytes = server_stat(server, "flash", "segments_used") * server_stat(server, "flash", "segment_bytes");

	flash_count(server, &counts);
	if (!(bytes > 0 && counts.pages > 0 && counts.reads > 0))
		return FS_ESYS; /* it has ended */
	*spec = (struct raw_spec){
		.path = server->flash_path,
		.bytes = (uint64_t)bytes,
		.pages = (unsigned)lround(counts.pages / counts.reads),
		.depth = one->connections * one->keys_per_get,
		.reads = RAW_PROBE_READS,
		.cpu = flash->bench->options->server_cpu,
		.seed = round + 1,
	};
	return FS_OK;
}

/* A short run first tells how many reads fill the time. */
static int measure_raw(struct flash *flash, const struct flash_case *one, unsigned round, struct measured *out)
{
	struct raw_result result;
	struct raw_spec spec;
	char row[NAME_BYTES];
	int rc = make_raw(flash, one, round, &spec);

	if (rc == FS_OK)
		rc = raw_read(&spec, &result);
	if (rc != FS_OK)
		return rc;
	spec.reads += (uint64_t)(RAW_PROBE_READS / result.seconds * sample_seconds(flash->bench, CASE_SECONDS));
	raw_result_fini(&result);
	rc = raw_read(&spec, &result);
	if (rc != FS_OK)
		return rc;
	row_name(flash, one, flash_names[RAW], row);
	*out = (struct measured){
		.cpu_us = (double)result.cpu_ns / 1e3 / (double)result.reads,
		.ops_s = (double)result.reads / result.seconds,
		.p50_us = (double)hist_quantile(result.latency, 0.5) / 1e3,
		.p99_us = (double)hist_quantile(result.latency, 0.99) / 1e3,
		.server_percent = (double)result.cpu_ns / 1e7 / result.seconds,
		.load_percent = NAN,
	};
	add_measured(flash, row, out);
	figures_add(flash->bench->figures, FLASH_STUDY, row, "pages", spec.pages);
	raw_result_fini(&result);
	return FS_OK;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Within a round, in a row of their own. */
static void add_ratios(const struct flash *flash, const struct flash_case *one,
		       const struct measured measured[CONTENDERS])
{
	struct figures *figures = flash->bench->figures;
	const struct measured *ours = &measured[OURS], *dram = &measured[DRAM], *raw = &measured[RAW];
	char row[NAME_BYTES];

	row_name(flash, one, "", row);
	figures_add(figures, FLASH_STUDY, row, "cpu_share", ours->cpu_us / (dram->cpu_us + RAW_SHARE * raw->cpu_us));
	figures_add(figures, FLASH_STUDY, row, "cpu_beyond_us", ours->cpu_us - dram->cpu_us - raw->cpu_us);
	if (one->keys_per_get == 1)
		figures_add(figures, FLASH_STUDY, row, "beyond_us", ours->p50_us - dram->p50_us - raw->p50_us);
	if (flash->runs[EXTSTORE])
		figures_add(figures, FLASH_STUDY, row, "ops_ratio", ours->ops_s / measured[EXTSTORE].ops_s);
	if (flash->runs[THREADED])
		figures_add(figures, FLASH_STUDY, row, "threaded_ratio", ours->ops_s / measured[THREADED].ops_s);
}

static int measure_case(struct flash *flash, const struct flash_case *one, unsigned round)
{
	struct measured measured[CONTENDERS];
	int rc = FS_OK;

	for (int i = 0; i < CONTENDERS; i++)
		measured[i] = (struct measured){ NAN, NAN, NAN, NAN, NAN, NAN };
	for (int i = 0; i < CONTENDERS && rc == FS_OK && !bench_interrupted(); i++) {
		enum contender who = (enum contender)(round % 2 ? CONTENDERS - 1 - i : i);

		if (who == RAW)
			rc = measure_raw(flash, one, round, &measured[who]);
		else if (flash->runs[who])
			rc = measure_server(flash, one, who, round, &measured[who]);
	}
	if (rc == FS_OK && !bench_interrupted())
		add_ratios(flash, one, measured);
	return rc;
}

static int measure_misses(struct flash *flash, unsigned round)
{
	struct load_spec spec = spec_of(flash, &cases[MAIN_CASE], OURS, round);
	struct flash_counts counts;
	struct load_result result;
	char row[NAME_BYTES];
	int rc;

	spec.first_key = ABSENT;
	spec.expect_misses = true;
	spec.seconds = sample_seconds(flash->bench, MISS_SECONDS);
	rc = flash_load(flash->bench, &spec, &flash->servers[OURS], &result, &counts);
	if (rc == FS_OK && result.operations > 0) {
		struct measured measured = measured_of(&result);

		snprintf(row, sizeof(row), "%s c50 miss flashield", flash->size->name);
		add_measured(flash, row, &measured);
		flash->total.reads_on_miss += counts.reads_on_miss;
		flash->total.lookups_miss += counts.lookups_miss;
	}
	load_result_fini(&result);
	return rc;
}

static int measure(struct flash *flash)
{
	int rc = FS_OK;

	for (unsigned round = 0; round < flash->bench->options->rounds; round++) {
		bench_progress(flash->bench, "flash: %s, round %u of %u", flash->size->name, round + 1,
			       flash->bench->options->rounds);
		for (unsigned i = 0; i < CASES && rc == FS_OK; i++)
			rc = measure_case(flash, &cases[i], round);
		if (rc == FS_OK)
			rc = measure_misses(flash, round);
		if (rc != FS_OK || bench_interrupted())
			return rc;
	}
	return rc;
}

/* ---- the study ------------------------------------------------------------------------------- */

static void add_reads(const struct flash *flash)
{
	struct figures *figures = flash->bench->figures;
	const struct flash_counts *total = &flash->total;
	char row[NAME_BYTES];

	snprintf(row, sizeof(row), "%s reads flashield", flash->size->name);
	figures_add(figures, FLASH_STUDY, row, "reads_per_hit", total->reads_on_hit / total->lookups_hit);
	figures_add(figures, FLASH_STUDY, row, "reads_per_miss", total->reads_on_miss / total->lookups_miss);
	figures_add(figures, FLASH_STUDY, row, "pages", total->pages / total->reads);
}

static int measure_size(struct bench *bench, const struct flash_size *size)
{
	struct flash flash = { .bench = bench, .size = size };
	int rc = flash_start(&flash);

	if (rc == FS_OK && flash.runs[OURS])
		rc = measure(&flash);
	if (rc == FS_OK && flash.runs[OURS])
		add_reads(&flash);
	return flash_stop(&flash, rc);
}

static void describe(struct figures *figures)
{
	figures_study(figures, FLASH_STUDY, "hits from flash, beside DRAM hits, raw reads and extstore",
		      "Rows: value size, cN: N connections with one get each, mget: of 100 keys. Keys have 30 B, drawn "
		      "uniformly from those that lie on the server's flash. All servers: -t 1, -m 64, 2 GiB of flash; "
		      "the page cache of their files is dropped every 20 ms. CPU is the server's per key; latency a "
		      "command's. flash %: of the hits, served from flash; disk reads: 4 KiB pages that the kernel "
		      "fetched for the server, per hit. raw reads: libaio, O_DIRECT, of our file, on the servers' CPU, "
		      "with our pages per read and reads under way. extstore: one I/O thread, its default, or 16.\n"
		      "Rows without a server, per round: CPU share: a flash hit's over a DRAM hit's + 1.3 raw reads'; "
		      "beyond: what a flash hit takes more than a DRAM hit and a raw read (CPU, p50); rates over "
		      "extstore's.");
	sample_columns(figures);
	figures_column(figures, "hit_percent", "hit %", 2);
	figures_column(figures, "flash_percent", "flash %", 2);
	figures_column(figures, "disk_reads", "disk reads", 2);
	figures_column(figures, "pages", "pages /read", 2);
	figures_column(figures, "cpu_share", "CPU share", 3);
	figures_column(figures, "cpu_beyond_us", "us CPU beyond", 2);
	figures_column(figures, "beyond_us", "p50 us beyond", 1);
	figures_column(figures, "threaded_ratio", "ops/s ratio, 16 threads", 2);
	figures_column(figures, "reads_per_hit", "reads /hit", 4);
	figures_column(figures, "reads_per_miss", "reads /miss", 5);
}

static double figure(const struct figures *figures, const char *rest, const char *column)
{
	char row[NAME_BYTES];

	snprintf(row, sizeof(row), "%s %s", sizes[0].name, rest);
	return figures_median(figures, FLASH_STUDY, row, column);
}

static void add_targets(struct figures *figures)
{
	figures_target(figures, "server CPU per flash hit, c50, against DRAM hit + 1.3 x raw read",
		       figure(figures, "c50", "cpu_share"), FIGURES_AT_MOST, 1.0, "x");
	figures_beside(figures, "  flash hit, server CPU", figure(figures, "c50 flashield", "cpu_us"), "us");
	figures_beside(figures, "  DRAM hit, server CPU", figure(figures, "c50 flashield DRAM", "cpu_us"), "us");
	figures_beside(figures, "  raw read, CPU", figure(figures, "c50 raw reads", "cpu_us"), "us");
	figures_target(figures, "the same in multigets of 100", figure(figures, "mget c4", "cpu_share"),
		       FIGURES_AT_MOST, 1.0, "x");
	figures_target(figures, "flash hits per second, c50, against extstore", figure(figures, "c50", "ops_ratio"),
		       FIGURES_AT_LEAST, 1.5, "x");
	figures_beside(figures, "  against extstore with 16 I/O threads", figure(figures, "c50", "threaded_ratio"),
		       "x");
	figures_target(figures, "p50 of a flash hit beyond DRAM hit + raw read, c1", figure(figures, "c1", "beyond_us"),
		       FIGURES_AT_MOST, 20, "us");
	figures_target(figures, "flash reads per hit", figure(figures, "reads flashield", "reads_per_hit"),
		       FIGURES_AT_MOST, 1.01, "");
	figures_target(figures, "flash reads per miss", figure(figures, "reads flashield", "reads_per_miss"),
		       FIGURES_AT_MOST, 0.01, "");
}

int study_flash(struct bench *bench)
{
	int rc = FS_OK;

	describe(bench->figures);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && rc == FS_OK && !bench_interrupted(); i++)
		rc = measure_size(bench, &sizes[i]);
	add_targets(bench->figures);
	return rc;
}
