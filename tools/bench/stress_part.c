/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/stress_part.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define DRAIN_SECONDS 60.0
#define DRAIN_QUIET_SECONDS 0.2
#define ITEM_EXTRA_BYTES 90 /* a key, a header */
#define FILL_CONNECTIONS 8
#define FILL_PIPELINE 8
#define FILL_PIPELINED_BYTES 8192

const char *const stress_ours[] = { "--admission", "read-once", NULL };
/* As in the study "flash": by default extstore is slow to give memory to the headers of objects on flash. */
const char *const stress_theirs[] = { "-o", "slab_automove=2,ext_threads=16", NULL };

/* ---- servers --------------------------------------------------------------------------------- */

bool stress_possible(const struct bench *bench, const char *study)
{
	if (access(bench->options->slowdrive, R_OK) == 0)
		return true;
	figures_note(bench->figures, study, "The emulated drive (%s) is not here.", bench->options->slowdrive);
	return false;
}

int stress_start(const struct bench *bench, const char *study, const struct server_spec *spec, struct server *server,
		 bool *runs)
{
	struct server_spec slow = *spec;
	int rc;

	slow.slow_drive = slow.flash_bytes > 0;
	rc = server_start(server, bench, &slow);
	*runs = rc == FS_OK;
	if (rc != FS_ENOTFOUND || spec->kind == SERVER_FLASHIELD)
		return rc;
	figures_note(bench->figures, study, "memcached (%s) is not here: nothing to compare with.",
		     bench->options->memcached);
	return FS_OK;
}

int stress_start_filled(const struct bench *bench, const char *study, const struct server_spec *spec,
			const struct flash_size *size, struct server *server, struct flash_range *range, bool *runs)
{
	int rc = stress_start(bench, study, spec, server, runs);

	if (rc != FS_OK || !*runs)
		return rc;
	bench_progress(bench, "%s: filling %s -t %u", study, server_names[spec->kind], spec->threads);
	rc = flash_fill(bench, server, size, range);
	if (rc != FS_OK || range->keys > 0)
		return rc;
	figures_note(bench->figures, study, "No keys of %s -t %u lie on its flash: not measured.",
		     server_names[spec->kind], spec->threads);
	return stress_stop(server, runs, FS_OK);
}

int stress_stop(struct server *server, bool *runs, int rc)
{
	int stopped = *runs ? server_stop(server) : FS_OK;

	*runs = false;
	return rc != FS_OK ? rc : stopped;
}

int stress_run(const char *study, const struct load_spec *spec, struct server *server, struct load_result *result)
{
	int rc = load_run(spec, server, result);

	if (rc == FS_OK && result->wrong) {
		fprintf(stderr, "flashield-bench: %s: %" PRIu64 " wrong values\n", study, result->wrong);
		rc = FS_ECORRUPT;
	}
	return rc;
}

uint64_t stress_keys_of(double bytes, uint32_t value_bytes)
{
	return (uint64_t)fmax(1, bytes / (value_bytes + ITEM_EXTRA_BYTES));
}

struct load_spec stress_sets(const struct bench *bench, uint64_t first_key, uint64_t keys, uint32_t value_bytes,
			     bool reads_back, double bytes_per_second)
{
	double sets_per_second = bytes_per_second / (value_bytes + ITEM_EXTRA_BYTES);

	return (struct load_spec){
		.kind = reads_back ? LOAD_SET_GET : LOAD_SET,
		.order = LOAD_SEQUENTIAL,
		.first_key = first_key,
		.keys = keys,
		.value_bytes = value_bytes,
		.connections = FILL_CONNECTIONS,
		.pipeline = value_bytes < FILL_PIPELINED_BYTES ? FILL_PIPELINE : 1,
		.operations = reads_back ? 2 * keys : keys,
		.rate = reads_back ? 2 * sets_per_second : sets_per_second,
		.cpu = bench->options->load_cpu,
	};
}

double stress_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void stress_sleep(double seconds)
{
	struct timespec left = { .tv_sec = (time_t)seconds, .tv_nsec = (long)(fmod(seconds, 1) * 1e9) };

	while (seconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR && !bench_interrupted())
		continue;
}

/* ---- counters -------------------------------------------------------------------------------- */

static double count(struct server *server, enum stress_counter counter)
{
	bool ours = server->spec.kind == SERVER_FLASHIELD;

	switch (counter) {
	case STRESS_FLASH_HITS:
		return ours ? server_stat(server, "flash", "flash_hits") : server_stat(server, "", "get_extstore");
	case STRESS_DRAM_HITS:
		return ours ? server_stat(server, "flash", "dram_hits")
			    : server_stat(server, "", "get_hits") - server_stat(server, "", "get_extstore");
	case STRESS_MISSES:
		return server_stat(server, "", "get_misses");
	case STRESS_SETS:
		return server_stat(server, "", "cmd_set");
	case STRESS_SHED:
		return ours ? server_stat(server, "flash", "flash_reads_shed") : NAN;
	case STRESS_SHARED:
		return ours ? server_stat(server, "flash", "flash_reads_shared") : NAN;
	case STRESS_DRIVE_READS:
		return server->drive ? (double)atomic_load(&server->drive->reads.done) : NAN;
	default:
		return (double)server_cpu_ns(server) / 1e9;
	}
}

void stress_count(struct server *server, struct stress_counts *counts)
{
	for (int i = 0; i < STRESS_COUNTERS; i++) {
		counts->value[i] = count(server, (enum stress_counter)i);
		counts->at[i] = stress_now();
	}
}

double stress_gain(const struct stress_counts *before, const struct stress_counts *after, enum stress_counter counter)
{
	return after->value[counter] - before->value[counter];
}

double stress_rate(const struct stress_counts *before, const struct stress_counts *after, enum stress_counter counter)
{
	return stress_gain(before, after, counter) / (after->at[counter] - before->at[counter]);
}

void stress_drain(struct server *server)
{
	double end = stress_now() + DRAIN_SECONDS, quiet_since = stress_now();
	uint64_t done = 0;

	atomic_store(&server->drive->reads.per_second, 0);
	while (stress_now() < end && stress_now() < quiet_since + DRAIN_QUIET_SECONDS && !bench_interrupted()) {
		uint64_t now = atomic_load(&server->drive->reads.done);

		if (now != done || atomic_load(&server->drive->reads.held))
			quiet_since = stress_now();
		done = now;
		stress_sleep(0.01);
	}
}

/* ---- what a server holds --------------------------------------------------------------------- */

double stress_dram_items(struct server *server)
{
	double items = server_stat(server, "flash", "dram_items");

	if (server->spec.kind == SERVER_FLASHIELD)
		return items;
	items = server_stat(server, "", "curr_items");
	return server->spec.kind == SERVER_EXTSTORE ? items - server_stat(server, "", "extstore_objects_used") : items;
}

double stress_resident_limit_mib(uint64_t memory_mb)
{
	return 1.1 * (double)memory_mb + 24;
}
