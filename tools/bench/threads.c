/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "threads": what an operation costs with more worker threads. What grows with them is waiting for
 * locks and moving cache lines between cores.
 *
 * Through the network both servers of a thread count run together and are loaded in turns; one load
 * generator has to keep them busy. Without it, threads of this process drive the store (threads_store.c).
 */
#include <stdio.h>

#include "tools/bench/machine.h"
#include "tools/bench/sample.h"
#include "tools/bench/tasks.h"
#include "tools/bench/threads_store.h"

#define STUDY "threads"
#define MEMORY_MB 512
#define OBJECTS 100000
#define VALUE_BYTES 257
#define CONNECTIONS 50
#define CASE_SECONDS 0.7
#define NAME_BYTES 64

enum { SERVERS = 2 }; /* flashield, memcached */

static const unsigned thread_counts[] = { 1, 2, 4, 8 };
enum { COUNTS = sizeof(thread_counts) / sizeof(thread_counts[0]) };

static const struct {
	const char *name;
	enum load_kind kind;
} kinds[] = { { "get", LOAD_GET }, { "set", LOAD_SET } };
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- servers --------------------------------------------------------------------------------- */

struct group {
	struct bench *bench;
	unsigned threads;
	struct server servers[SERVERS];
	unsigned started;
};

static int start(struct group *group)
{
	static const enum server_kind server_kinds[SERVERS] = { SERVER_FLASHIELD, SERVER_MEMCACHED };
	int code = FS_OK;

	while (group->started < SERVERS) {
		struct server_spec spec = {
			.kind = server_kinds[group->started],
			.memory_mb = MEMORY_MB,
			.threads = group->threads,
			.unpinned = true,
		};

		code = server_start(&group->servers[group->started], group->bench, &spec);
		if (code != FS_OK)
			break;
		group->started++;
	}
	if (code == FS_ENOTFOUND && group->started) {
		figures_note(group->bench->figures, STUDY, "memcached (%s) is not here: nothing to compare with.",
			     group->bench->options->memcached);
		code = FS_OK;
	}
	return code;
}

static int stop(struct group *group, int code)
{
	while (group->started) {
		int stopped = server_stop(&group->servers[--group->started]);

		code = code != FS_OK ? code : stopped;
	}
	return code;
}

static struct load_spec spec_of(const struct bench *bench, enum load_kind kind)
{
	return (struct load_spec){
		.kind = kind,
		.keys = bench_scaled(bench, OBJECTS, 100),
		.value_bytes = VALUE_BYTES,
		.connections = CONNECTIONS,
		.pipeline = 1,
		.keys_per_get = 1,
		.cpu = bench->options->load_cpu,
	};
}

static int fill(struct group *group)
{
	int code = FS_OK;

	for (unsigned i = 0; i < group->started && code == FS_OK; i++) {
		struct load_spec spec = spec_of(group->bench, LOAD_SET);
		struct load_result result;

		spec.operations = spec.keys;
		spec.pipeline = 16;
		code = load_run(&spec, &group->servers[i], &result);
		load_result_fini(&result);
	}
	return code;
}

static int measure_server(struct group *group, unsigned kind, unsigned round, struct server *server,
			  struct sample *sample)
{
	struct load_spec spec = spec_of(group->bench, kinds[kind].kind);
	uint64_t before = tasks_sleeps(server->pid);
	char row[NAME_BYTES];
	int code;

	/* No warm-up: the switches are those of all operations. */
	spec.order = LOAD_UNIFORM;
	spec.seconds = sample_seconds(group->bench, CASE_SECONDS);
	spec.seed = round + 1;
	snprintf(row, sizeof(row), "%s -t %u %s", kinds[kind].name, group->threads, server_names[server->spec.kind]);
	code = sample_load(group->bench, STUDY, row, &spec, server, sample);
	if (code == FS_OK)
		figures_add(group->bench->figures, STUDY, row, "switches",
			    (double)(tasks_sleeps(server->pid) - before) / (double)sample->operations);
	return code;
}

static int measure_kind(struct group *group, unsigned kind, unsigned round)
{
	struct sample samples[SERVERS];
	char row[NAME_BYTES];
	int code = FS_OK;

	for (unsigned i = 0; i < group->started && code == FS_OK; i++) {
		unsigned turn = round % 2 ? group->started - 1 - i : i;

		code = measure_server(group, kind, round, &group->servers[turn], &samples[turn]);
	}
	if (code != FS_OK || group->started < SERVERS)
		return code;
	snprintf(row, sizeof(row), "%s -t %u", kinds[kind].name, group->threads);
	sample_ratio(group->bench->figures, STUDY, row, &samples[0], &samples[1]);
	return FS_OK;
}

static int measure_group(struct bench *bench, unsigned threads)
{
	struct group group = { .bench = bench, .threads = threads };
	int code = start(&group);

	bench_progress(bench, "threads: servers with -t %u", threads);
	if (code == FS_OK)
		code = fill(&group);
	for (unsigned round = 0; round < bench->options->rounds; round++)
		for (unsigned kind = 0; kind < KINDS && code == FS_OK && !bench_interrupted(); kind++)
			code = measure_kind(&group, kind, round);
	return stop(&group, code);
}

/* ---- figures --------------------------------------------------------------------------------- */

static const char explanation[] =
	"get and set: 257 B values in DRAM, 50 connections, one command at a time on each, servers "
	"unpinned, -m 512, one load generator. ctx sw.: voluntary context switches of the server's "
	"threads; one that waits for a lock goes to sleep, but so does one that waits for commands.\n"
	"store: threads of this process on the store itself, without network or protocol; drawn "
	"keys, 16 operations a turn of a worker. CPU is that of the threads; here they sleep for "
	"locks only.";

static void describe(struct figures *figures)
{
	figures_study(figures, STUDY, "worker threads", explanation);
	sample_columns(figures);
	figures_column(figures, "switches", "ctx sw. /op", 3);
	figures_column(figures, "store_cpu_ns", "ns CPU /op", 0);
	figures_column(figures, "store_ops_s", "ops/s", -1);
	figures_column(figures, "store_switches", "ctx sw. /M ops", -1);
	figures_column(figures, "store_growth", "CPU, x of 1 thread", 2);
	figures_note(figures, STUDY,
		     "This run may use %u CPUs: threads beyond that number take turns, and the load "
		     "generator needs one.",
		     machine_cpus());
}

int study_threads(struct bench *bench)
{
	int code = FS_OK;

	describe(bench->figures);
	for (unsigned i = 0; i < COUNTS && code == FS_OK && !bench_interrupted(); i++)
		code = measure_group(bench, thread_counts[i]);
	if (code != FS_OK || bench_interrupted())
		return code;
	bench_progress(bench, "threads: the store in this process");
	return threads_store(bench, STUDY, thread_counts, COUNTS);
}
