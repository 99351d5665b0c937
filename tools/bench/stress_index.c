/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "stress_index": --flash-object-size far from the truth. After three turns of the flash, what does an object
 * there cost in DRAM, how much of the flash is used, are objects lost, does a miss read, and what do sets wait, above
 * all while the index gets another table?
 *
 * Sets are timed by a few of their own, beside those that fill the flash, in windows: those in which the index has
 * grown are told apart from the others.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tools/bench/stress_part.h"

#define STUDY "stress_index"
#define MEMORY_MB 256 /* at scale 1 */
#define MEMORY_LEAST_MB 64
#define FLASH_OF_MEMORY 2
#define TURNS 3
#define BYTES_PER_SECOND 30e6 /* less than what a server on one CPU can do, as latencies are told */
#define VALUE_BYTES 257
#define RECORD_BYTES 320 /* of such a value on flash: with its header and a key of 30 B */
#define TIMED_FIRST 4000000000ull
#define TIMED_RATE 2000
#define WINDOW_SECONDS 0.25
#define KEPT_SHARE 0.8 /* of the flash, by the newest keys: those must be there */
#define PROBES 20000
#define ABSENT 5000000000ull /* keys from here on are never set */
#define NAME_BYTES 64
#define MIB 1048576.0

static const struct factor {
	const char *name;
	double of_truth;
} factors[] = {
	{ "1/10", 0.1 }, { "1/4", 0.25 }, { "1/2", 0.5 }, { "right", 1 }, { "2", 2 }, { "4", 4 }, { "10", 10 }
};

enum { FACTORS = sizeof(factors) / sizeof(factors[0]) };

struct sized {
	struct bench *bench;
	struct server server;
	char row[NAME_BYTES];
	uint64_t memory_mb, flash_bytes, next_key, next_timed;
	struct hist *growing, *steady; /* ns that sets took, in windows in which the index has grown, and in others */
	unsigned grown; /* windows */
};

static double stat_of(struct sized *sized, const char *name)
{
	return server_stat(&sized->server, "flash", name);
}

static void add(struct sized *sized, const char *column, double value)
{
	figures_add(sized->bench->figures, STUDY, sized->row, column, value);
}

static uint64_t keys_of(const struct sized *sized, double turns)
{
	return (uint64_t)(turns * (double)sized->flash_bytes / RECORD_BYTES);
}

/* Some sets of new keys, one at a time. */
static int time_window(struct sized *sized)
{
	struct load_spec spec = stress_sets(sized->bench, TIMED_FIRST + sized->next_timed,
					    (uint64_t)(TIMED_RATE * WINDOW_SECONDS), VALUE_BYTES, false, 0);
	double slots = stat_of(sized, "index_slots");
	struct load_result result;
	int rc;

	spec.connections = spec.pipeline = 1;
	spec.rate = TIMED_RATE;
	spec.urgent = true;
	sized->next_timed += spec.keys;
	rc = stress_run(STUDY, &spec, &sized->server, &result);
	if (rc == FS_OK && stat_of(sized, "index_slots") > slots) {
		hist_merge(sized->growing, result.set_latency);
		sized->grown++;
	} else if (rc == FS_OK) {
		hist_merge(sized->steady, result.set_latency);
	}
	load_result_fini(&result);
	return rc;
}

/* Another turn. */
static int set_turn(struct sized *sized)
{
	uint64_t keys = keys_of(sized, 1);
	struct load_spec spec = stress_sets(sized->bench, sized->next_key, keys, VALUE_BYTES, false, BYTES_PER_SECOND);
	struct load_result result;
	struct load *load;
	int rc = load_start(&load, &spec, &sized->server), joined;

	if (rc != FS_OK)
		return rc;
	while (rc == FS_OK && load_running(load) && !bench_interrupted())
		rc = time_window(sized);
	load_stop(load);
	joined = load_join(load, &result);
	load_result_fini(&result);
	sized->next_key += keys;
	return rc != FS_OK ? rc : joined;
}

static int get(struct sized *sized, uint64_t first_key, uint64_t keys, bool absent, double *hit_share,
	       double *reads_per_get)
{
	struct load_spec spec = stress_sets(sized->bench, first_key, keys, VALUE_BYTES, false, 0);
	uint64_t reads = atomic_load(&sized->server.drive->reads.done);
	struct load_result result;
	int rc;

	spec.kind = LOAD_GET;
	spec.order = LOAD_UNIFORM;
	spec.operations = PROBES;
	spec.expect_misses = absent;
	rc = stress_run(STUDY, &spec, &sized->server, &result);
	reads = atomic_load(&sized->server.drive->reads.done) - reads;
	*hit_share = (double)result.hits / (double)result.gets;
	*reads_per_get = (double)reads / (double)result.gets;
	load_result_fini(&result);
	return rc;
}

static int probe(struct sized *sized)
{
	uint64_t keys = keys_of(sized, KEPT_SHARE);
	double hits, reads;
	int rc = get(sized, sized->next_key - keys, keys, false, &hits, &reads);

	if (rc != FS_OK)
		return rc;
	add(sized, "index_kept_percent", 100 * hits);
	add(sized, "index_reads_per_get", reads);
	rc = get(sized, ABSENT, keys, true, &hits, &reads);
	if (rc == FS_OK)
		add(sized, "index_reads_per_miss", reads);
	return rc;
}

static void add_state(struct sized *sized)
{
	double used = stat_of(sized, "segments_used") / stat_of(sized, "segments_total");

	add(sized, "index_objects", stat_of(sized, "flash_items"));
	add(sized, "index_dram_bytes", stat_of(sized, "dram_bytes_per_flash_item"));
	add(sized, "index_load", stat_of(sized, "index_load"));
	add(sized, "index_mib",
	    (stat_of(sized, "index_bytes") + stat_of(sized, "filter_bytes") + stat_of(sized, "index_other_bytes")) /
		    MIB);
	add(sized, "index_segments_percent", 100 * used);
	/* Of all segments, bytes of objects that can still be found. */
	add(sized, "index_live_percent", 100 * stat_of(sized, "flash_live_bytes") / (double)sized->flash_bytes);
	add(sized, "index_drops", stat_of(sized, "index_drops"));
}

static void add_latencies(struct sized *sized)
{
	add(sized, "index_grown", sized->grown);
	add(sized, "index_growing_p99_us", sized->grown ? (double)hist_quantile(sized->growing, 0.99) / 1e3 : NAN);
	add(sized, "index_set_p99_us", (double)hist_quantile(sized->steady, 0.99) / 1e3);
	add(sized, "index_set_max_us",
	    fmax((double)atomic_load(&sized->growing->max), (double)atomic_load(&sized->steady->max)) / 1e3);
}

static int measure(struct sized *sized)
{
	int rc = FS_OK;

	for (unsigned turn = 0; turn <= TURNS && rc == FS_OK && !bench_interrupted(); turn++)
		rc = set_turn(sized);
	if (rc != FS_OK || bench_interrupted())
		return rc;
	add_state(sized);
	add_latencies(sized);
	return probe(sized);
}

static int run(struct bench *bench, const struct factor *factor)
{
	char object_size[32];
	const char *const extra[] = { "--admission", "all", "--flash-object-size", object_size, NULL };
	struct sized sized = { .bench = bench, .memory_mb = bench_scaled(bench, MEMORY_MB, MEMORY_LEAST_MB) };
	struct server_spec spec = {
		.kind = SERVER_FLASHIELD, .memory_mb = sized.memory_mb, .threads = 1, .extra = extra
	};
	bool runs;
	int rc;

	sized.flash_bytes = spec.flash_bytes = FLASH_OF_MEMORY * sized.memory_mb << 20;
	snprintf(object_size, sizeof(object_size), "%.0f", RECORD_BYTES * factor->of_truth);
	snprintf(sized.row, sizeof(sized.row), "%s (%s B)", factor->name, object_size);
	bench_progress(bench, STUDY ": %s", sized.row);
	rc = stress_start(bench, STUDY, &spec, &sized.server, &runs);
	if (rc != FS_OK || !runs)
		return rc;
	sized.growing = hist_create();
	sized.steady = hist_create();
	rc = measure(&sized);
	hist_destroy(sized.growing);
	hist_destroy(sized.steady);
	return stress_stop(&sized.server, &runs, rc);
}

/* ---- the study ------------------------------------------------------------------------------- */

static void describe(struct figures *figures)
{
	figures_study(
		figures, STUDY, "--flash-object-size far from the truth",
		"New keys of 30 B with values of 257 B (320 B on flash) are set at 30 MB/s until the flash has turned over "
		"three times after it was full. Rows: the option, of the truth. -m 256 and 512 MiB of flash, both times the "
		"scale; --admission all, -t 1. DRAM: index, filters and tables, per object on flash. segments: used, of all; "
		"live: bytes of objects that can be found, of the flash. kept: of the newest keys that 80 % of the flash has room "
		"for; reads: of the drive per get of those, and per get of keys that were never set. set p99, max: of 2000 sets a "
		"second on a connection beside, in windows of a quarter of a second; growing: in those in which the index got "
		"more slots, grown: how many.");
	figures_column(figures, "index_growing_p99_us", "growing set p99 us", 0);
	figures_column(figures, "index_grown", "grown", 0);
	figures_column(figures, "index_set_p99_us", "set p99 us", 0);
	figures_column(figures, "index_set_max_us", "set max us", 0);
	figures_column(figures, "index_objects", "objects on flash", 0);
	figures_column(figures, "index_dram_bytes", "DRAM B /object", 2);
	figures_column(figures, "index_load", "index load", 3);
	figures_column(figures, "index_mib", "index MiB", 1);
	figures_column(figures, "index_segments_percent", "segments %", 1);
	figures_column(figures, "index_live_percent", "live %", 1);
	figures_column(figures, "index_drops", "drops", 0);
	figures_column(figures, "index_kept_percent", "kept %", 2);
	figures_column(figures, "index_reads_per_get", "reads /get", 3);
	figures_column(figures, "index_reads_per_miss", "reads /miss", 4);
}

static double worst(const struct figures *figures, const char *column, bool least)
{
	double value = NAN;
	char row[NAME_BYTES];

	for (int i = 0; i < FACTORS; i++) {
		double median;

		snprintf(row, sizeof(row), "%s (%.0f B)", factors[i].name, RECORD_BYTES * factors[i].of_truth);
		median = figures_median(figures, STUDY, row, column);
		value = least ? fmin(value, median) : fmax(value, median);
	}
	return value;
}

/* One round: what an index holds hardly depends on the machine's mood. */
int study_stress_index(struct bench *bench)
{
	struct figures *figures = bench->figures;
	int rc = FS_OK;

	describe(figures);
	if (!stress_possible(bench, STUDY))
		return FS_OK;
	for (int i = 0; i < FACTORS && rc == FS_OK && !bench_interrupted(); i++)
		rc = run(bench, &factors[i]);
	if (rc != FS_OK)
		return rc;
	figures_target(figures, "any --flash-object-size: DRAM per object on flash (worst case)",
		       worst(figures, "index_dram_bytes", false), FIGURES_AT_MOST, 4.5, "B");
	figures_target(figures, "any --flash-object-size: of the flash used (worst case)",
		       worst(figures, "index_live_percent", true), FIGURES_AT_LEAST, 97, "%");
	figures_target(figures, "any --flash-object-size: drive reads per miss (worst case)",
		       worst(figures, "index_reads_per_miss", false), FIGURES_AT_MOST, 0.01, "");
	figures_beside(figures, "  p99 of sets while a table is added (worst case)",
		       worst(figures, "index_growing_p99_us", false), "us");
	figures_beside(figures, "  p99 of other sets (worst case)", worst(figures, "index_set_p99_us", false), "us");
	return FS_OK;
}
