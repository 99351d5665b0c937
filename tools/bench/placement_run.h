/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One plan of the placement study, measured.
 *
 * Threads: the calling one; its CPU clock is read.
 */
#ifndef FS_TOOLS_BENCH_PLACEMENT_RUN_H
#define FS_TOOLS_BENCH_PLACEMENT_RUN_H

#include <stdint.h>

#include "segments/segments.h"

extern const char *const placement_kinds[2]; /* by enum seg_placement */

struct placement_run {
	uint64_t segment_bytes;
	uint64_t sequence;
	unsigned functions; /* 1 .. SEG_SIMULATED_FUNCTIONS */
	enum seg_placement placement;
};

struct placement_outcome {
	double fill; /* % of the areas that records may lie in */
	double whole; /* % of the whole segment, header and footer included; no filter in it */
	double pages; /* in which a record of less than 1 KiB lies, on average */
	double hashes; /* per placed object */
	double extents; /* % of the placed objects that are extents */
	double mb_s; /* 10^6 bytes of segment planned per second of CPU */
	double memory_bytes; /* peak beside the candidates, per candidate; NaN where the kernel doesn't tell
			      */
};

/* Plans and measures. The plan is the caller's, who calls seg_plan_fini after FS_OK. */
FS_MUST_CHECK int placement_measure(const struct placement_run *run, const struct seg_candidate *candidates,
				    uint32_t count, struct placement_outcome *outcome, struct seg_plan *plan);

#endif
