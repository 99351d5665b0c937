/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "memory": resident memory while the sizes of what is set shift, 100 B, 1 KiB, 100 B: the
 * allocator's pages that held one size must come free for the other. memcached beside, which keeps slab
 * pages by class.
 */
#include <stdio.h>
#include <string.h>

#include "tools/bench/sample.h"

#define STUDY "memory"
#define MEMORY_MB 64
#define FLASH_BYTES (512ull << 20)
#define OVER 3.0 /* bytes set in each phase, in memories */
#define OBJECT_BYTES 140
#define CONNECTIONS 50
#define PIPELINE 16
#define MIB 1048576.0

enum { OURS, OURS_FLASH, THEIRS, SERVERS };
static const char *const server_rows[SERVERS] = { "flashield", "flashield + flash", "memcached" };

static const struct phase {
	const char *name;
	uint32_t value_bytes;
} phases[] = { { "100 B", 100 }, { "1 KiB", 1024 }, { "100 B again", 100 } };

#define PHASES (sizeof(phases) / sizeof(phases[0]))

static double limit_mib(const struct bench *bench)
{
	return 1.1 * (double)bench_scaled(bench, MEMORY_MB, 16) + 24;
}

static int run_phase(struct bench *bench, struct server *server, unsigned kind, unsigned n)
{
	double bytes = OVER * (double)bench_scaled(bench, MEMORY_MB, 16) * MIB;
	struct load_spec spec = {
		.kind = LOAD_SET_GET,
		.first_key = n * 100000000ull,
		.keys = (uint64_t)(bytes / (OBJECT_BYTES + phases[n].value_bytes)),
		.value_bytes = phases[n].value_bytes,
		.connections = CONNECTIONS,
		.pipeline = PIPELINE,
		.cpu = bench->options->load_cpu,
	};
	struct load_result result;
	char row[80];
	int code;

	spec.operations = 2 * spec.keys;
	snprintf(row, sizeof(row), "%s, %s", server_rows[kind], phases[n].name);
	code = load_run(&spec, server, &result);
	if (code == FS_OK && result.wrong > 0) {
		fprintf(stderr, "flashield-bench: memory: wrong values\n");
		code = FS_ECORRUPT;
	}
	load_result_fini(&result);
	if (code != FS_OK)
		return code;
	figures_add(bench->figures, STUDY, row, "objects_set", (double)spec.keys);
	figures_add(bench->figures, STUDY, row, "held", server_stat(server, "", "curr_items"));
	figures_add(bench->figures, STUDY, row, "resident_mib", (double)server_resident_bytes(server) / MIB);
	figures_add(bench->figures, STUDY, row, "peak_mib", (double)server_peak_bytes(server) / MIB);
	return FS_OK;
}

static int run_server(struct bench *bench, unsigned kind, double *peak_mib)
{
	struct server_spec spec = {
		.kind = kind == THEIRS ? SERVER_MEMCACHED : SERVER_FLASHIELD,
		.memory_mb = bench_scaled(bench, MEMORY_MB, 16),
		.threads = 1,
		.flash_bytes = kind == OURS_FLASH ? FLASH_BYTES : 0,
	};
	struct server server;
	int code = server_start(&server, bench, &spec), stopped;

	if (code != FS_OK)
		return code;
	for (unsigned n = 0; n < PHASES && code == FS_OK; n++)
		code = run_phase(bench, &server, kind, n);
	*peak_mib = (double)server_peak_bytes(&server) / MIB;
	stopped = server_stop(&server);
	return code != FS_OK ? code : stopped;
}

int study_memory(struct bench *bench)
{
	double peaks[SERVERS] = { 0 };

	figures_study(bench->figures, STUDY, "resident memory while sizes shift",
		      "Each phase sets three times the memory in new keys, each read once after it was "
		      "set: values of "
		      "100 B, then of 1 KiB, then of 100 B. peak: VmHWM so far. -t 1, -m 64 (times the "
		      "scale); with "
		      "flash: 512 MiB.");
	figures_column(bench->figures, "objects_set", "objects set", 0);
	figures_column(bench->figures, "held", "objects held", 0);
	figures_column(bench->figures, "resident_mib", "resident MiB", 1);
	figures_column(bench->figures, "peak_mib", "peak MiB", 1);
	for (unsigned kind = 0; kind < SERVERS; kind++) {
		int code;

		bench_progress(bench, "memory: %s", server_rows[kind]);
		code = run_server(bench, kind, &peaks[kind]);
		if (code == FS_ENOTFOUND && kind == THEIRS)
			figures_note(bench->figures, STUDY, "memcached (%s) is not here.", bench->options->memcached);
		else if (code != FS_OK)
			return code;
	}
	figures_target(bench->figures, "peak of resident memory over size shifts", peaks[OURS], FIGURES_AT_MOST,
		       limit_mib(bench), "MiB");
	figures_target(bench->figures, "the same, with flash", peaks[OURS_FLASH], FIGURES_AT_MOST, limit_mib(bench),
		       "MiB");
	if (peaks[THEIRS] > 0)
		figures_beside(bench->figures, "  memcached, the same load", peaks[THEIRS], "MiB");
	return FS_OK;
}
