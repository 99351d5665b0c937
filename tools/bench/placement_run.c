/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/placement_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

const char *const placement_kinds[2] = { [SEG_PLACE_SWEEP] = "sweep", [SEG_PLACE_PAPER] = "paper" };

static double thread_cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A line of /proc/self/status, name with its colon, in bytes; NaN without it. */
static double status_bytes(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	size_t length = strlen(name);
	char line[256];
	double bytes = NAN;

	if (!file)
		return NAN;
	while (isnan(bytes) && fgets(line, sizeof(line), file))
		if (strncmp(line, name, length) == 0)
			bytes = (double)strtoull(line + length, NULL, 10) * 1024;
	fclose(file);
	return bytes;
}

/* Sets the kernel's mark of the highest resident size back to the present one. Returns that, or NaN. */
static double reset_peak(void)
{
	FILE *file;
	int wrong;

	mem_purge(); /* the kernel would not notice that freed pages are taken again */
	file = fopen("/proc/self/clear_refs", "we");
	if (!file)
		return NAN;
	wrong = fputs("5\n", file) < 0;
	wrong |= fclose(file) != 0;
	return wrong ? NAN : status_bytes("VmRSS:");
}

static double mean_pages(const struct seg_plan *plan, const struct seg_candidate *candidates)
{
	uint64_t pages = 0, small = 0;

	for (uint32_t n = plan->extents; n < plan->count; n++) {
		uint64_t offset = plan->placed[n].offset, length = candidates[plan->placed[n].candidate].length;

		if (length >= 1024)
			continue;
		pages += (offset + length - 1) / SEG_PAGE - offset / SEG_PAGE + 1;
		small++;
	}
	return small ? (double)pages / (double)small : NAN;
}

int placement_measure(const struct placement_run *run, const struct seg_candidate *candidates, uint32_t count,
		      struct placement_outcome *outcome, struct seg_plan *plan)
{
	double resident = reset_peak();
	double before = thread_cpu_s(), seconds;
	int rc = seg_plan_simulate(run->segment_bytes, run->sequence, run->functions, run->placement, candidates, count,
				   NULL, NULL, plan);

	seconds = thread_cpu_s() - before;
	if (rc != FS_OK)
		return rc;
	*outcome = (struct placement_outcome){
		.fill = 100 * plan->stats.fill,
		.whole = 100 * (double)plan->stats.placed_bytes / (double)run->segment_bytes,
		.pages = mean_pages(plan, candidates),
		.hashes =
			plan->count > plan->extents ? (double)plan->stats.hashes / (plan->count - plan->extents) : NAN,
		.extents = plan->count ? 100.0 * plan->extents / plan->count : NAN,
		.mb_s = (double)run->segment_bytes / 1e6 / seconds,
		.memory_bytes = (status_bytes("VmHWM:") - resident) / count,
	};
	return FS_OK;
}
