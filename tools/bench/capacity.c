/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "capacity": many small objects, each read after it is set, with little memory and much flash. How many
 * are still there when all are read once, in order? Extstore has the same memory, flash and load. Then sets go
 * on until our flash turns over, for that is when memory per object on flash is what it stays.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tools/bench/sample.h"

#define STUDY "capacity"
#define MIB (1ull << 20)
#define OBJECTS 10000000ull
#define OBJECTS_LEAST 200000ull
#define MEMORY_MB 256
#define FLASH_MB 4096
#define VALUE_BYTES 257
#define CONNECTIONS 50
#define PIPELINE 8
#define KEYS_PER_GET 20
#define BEYOND_SHARE 0.25 /* of the objects, that are set afterwards */

struct capacity {
	struct bench *bench;
	uint64_t objects, memory_mb, flash_bytes;
};

static struct load_spec spec_of(const struct capacity *capacity, enum load_kind kind, uint64_t first, uint64_t keys)
{
	return (struct load_spec){
		.kind = kind,
		.order = LOAD_SEQUENTIAL,
		.first_key = first,
		.keys = keys,
		.value_bytes = VALUE_BYTES,
		.connections = CONNECTIONS,
		.pipeline = kind == LOAD_GET ? 1 : PIPELINE,
		.keys_per_get = kind == LOAD_GET ? KEYS_PER_GET : 1,
		.operations = kind == LOAD_SET_GET ? 2 * keys : keys,
		.cpu = capacity->bench->options->load_cpu,
	};
}

static int run(const struct load_spec *spec, struct server *server, struct load_result *result)
{
	int rc = load_run(spec, server, result);

	if (rc == FS_OK && result->wrong) {
		fprintf(stderr, "flashield-bench: capacity: %" PRIu64 " wrong values\n", result->wrong);
		rc = FS_ECORRUPT;
	}
	return rc;
}

/* written: by the server before, when it laid out its file. */
static void add_filled(const struct capacity *capacity, struct server *server, const char *row, uint64_t written,
		       const struct load_result *result)
{
	struct figures *figures = capacity->bench->figures;
	double seconds = result->seconds;

	figures_add(figures, STUDY, row, "objects_s", (double)result->sets / seconds);
	figures_add(figures, STUDY, row, "cpu_us", (double)result->server_cpu_ns / 1e3 / (double)result->sets);
	figures_add(figures, STUDY, row, "p99_us", (double)hist_quantile(result->set_latency, 0.99) / 1e3);
	figures_add(figures, STUDY, row, "errors", (double)result->errors);
	figures_add(figures, STUDY, row, "written_mib", (double)(server_written_bytes(server) - written) / MIB);
	figures_add(figures, STUDY, row, "resident_mib", (double)server_resident_bytes(server) / MIB);
}

static void add_read(const struct capacity *capacity, const char *row, const struct load_result *result)
{
	struct figures *figures = capacity->bench->figures;

	figures_add(figures, STUDY, row, "kept_percent", 100 * (double)result->hits / (double)result->gets);
	figures_add(figures, STUDY, row, "wrong", (double)result->wrong);
	figures_add(figures, STUDY, row, "reads_s", (double)result->gets / result->seconds);
}

static int turn_over(const struct capacity *capacity, struct server *server, const char *row)
{
	struct figures *figures = capacity->bench->figures;
	uint64_t more = (uint64_t)(BEYOND_SHARE * (double)capacity->objects);
	struct load_spec spec = spec_of(capacity, LOAD_SET_GET, capacity->objects, more);
	struct load_result result;
	int rc;

	bench_progress(capacity->bench, "capacity: %s, beyond what fits", row);
	rc = run(&spec, server, &result);
	load_result_fini(&result);
	if (rc != FS_OK)
		return rc;
	if (!(server_stat(server, "flash", "segments_reclaimed") > 0))
		figures_note(figures, STUDY, "No segment was reclaimed: the flash had room left.");
	figures_add(figures, STUDY, row, "dram_bytes", server_stat(server, "flash", "dram_bytes_per_flash_item"));
	return FS_OK;
}

static int measure(const struct capacity *capacity, struct server *server, const char *row)
{
	struct load_spec fill = spec_of(capacity, LOAD_SET_GET, 0, capacity->objects);
	struct load_spec read = spec_of(capacity, LOAD_GET, 0, capacity->objects);
	uint64_t written = server_written_bytes(server);
	struct load_result result;
	int rc;

	bench_progress(capacity->bench, "capacity: %s, %" PRIu64 " objects set and read", row, capacity->objects);
	rc = run(&fill, server, &result);
	if (rc == FS_OK)
		add_filled(capacity, server, row, written, &result);
	load_result_fini(&result);
	if (rc != FS_OK || bench_interrupted())
		return rc;
	bench_progress(capacity->bench, "capacity: %s, all read in order", row);
	rc = run(&read, server, &result);
	if (rc == FS_OK)
		add_read(capacity, row, &result);
	load_result_fini(&result);
	if (rc == FS_OK && server->spec.kind == SERVER_FLASHIELD && !bench_interrupted())
		rc = turn_over(capacity, server, row);
	return rc;
}

static int measure_kind(const struct capacity *capacity, enum server_kind kind)
{
	/* As in the study "flash": by default extstore keeps memory for values that headers need. */
	static const char *const automove[] = { "-o", "slab_automove=2", NULL };
	const struct server_spec spec = {
		.kind = kind,
		.memory_mb = capacity->memory_mb,
		.threads = 1,
		.flash_bytes = capacity->flash_bytes,
		.extra = kind == SERVER_EXTSTORE ? automove : NULL,
	};
	struct server server;
	int rc = server_start(&server, capacity->bench, &spec), stopped;

	if (rc == FS_ENOTFOUND && kind == SERVER_EXTSTORE) {
		figures_note(capacity->bench->figures, STUDY, "memcached is not here: nothing to compare with.");
		return FS_OK;
	}
	if (rc != FS_OK)
		return rc;
	rc = measure(capacity, &server, server_names[kind]);
	stopped = server_stop(&server);
	return rc != FS_OK ? rc : stopped;
}

static void describe(const struct capacity *capacity)
{
	struct figures *figures = capacity->bench->figures;
	char text[800];

	snprintf(
		text, sizeof(text),
		"%" PRIu64 " objects (keys of 30 B, values of %d B), each set and then read, %d connections with %d "
		"commands under way each, as fast as it goes; afterwards all are read once in the same order. -m %" PRIu64
		" -t 1, %" PRIu64
		" MiB of flash, server on one CPU. Set and read: objects per second, the server's CPU "
		"for both, latency. DRAM per object on flash: index, filters and all that serves them, once sets have "
		"gone on until segments are reclaimed.",
		capacity->objects, VALUE_BYTES, CONNECTIONS, PIPELINE, capacity->memory_mb,
		(uint64_t)(capacity->flash_bytes / MIB));
	figures_study(figures, STUDY, "objects kept with little memory and much flash, extstore beside", text);
	sample_columns(figures);
	figures_column(figures, "objects_s", "set+read /s", -1);
	figures_column(figures, "errors", "errors", 0);
	figures_column(figures, "written_mib", "MiB written", 0);
	figures_column(figures, "resident_mib", "MiB resident", 0);
	figures_column(figures, "kept_percent", "kept %", 2);
	figures_column(figures, "wrong", "wrong values", 0);
	figures_column(figures, "reads_s", "reads/s", -1);
	figures_column(figures, "dram_bytes", "DRAM B /object", 3);
}

static void conclude(struct figures *figures)
{
	figures_target(figures, "10 M objects of 257 B, -m 256, 4 GiB of flash: still there",
		       figures_median(figures, STUDY, server_names[SERVER_FLASHIELD], "kept_percent"), FIGURES_AT_LEAST,
		       95, "%");
	figures_beside(figures, "  the same with extstore",
		       figures_median(figures, STUDY, server_names[SERVER_EXTSTORE], "kept_percent"), "%");
	figures_target(figures, "DRAM per object on flash, turning over",
		       figures_median(figures, STUDY, server_names[SERVER_FLASHIELD], "dram_bytes"), FIGURES_AT_MOST,
		       4.5, "B");
}

/* One round: what is kept hardly depends on the machine's mood, and it takes minutes. */
int study_capacity(struct bench *bench)
{
	struct capacity capacity = { .bench = bench, .objects = bench_scaled(bench, OBJECTS, OBJECTS_LEAST) };
	double share = (double)capacity.objects / (double)OBJECTS;
	int rc;

	capacity.memory_mb = (uint64_t)ceil(MEMORY_MB * share);
	capacity.flash_bytes = (uint64_t)ceil(FLASH_MB * share) * MIB;
	describe(&capacity);
	rc = measure_kind(&capacity, SERVER_FLASHIELD);
	if (rc == FS_OK && !bench_interrupted())
		rc = measure_kind(&capacity, SERVER_EXTSTORE);
	if (rc == FS_OK)
		conclude(bench->figures);
	return rc;
}
