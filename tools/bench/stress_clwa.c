/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "stress_clwa": large objects that are set once, all admitted, so that flash is a FIFO of them. How many
 * bytes go to the drive for each byte set? An object that is written must be found again: one that isn't is set,
 * or written, in vain.
 *
 * No object is more than 1/32 of a segment. From 4 KiB on segments are so small that each object goes through the
 * extent table (over 1/64 of a segment); below, header and footer would be much of such a segment.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tools/bench/stress_part.h"

#define STUDY "stress_clwa"
#define OBJECT_LEAST_KIB 2
#define OBJECT_MOST_KIB 1024
#define OBJECTS_OF_SEGMENT 32
#define SEGMENT_LEAST (256ull << 10)
#define RECORD_EXTRA_BYTES 100 /* at least a record's header and key, so that a share of a segment is kept */
#define FLASH_LEAST_BYTES (64ull << 20) /* at scale 1 */
#define FLASH_LEAST_EVER (16ull << 20)
#define SEGMENTS 32 /* at scale 1 */
#define SEGMENTS_LEAST 16
#define MEMORY_LEAST_MB 16
#define MEMORY_OF_SEGMENT 8
#define THEIRS_MEMORY_LEAST_MB 64
#define THEIRS_FLASH_LEAST (128ull << 20)
#define SEGMENTS_PER_SECOND 50.0 /* at most, so that all that is set is written, whatever a segment takes by itself */
#define LARGE_KIB 16 /* objects from here on cost so little CPU that they can be set faster */
#define LARGE_BYTES_PER_SECOND 120e6
#define TURNS 3
#define KEY_BYTES 30
#define PROBES 400
#define KEPT_SHARE 0.8 /* of the flash, by the newest keys: those must be there */
#define NAME_BYTES 64
#define MIB 1048576.0

/* Of a size: with segments of 32 objects of that size, just below 1/32 of a segment, and just over 1/64. */
static const double shares[] = { 1, 0.52 };
enum { SHARES = sizeof(shares) / sizeof(shares[0]) };

struct fifo {
	struct bench *bench;
	struct server server;
	char row[NAME_BYTES];
	uint32_t value_bytes;
	uint64_t flash_bytes, next_key;
	double bytes_per_second;
};

static double stat_of(struct fifo *fifo, const char *name)
{
	return server_stat(&fifo->server, "flash", name);
}

static void add(struct fifo *fifo, const char *column, double value)
{
	figures_add(fifo->bench->figures, STUDY, fifo->row, column, value);
}

static uint64_t turn_keys(const struct fifo *fifo)
{
	return stress_keys_of((double)fifo->flash_bytes, fifo->value_bytes);
}

static int set(struct fifo *fifo, uint64_t keys)
{
	struct load_spec spec =
		stress_sets(fifo->bench, fifo->next_key, keys, fifo->value_bytes, false, fifo->bytes_per_second);
	struct load_result result;
	int rc = stress_run(STUDY, &spec, &fifo->server, &result);

	fifo->next_key += keys;
	if (result.errors)
		figures_note(fifo->bench->figures, STUDY, "%s: sets failed, the first with: %s", fifo->row,
			     result.first_error);
	load_result_fini(&result);
	return rc;
}

/* Of the newest keys that the flash has room for, how many are there? */
static int probe(struct fifo *fifo)
{
	uint64_t keys = (uint64_t)fmax(1, KEPT_SHARE * (double)turn_keys(fifo));
	struct load_spec spec = stress_sets(fifo->bench, fifo->next_key - keys, keys, fifo->value_bytes, false, 0);
	struct load_result result;
	int rc;

	spec.kind = LOAD_GET;
	spec.order = LOAD_UNIFORM;
	spec.operations = PROBES;
	rc = stress_run(STUDY, &spec, &fifo->server, &result);
	if (rc == FS_OK)
		add(fifo, "clwa_kept_percent", 100 * (double)result.hits / (double)result.gets);
	load_result_fini(&result);
	return rc;
}

struct written {
	double device_bytes, objects, dead;
};

static struct written written_of(struct fifo *fifo)
{
	return (struct written){
		.device_bytes = (double)atomic_load(&fifo->server.drive->writes.bytes),
		.objects = stat_of(fifo, "flash_objects_written"),
		.dead = stat_of(fifo, "flash_dead_on_commit"),
	};
}

/* One turn to fill it, and then those that are measured. */
static int measure(struct fifo *fifo)
{
	uint64_t keys = TURNS * turn_keys(fifo);
	struct written before, after;
	double set_bytes = (double)keys * (KEY_BYTES + fifo->value_bytes), written;
	int rc = set(fifo, turn_keys(fifo) + turn_keys(fifo) / 4);

	if (rc != FS_OK || bench_interrupted())
		return rc;
	before = written_of(fifo);
	rc = set(fifo, keys);
	after = written_of(fifo);
	if (rc != FS_OK || bench_interrupted())
		return rc;
	add(fifo, "clwa_set_mib", set_bytes / MIB);
	written = (after.objects - before.objects) / (double)keys;
	add(fifo, "clwa", (after.device_bytes - before.device_bytes) / set_bytes);
	add(fifo, "clwa_written_percent", 100 * written);
	add(fifo, "clwa_of_written", (after.device_bytes - before.device_bytes) / set_bytes / written);
	add(fifo, "clwa_dead_percent", 100 * (after.dead - before.dead) / (after.objects - before.objects));
	return probe(fifo);
}

/* ---- set-ups --------------------------------------------------------------------------------- */

static uint64_t at_least(uint64_t value, uint64_t least)
{
	return value > least ? value : least;
}

static uint64_t segment_of(uint64_t object_kib)
{
	return at_least(object_kib * OBJECTS_OF_SEGMENT << 10, SEGMENT_LEAST);
}

/* Sizes follow from the segment; extstore has what it needs at the least. */
static struct server_spec spec_of(const struct bench *bench, enum server_kind kind, uint64_t object_kib)
{
	static const char *const theirs[] = { "-o", "slab_automove=2,ext_threads=16", "-I", "2m", NULL };
	uint64_t segment = segment_of(object_kib);
	struct server_spec spec = {
		.kind = kind,
		.threads = 1,
		.memory_mb = at_least(segment * MEMORY_OF_SEGMENT >> 20, MEMORY_LEAST_MB),
		.flash_bytes = at_least(segment * bench_scaled(bench, SEGMENTS, SEGMENTS_LEAST),
					bench_scaled(bench, FLASH_LEAST_BYTES, FLASH_LEAST_EVER)),
	};

	if (kind == SERVER_EXTSTORE) {
		spec.memory_mb = at_least(spec.memory_mb, THEIRS_MEMORY_LEAST_MB);
		spec.flash_bytes = at_least(spec.flash_bytes, THEIRS_FLASH_LEAST);
		spec.extra = theirs;
	}
	return spec;
}

static void row_name(enum server_kind kind, uint64_t object_kib, double share, char out[NAME_BYTES])
{
	double kib = share * (double)object_kib;

	if (kind == SERVER_FLASHIELD)
		snprintf(out, NAME_BYTES, "%.4g KiB, 1/%.0f segment", kib, (double)segment_of(object_kib) / 1024 / kib);
	else
		snprintf(out, NAME_BYTES, "%.4g KiB, %s", kib, server_names[kind]);
}

/* Of objects set, so that all are written. */
static double rate_of(enum server_kind kind, uint64_t object_kib)
{
	double rate = object_kib < LARGE_KIB ? STRESS_BYTES_PER_SECOND : LARGE_BYTES_PER_SECOND;

	return kind == SERVER_FLASHIELD ? fmin(rate, SEGMENTS_PER_SECOND * (double)segment_of(object_kib)) : rate;
}

static int run(struct bench *bench, enum server_kind kind, uint64_t object_kib, double share)
{
	char segment[32];
	const char *const ours[] = { "--admission", "all", "--segment-size", segment, "-I", "2m", NULL };
	struct server_spec spec = spec_of(bench, kind, object_kib);
	struct fifo fifo = { .bench = bench, .flash_bytes = spec.flash_bytes };
	bool runs;
	int rc;

	snprintf(segment, sizeof(segment), "%llu", (unsigned long long)segment_of(object_kib));
	fifo.bytes_per_second = rate_of(kind, object_kib);
	if (kind == SERVER_FLASHIELD)
		spec.extra = ours;
	fifo.value_bytes = (uint32_t)(share * (double)(object_kib << 10)) - RECORD_EXTRA_BYTES;
	row_name(kind, object_kib, share, fifo.row);
	bench_progress(bench, STUDY ": %s", fifo.row);
	rc = stress_start(bench, STUDY, &spec, &fifo.server, &runs);
	if (rc != FS_OK || !runs)
		return rc;
	return stress_stop(&fifo.server, &runs, measure(&fifo));
}

/* ---- the study ------------------------------------------------------------------------------- */

static void describe(struct figures *figures)
{
	figures_study(
		figures, STUDY, "bytes written per byte set, large objects set once, extstore beside",
		"New objects (keys of 30 B) are set at 40 MB/s, from 16 KiB on at 120 MB/s, ours at 50 segments a second at most, "
		"--admission all, -t 1: 1.25 turns of the flash, and then three more, which are measured. An object with its "
		"record's header is just below 1/32 of a segment, or just over 1/64, but segments have at least 256 KiB. The flash "
		"has 32 segments (times the scale, at least 16) and at least 64 MiB (times the scale); -m is 8 segments, at least "
		"16. extstore: at least -m 64 and 128 MiB. CLWA: bytes to the drive over keys and values set. written: objects "
		"written to flash, of those set; the others were evicted before. WA: bytes to the drive over keys and values of "
		"objects written. dead: of those written, no longer current or without a place in the index. kept: of the newest "
		"keys that 80 % of the flash has room for.");
	figures_column(figures, "clwa_set_mib", "MiB set", 0);
	figures_column(figures, "clwa", "CLWA", 3);
	figures_column(figures, "clwa_written_percent", "written %", 1);
	figures_column(figures, "clwa_of_written", "WA", 3);
	figures_column(figures, "clwa_dead_percent", "dead %", 1);
	figures_column(figures, "clwa_kept_percent", "kept %", 1);
}

static double most(const struct figures *figures, enum server_kind kind, const char *column)
{
	double value = NAN;
	char row[NAME_BYTES];

	for (uint64_t kib = OBJECT_LEAST_KIB; kib <= OBJECT_MOST_KIB; kib *= 2)
		for (int i = 0; i < SHARES; i++) {
			row_name(kind, kib, shares[i], row);
			value = fmax(value, figures_median(figures, STUDY, row, column));
		}
	return value;
}

static int run_size(struct bench *bench, uint64_t kib)
{
	int rc = FS_OK;

	for (int i = 0; i < SHARES && rc == FS_OK && !bench_interrupted(); i++)
		rc = run(bench, SERVER_FLASHIELD, kib, shares[i]);
	return rc == FS_OK && !bench_interrupted() ? run(bench, SERVER_EXTSTORE, kib, shares[0]) : rc;
}

/* One round: bytes hardly depend on the machine's mood. */
int study_stress_clwa(struct bench *bench)
{
	int rc = FS_OK;

	describe(bench->figures);
	if (!stress_possible(bench, STUDY))
		return FS_OK;
	for (uint64_t kib = OBJECT_LEAST_KIB; kib <= OBJECT_MOST_KIB && rc == FS_OK && !bench_interrupted(); kib *= 2)
		rc = run_size(bench, kib);
	if (rc != FS_OK)
		return rc;
	figures_target(bench->figures, "CLWA of a FIFO of large objects (worst size)",
		       most(bench->figures, SERVER_FLASHIELD, "clwa"), FIGURES_AT_MOST, 1.05, "");
	figures_beside(bench->figures, "  of what was written",
		       most(bench->figures, SERVER_FLASHIELD, "clwa_of_written"), "");
	figures_beside(bench->figures, "  extstore", most(bench->figures, SERVER_EXTSTORE, "clwa"), "");
	return FS_OK;
}
