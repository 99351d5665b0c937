/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of the study "flash" (flash.c): servers whose objects lie on flash (flash_servers.c), loads
 * that no page cache helps, and what is counted meanwhile (flash_load.c).
 *
 * Flashield reads its file with O_DIRECT. Extstore reads through the page cache, which is dropped every
 * FLASH_DROP_MS while a load runs; what came from the disk nevertheless or not is counted by the kernel.
 *
 * Threads: one (the load has its own). Errors: those of load.h.
 */
#ifndef FS_TOOLS_BENCH_FLASH_PART_H
#define FS_TOOLS_BENCH_FLASH_PART_H

#include "tools/bench/flash_fill.h"

#define FLASH_STUDY "flash"
#define FLASH_DROP_MS 20
#define FLASH_SHARE_LEAST 0.99 /* of the hits of a measurement that flash must serve */

/* Since the server's start, or between two readings. NaN: it has no such figure. */
struct flash_counts {
	double hits, flash_hits;
	double reads, pages; /* for keys, and 4 KiB pages in them: flashield's, as the next four */
	double reads_on_hit, lookups_hit;
	double reads_on_miss, lookups_miss;
	double disk_bytes; /* what the kernel fetched for the process */
};

void flash_count(struct server *server, struct flash_counts *counts);
void flash_difference(const struct flash_counts *before, const struct flash_counts *after, struct flash_counts *out);

/* Runs the load with cold page cache; *counts are those of its whole run, warm-up included. Wrong values
   are FS_ECORRUPT here. Call load_result_fini in any case. */
FS_MUST_CHECK int flash_load(const struct bench *bench, const struct load_spec *spec, struct server *server,
			     struct load_result *result, struct flash_counts *counts);

/* DRAM is a flashield whose objects all stay in memory. RAW is no server. */
enum contender { OURS, DRAM, EXTSTORE, THREADED, SERVERS, RAW = SERVERS, CONTENDERS };
extern const char *const flash_names[CONTENDERS];

struct flash {
	struct bench *bench;
	const struct flash_size *size;
	struct server servers[SERVERS];
	bool runs[SERVERS]; /* started, and something to ask for */
	struct flash_range ranges[SERVERS];
	struct flash_counts total; /* of all loads on OURS */
};

/* Starts and fills all servers; bench and size are given. What can't be compared with is a note. Whatever
   is returned, flash_stop is to be called; it returns rc, or, if that is FS_OK, what went wrong in ending
   them. */
FS_MUST_CHECK int flash_start(struct flash *flash);
FS_MUST_CHECK int flash_stop(struct flash *flash, int rc);

#endif
