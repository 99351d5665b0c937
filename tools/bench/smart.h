/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a drive counts itself: bytes that the host has written and bytes that went to its NAND, as smartctl
 * (and nvme, for the Open Compute log) tell them in JSON. Both programs are optional at run time.
 *
 *   file or block device ──smart_find_drive──> "nvme0n1" ──smart_read──> counters, before and after
 *                                                             └─ smart_amplification, smart_host_bytes
 *
 * Which attributes count what: the names of smartctl's drive database, not their numbers, as a number
 * means different things on different drives.
 *
 * Threads: any, but for smart_read, which starts programs and waits for them: the main thread.
 */
#ifndef FS_TOOLS_BENCH_SMART_H
#define FS_TOOLS_BENCH_SMART_H

#include <stdbool.h>

#include "base/error.h"

#define SMART_NAME_BYTES 64
#define SMART_WHY_BYTES 256

/* Since the drive was made. NaN: the drive does not tell. */
struct smart_counters {
	double host_bytes;
	double nand_bytes;
	/* Of drives that count pages of a size they don't tell: for the host, and for the drive itself. */
	double host_pages, own_pages;
	double step_bytes; /* the coarsest step in which these bytes are counted; 0 without any */
	char model[SMART_NAME_BYTES]; /* "" if unknown */
	char source[SMART_WHY_BYTES]; /* the counters used, by name */
};

void smart_clear(struct smart_counters *counters); /* nothing is told */

/* Adds what "smartctl --json -i -A" printed. FS_ECORRUPT if it is no JSON object. FS_EOFFLINE if smartctl
   could not ask the drive; then why (SMART_WHY_BYTES) has its first message. */
FS_MUST_CHECK int smart_parse_smartctl(const char *json, struct smart_counters *counters, char *why);
/* Adds what "nvme ocp smart-add-log -o json" printed. FS_ECORRUPT if it isn't that. */
FS_MUST_CHECK int smart_parse_ocp(const char *json, struct smart_counters *counters);

/* Does it tell what smart_amplification needs? */
bool smart_counts_nand(const struct smart_counters *counters);

/* Written to NAND per byte written by the host between two readings; NaN if not told or nothing moved. */
double smart_amplification(const struct smart_counters *before, const struct smart_counters *after);
/* Bytes that the host wrote in between, by the drive's count; NaN if not told. */
double smart_host_bytes(const struct smart_counters *before, const struct smart_counters *after);

/* The whole drive below a block device number: a partition's parent, the one device below a mapping.
   sysfs is "/sys" but in tests. FS_ENOTFOUND: there is none, or more than one. */
FS_MUST_CHECK int smart_find_drive(const char *sysfs, unsigned major, unsigned minor, char name[SMART_NAME_BYTES]);

/* Reads the counters of /dev/<name>. FS_ENOTFOUND: no smartctl here; FS_EOFFLINE: it could not ask the
   drive; FS_ECORRUPT: it printed something else. why (SMART_WHY_BYTES) has the reason in words;
   on success it is empty, or says why there is no count of NAND writes. */
FS_MUST_CHECK int smart_read(const char *name, struct smart_counters *counters, char *why);

#endif
