/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "real": a set-up of real size. 4 GiB of DRAM, 16 GiB of flash in segments of 512 MiB, filled twice
 * over by objects that are set and read; then hits are measured and flashield-inspect verifies every byte
 * of the flash, with the daemon still running. --scale shrinks memory, flash and segments together.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "tools/bench/real_inspect.h"
#include "tools/bench/sample.h"

#define STUDY "real"
#define MIB 1048576.0
#define MEMORY_MB 4096
#define FLASH_MB 16384
#define SEGMENT_MB 512
#define TURNS 2.0 /* of the flash: bytes of segments to be written */
#define VALUE_LEAST 64
#define VALUE_MOST 1024
#define CONNECTIONS 50
#define PIPELINE 16
#define STEP_KEYS 4000000 /* between two looks at how much has been written */
#define READ_SECONDS 5.0

struct real {
	struct bench *bench;
	struct server server;
	uint64_t memory_mb, flash_mb, segment_mb;
	uint64_t keys; /* set so far: 0 .. keys - 1 */
	struct hist *set_latency, *get_latency; /* of the fill, in ns */
};

static double flash_stat(struct real *real, const char *name)
{
	return server_stat(&real->server, "flash", name);
}

static double written_mb(struct real *real)
{
	return flash_stat(real, "segments_written") * (double)real->segment_mb;
}

static bool fits(const struct real *real)
{
	struct statvfs disk;

	return statvfs(real->bench->options->directory, &disk) == 0 &&
	       (double)disk.f_bavail * (double)disk.f_frsize > 1.1 * MIB * (double)real->flash_mb;
}

static int start(struct real *real)
{
	static char segment[32];
	static const char *const extra[] = { "--segment-size", segment, NULL };
	struct server_spec spec = {
		.kind = SERVER_FLASHIELD,
		.memory_mb = real->memory_mb,
		.threads = 1,
		.flash_bytes = real->flash_mb << 20,
		.extra = extra,
		.unpinned = true, /* worker and cleaner on a core each, as where it is used */
	};

	snprintf(segment, sizeof(segment), "%llum", (unsigned long long)real->segment_mb);
	return server_start(&real->server, real->bench, &spec);
}

/* More new keys, each read once after it was set. */
static int fill_step(struct real *real, uint64_t keys)
{
	struct load_spec spec = {
		.kind = LOAD_SET_GET,
		.first_key = real->keys,
		.keys = keys,
		.value_bytes = VALUE_LEAST,
		.value_bytes_most = VALUE_MOST,
		.connections = CONNECTIONS,
		.pipeline = PIPELINE,
		.operations = 2 * keys,
		.cpu = real->bench->options->load_cpu,
	};
	struct load_result result;
	int code = load_run(&spec, &real->server, &result);

	if (code == FS_OK && (result.wrong || result.errors)) {
		fprintf(stderr, "flashield-bench: real: wrong values or errors %s\n", result.first_error);
		code = FS_ECORRUPT;
	}
	if (code == FS_OK) {
		hist_merge(real->set_latency, result.set_latency);
		hist_merge(real->get_latency, result.get_latency);
		real->keys += keys;
	}
	load_result_fini(&result);
	return code;
}

static int fill(struct real *real)
{
	double goal = TURNS * (double)real->flash_mb;
	int code = FS_OK;

	while (code == FS_OK && written_mb(real) < goal) {
		code = fill_step(real, bench_scaled(real->bench, STEP_KEYS, 1000));
		bench_progress(real->bench, "real: %.1f of %.1f GiB written to flash", written_mb(real) / 1024,
			       goal / 1024);
	}
	return code;
}

static void add(struct real *real, const char *row, const char *column, double value)
{
	figures_add(real->bench->figures, STUDY, row, column, value);
}

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

static void add_fill(struct real *real)
{
	add(real, "fill", "get_p50_us", (double)hist_quantile(real->get_latency, 0.5) / 1e3);
	add(real, "fill", "get_p99_us", (double)hist_quantile(real->get_latency, 0.99) / 1e3);
	add(real, "fill", "set_p50_us", (double)hist_quantile(real->set_latency, 0.5) / 1e3);
	add(real, "fill", "set_p99_us", (double)hist_quantile(real->set_latency, 0.99) / 1e3);
}

static void add_state(struct real *real)
{
	struct figures *figures = real->bench->figures;
	double peak = (double)server_peak_bytes(&real->server) / MIB;
	double per_object = flash_stat(real, "dram_bytes_per_flash_item"),
	       fill = 100 * flash_stat(real, "segment_fill");

	add(real, "flash", "keys_set", (double)real->keys);
	add(real, "flash", "flash_items", flash_stat(real, "flash_items"));
	add(real, "flash", "written_gib", written_mb(real) / 1024);
	add(real, "flash", "clwa", flash_stat(real, "clwa"));
	add(real, "flash", "fill_percent", fill);
	add(real, "flash", "hashes",
	    ratio(flash_stat(real, "segment_hashes"), flash_stat(real, "flash_objects_written")));
	add(real, "flash", "dram_per_object", per_object);
	add(real, "flash", "index_load", flash_stat(real, "index_load"));
	add(real, "flash", "peak_mib", peak);
	figures_beside(figures, "512 MiB segments: mean fill of live segments", fill, "%");
	figures_target(figures, "512 MiB segments: peak of resident memory", peak, FIGURES_AT_MOST,
		       1.1 * (double)real->memory_mb + 24, "MiB");
	figures_target(figures, "512 MiB segments: DRAM per flash object", per_object, FIGURES_AT_MOST, 4.5, "B");
}

/* As many of the youngest keys as there are objects on flash. */
static int read_back(struct real *real)
{
	uint64_t range = (uint64_t)flash_stat(real, "flash_items");
	struct load_spec spec = {
		.kind = LOAD_GET,
		.order = LOAD_UNIFORM,
		.first_key = real->keys - range,
		.keys = range,
		.value_bytes = VALUE_LEAST,
		.value_bytes_most = VALUE_MOST,
		.connections = CONNECTIONS,
		.seconds = sample_seconds(real->bench, READ_SECONDS),
		.cpu = real->bench->options->load_cpu,
	};
	double hits = server_stat(&real->server, "", "get_hits"), flash_hits = flash_stat(real, "flash_hits");
	double reads = flash_stat(real, "flash_reads_on_hit");
	struct sample sample;
	int code = sample_load(real->bench, STUDY, "gets of recent keys", &spec, &real->server, &sample);

	if (code != FS_OK)
		return code;
	flash_hits = flash_stat(real, "flash_hits") - flash_hits;
	add(real, "gets of recent keys", "hit_percent", 100 * ratio((double)sample.hits, (double)sample.gets));
	add(real, "gets of recent keys", "flash_percent",
	    100 * ratio(flash_hits, server_stat(&real->server, "", "get_hits") - hits));
	add(real, "gets of recent keys", "reads_per_hit",
	    ratio(flash_stat(real, "flash_reads_on_hit") - reads, flash_hits));
	return FS_OK;
}

static int verify(struct real *real)
{
	struct inspection inspection;
	int code = inspect_verify(real->bench, real->server.flash_path, &inspection);

	if (code == FS_ENOTFOUND) {
		figures_note(real->bench->figures, STUDY, "flashield-inspect is not beside the daemon: not verified.");
		return FS_OK;
	}
	if (code != FS_OK)
		return code;
	figures_note(real->bench->figures, STUDY, "flashield-inspect verify, daemon running, %.0f s: %s",
		     inspection.seconds, inspection.summary);
	figures_target(real->bench->figures, "512 MiB segments: checks that failed (flashield-inspect verify)",
		       inspection.passed ? 0 : 1, FIGURES_AT_MOST, 0, "");
	return FS_OK;
}

static void head(struct real *real)
{
	struct figures *figures = real->bench->figures;
	char title[120];

	snprintf(title, sizeof(title), "%.3g GiB of DRAM, %.3g GiB of flash in segments of %llu MiB, filled twice",
		 (double)real->memory_mb / 1024, (double)real->flash_mb / 1024, (unsigned long long)real->segment_mb);
	figures_study(figures, STUDY, title,
		      "New keys of 30 B with values of 64 B to 1 KiB (log-uniform) are set and then read "
		      "once, 50 "
		      "connections, 16 pipelined, until segments of twice the flash have been written; "
		      "fill: latency of "
		      "whole pipelines meanwhile. Gets of recent keys: one at a time, uniform over as many "
		      "of the youngest keys as there are objects on flash. "
		      "-t 1, server not pinned.");
	figures_column(figures, "keys_set", "keys set", 0);
	figures_column(figures, "flash_items", "objects on flash", 0);
	figures_column(figures, "written_gib", "GiB written", 1);
	figures_column(figures, "clwa", "CLWA", 3);
	figures_column(figures, "fill_percent", "fill %", 2);
	figures_column(figures, "hashes", "hashes /object", 2);
	figures_column(figures, "dram_per_object", "DRAM B /object", 2);
	figures_column(figures, "index_load", "index load", 3);
	figures_column(figures, "peak_mib", "peak MiB", 0);
	figures_column(figures, "hit_percent", "hit %", 2);
	figures_column(figures, "flash_percent", "flash %", 2);
	figures_column(figures, "reads_per_hit", "reads /hit", 4);
	figures_column(figures, "get_p50_us", "get p50 us", 0);
	figures_column(figures, "get_p99_us", "get p99 us", 0);
	figures_column(figures, "set_p50_us", "set p50 us", 0);
	figures_column(figures, "set_p99_us", "set p99 us", 0);
	sample_columns(figures);
}

int study_real(struct bench *bench)
{
	struct real real = {
		.bench = bench,
		.memory_mb = bench_scaled(bench, MEMORY_MB, 32),
		.flash_mb = bench_scaled(bench, FLASH_MB, 128),
		.segment_mb = bench_scaled(bench, SEGMENT_MB, 1),
	};
	int code, stopped;

	head(&real);
	if (!fits(&real)) {
		figures_note(bench->figures, STUDY, "%s has no room for a flash of this size.",
			     bench->options->directory);
		return FS_OK;
	}
	code = start(&real);
	if (code != FS_OK)
		return code;
	real.set_latency = hist_create();
	real.get_latency = hist_create();
	code = fill(&real);
	if (code == FS_OK) {
		add_fill(&real);
		add_state(&real);
		code = read_back(&real);
	}
	if (code == FS_OK)
		code = verify(&real);
	hist_destroy(real.set_latency);
	hist_destroy(real.get_latency);
	stopped = server_stop(&real.server);
	return code != FS_OK ? code : stopped;
}
