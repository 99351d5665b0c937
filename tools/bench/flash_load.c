/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads with a cold page cache, and what the server and the kernel count meanwhile. */
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/bench/flash_part.h"

/* ---- counts ---------------------------------------------------------------------------------- */

/* Bytes that storage was asked for on behalf of the process, all of its threads; NaN if not readable. */
static double disk_bytes(const struct server *server)
{
	char path[64], line[128];
	double bytes = NAN;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/io", (int)server->pid);
	in = fopen(path, "re");
	if (!in)
		return NAN;
	while (fgets(line, sizeof(line), in))
		if (strncmp(line, "read_bytes: ", 12) == 0)
			bytes = strtod(line + 12, NULL);
	fclose(in);
	return bytes;
}

void flash_count(struct server *server, struct flash_counts *counts)
{
	bool ours = server->spec.kind == SERVER_FLASHIELD;

	*counts = (struct flash_counts){
		.hits = server_stat(server, "", "get_hits"),
		.flash_hits =
			ours ? server_stat(server, "flash", "flash_hits") : server_stat(server, "", "get_extstore"),
		.reads = ours ? server_stat(server, "flash", "flash_reads") : NAN,
		.pages = ours ? server_stat(server, "flash", "flash_pages_read") : NAN,
		.reads_on_hit = ours ? server_stat(server, "flash", "flash_reads_on_hit") : NAN,
		.lookups_hit = ours ? server_stat(server, "flash", "flash_lookups_hit") : NAN,
		.reads_on_miss = ours ? server_stat(server, "flash", "flash_reads_on_miss") : NAN,
		.lookups_miss = ours ? server_stat(server, "flash", "flash_lookups_miss") : NAN,
		.disk_bytes = disk_bytes(server),
	};
}

void flash_difference(const struct flash_counts *before, const struct flash_counts *after, struct flash_counts *out)
{
	*out = (struct flash_counts){
		.hits = after->hits - before->hits,
		.flash_hits = after->flash_hits - before->flash_hits,
		.reads = after->reads - before->reads,
		.pages = after->pages - before->pages,
		.reads_on_hit = after->reads_on_hit - before->reads_on_hit,
		.lookups_hit = after->lookups_hit - before->lookups_hit,
		.reads_on_miss = after->reads_on_miss - before->reads_on_miss,
		.lookups_miss = after->lookups_miss - before->lookups_miss,
		.disk_bytes = after->disk_bytes - before->disk_bytes,
	};
}

/* ---- loads ----------------------------------------------------------------------------------- */

/* Drops until the load is over. This thread shares the load generator's CPU, not the server's. */
static void keep_cold(const struct bench *bench, const struct server *server, const struct load *load)
{
	const struct timespec pause = { .tv_nsec = FLASH_DROP_MS * 1000000l };
	cpu_set_t before, mine;
	bool pinned = bench->options->load_cpu >= 0 && sched_getaffinity(0, sizeof(before), &before) == 0;

	if (pinned) {
		CPU_ZERO(&mine);
		CPU_SET(bench->options->load_cpu, &mine);
		pinned = sched_setaffinity(0, sizeof(mine), &mine) == 0;
	}
	while (load_running(load)) {
		server_drop_cache(server);
		nanosleep(&pause, NULL);
	}
	if (pinned && sched_setaffinity(0, sizeof(before), &before) != 0)
		fprintf(stderr, "flashield-bench: the main thread stays on CPU %d\n", bench->options->load_cpu);
}

int flash_load(const struct bench *bench, const struct load_spec *spec, struct server *server,
	       struct load_result *result, struct flash_counts *counts)
{
	struct flash_counts before, after;
	struct load *load;
	int rc;

	*result = (struct load_result){ 0 };
	server_drop_cache(server);
	flash_count(server, &before);
	rc = load_start(&load, spec, server);
	if (rc != FS_OK)
		return rc;
	keep_cold(bench, server, load);
	rc = load_join(load, result);
	flash_count(server, &after);
	flash_difference(&before, &after, counts);
	if (rc == FS_OK && result->wrong) {
		fprintf(stderr, "flashield-bench: flash: %" PRIu64 " wrong values\n", result->wrong);
		rc = FS_ECORRUPT;
	}
	return rc;
}
