/* SPDX-License-Identifier: BSD-3-Clause */
/* An index of one size as a row of figures: the cost of each operation, the bytes of a slot, false matches. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/engine.h"
#include "tools/bench/report.h"

static const char *const columns[INDEX_OPERATIONS] = {
	[INDEX_HIT] = "hit_ns",
	[INDEX_MISS] = "miss_ns",
	[INDEX_TOUCH] = "hit_touch_ns",
	[INDEX_HAND] = "hand_ns",
	[INDEX_CLEAR_NOTHING] = "clear_nothing_ns",
	[INDEX_CLEAR] = "clear_ns",
};

/* Of this process, in huge pages; 0 where the kernel doesn't tell. */
static double huge_bytes(void)
{
	static const char name[] = "AnonHugePages:";
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	double bytes = 0;
	char line[256];

	while (file && bytes == 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, name, sizeof(name) - 1) == 0)
			bytes = strtod(line + sizeof(name) - 1, NULL) * 1024;
	if (file)
		fclose(file);
	return bytes;
}

static int measure(struct index_run *run, const char *row, enum index_operation operation, unsigned rounds,
		   uint64_t operations)
{
	for (unsigned round = 0; round < (operation == INDEX_CLEAR ? 1 : rounds); round++) {
		struct index_cost cost;
		int rc = index_run_measure(run, operation, round, operations, &cost);

		if (rc != FS_OK)
			return rc;
		report_add(row, columns[operation], cost.ns);
		if (operation == INDEX_MISS)
			report_add(row, "false_matches_per_miss", (double)cost.matches / (double)cost.done);
	}
	return FS_OK;
}

int engine_index(const char *row, const struct index_shape *shape, unsigned rounds, uint64_t operations)
{
	double huge_percent, bytes_per_slot;
	struct index_run run;
	int rc;

	if (operations == 0)
		return FS_EINVAL;
	rc = index_run_init(&run, shape, operations / 16);
	if (rc != FS_OK)
		return rc;
	/* Before operations take slots away. */
	huge_percent = 100 * fmin(huge_bytes() / ((double)shape->slots * sizeof(uint32_t)), 1);
	bytes_per_slot = index_run_bytes_per_slot(&run);
	report_add(row, "insert_ns", run.insert_ns);
	report_add(row, "insert_full_ns", run.insert_full_ns);
	for (int operation = 0; rc == FS_OK && operation < INDEX_OPERATIONS; operation++)
		rc = measure(&run, row, (enum index_operation)operation, rounds, operations);
	report_add(row, "moves_per_insert", (double)run.moves / (double)run.keys);
	report_add(row, "drops", (double)run.drops);
	report_add(row, "bytes_per_slot", bytes_per_slot);
	report_add(row, "tag_bits", fidx_tag_bits(run.index));
	report_add(row, "huge_pages_pct", huge_percent);
	index_run_fini(&run);
	return rc;
}
