/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the studies of stress share: servers under an emulated drive (tools/slowdrive) whose objects lie on flash,
 * and counters that are read with the time, so that rates hold although the questions wait in a busy server.
 *
 *   stress_overload  the drive does fewer reads than are asked for
 *   stress_hang      the drive answers nothing for a while
 *   stress_memory    what of -m is items
 *   stress_clwa      bytes written per byte set, large objects
 *   stress_hot       one object that everybody asks for
 *   stress_index     --flash-object-size far from the truth
 *
 * Threads: one (loads have their own). Errors: those of load.h and server.h.
 */
#ifndef FS_TOOLS_BENCH_STRESS_PART_H
#define FS_TOOLS_BENCH_STRESS_PART_H

#include "tools/bench/flash_fill.h"

/* False, and a note: the emulated drive is not there. */
bool stress_possible(const struct bench *bench, const char *study);

/* As server_start. *runs: it was started; where memcached is not there, that is a note and FS_OK. */
FS_MUST_CHECK int stress_start(const struct bench *bench, const char *study, const struct server_spec *spec,
			       struct server *server, bool *runs);

/* What makes only the keys go to flash that flash_fill wants there; extstore with 16 I/O threads. */
extern const char *const stress_ours[];
extern const char *const stress_theirs[];

/* stress_start and flash_fill. Where no keys came to lie on flash, that is a note, and *runs is false. Takes away the
   limits of the drive. */
FS_MUST_CHECK int stress_start_filled(const struct bench *bench, const char *study, const struct server_spec *spec,
				      const struct flash_size *size, struct server *server, struct flash_range *range,
				      bool *runs);

/* Stops it if it runs. Returns rc, or, if that is FS_OK, what went wrong. */
FS_MUST_CHECK int stress_stop(struct server *server, bool *runs, int rc);

/* Runs a load to its end. A wrong value is FS_ECORRUPT, with a line on standard error. */
FS_MUST_CHECK int stress_run(const char *study, const struct load_spec *spec, struct server *server,
			     struct load_result *result);

/* Sets of new keys in order, each read at once if it says so; bytes_per_second 0: as fast as it goes. At
   STRESS_BYTES_PER_SECOND our cleaner keeps up, which shares the CPU, so that what is to be written is written. */
#define STRESS_BYTES_PER_SECOND 40e6
struct load_spec stress_sets(const struct bench *bench, uint64_t first_key, uint64_t keys, uint32_t value_bytes,
			     bool reads_back, double bytes_per_second);
/* How many keys with such values are so many bytes, with keys and headers; at least 1. */
uint64_t stress_keys_of(double bytes, uint32_t value_bytes);

double stress_now(void); /* monotonic, in seconds */
void stress_sleep(double seconds);

/* ---- counters ---- */

enum stress_counter {
	STRESS_FLASH_HITS,
	STRESS_DRAM_HITS,
	STRESS_MISSES,
	STRESS_SETS,
	STRESS_SHED, /* flash_reads_shed: gets that were answered as misses without a read */
	STRESS_SHARED, /* flash_reads_shared: gets that waited for another's read */
	STRESS_DRIVE_READS,
	STRESS_CPU, /* seconds */
	STRESS_COUNTERS
};

struct stress_counts {
	double value[STRESS_COUNTERS], at[STRESS_COUNTERS]; /* at: stress_now */
};

void stress_count(struct server *server, struct stress_counts *counts);
/* Per second between two readings. NaN where the server has no such counter. */
double stress_rate(const struct stress_counts *before, const struct stress_counts *after, enum stress_counter counter);
/* Between two readings. */
double stress_gain(const struct stress_counts *before, const struct stress_counts *after, enum stress_counter counter);

/* Lets the drive work without limits until it has had nothing to do for a while (bounded). */
void stress_drain(struct server *server);

/* ---- what a server holds ---- */

/* Items in DRAM; of extstore, those that are not on its flash. */
double stress_dram_items(struct server *server);
/* The promise of resident memory for its -m. */
double stress_resident_limit_mib(uint64_t memory_mb);

#endif
