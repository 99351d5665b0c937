/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "stress_memory": how much of -m is items, for small and large memories and values, with flash in use and
 * without; and when sizes shift from 1000 B to 256 B, does resident memory stay within its bound, and do items get
 * their share again? Each key is read right after it was set, and must be there.
 */
#include <math.h>
#include <stdio.h>

#include "tools/bench/stress_part.h"

#define STUDY "stress_memory"
#define MEMORY_MOST_MB 1024 /* at scale 1 */
#define MEMORY_MOST_LEAST_MB 128
#define THEIRS_LEAST_MB 64 /* less memory is no set-up for memcached */
#define TURNS_OF_MEMORY 3.0 /* bytes set, in memories, without flash */
#define TURNS_OF_FLASH 1.5 /* beyond the memory, with flash */
#define FLASH_OF_MEMORY 2
#define FLASH_LEAST_MB 128
#define KEY_BYTES 30
#define LOOK_SECONDS 0.1
#define MIB 1048576.0
#define NAME_BYTES 64

/* Values one size after the other; the last is what is measured. */
static const struct shift {
	const char *name;
	uint32_t value_bytes[2]; /* 0: none */
} shifts[] = {
	{ "100 B", { 100, 0 } },
	{ "300 B", { 300, 0 } },
	{ "4 KiB", { 4096, 0 } },
	{ "1000 B, then 256 B", { 1000, 256 } },
};

/* The promises. The last one's memory is scaled. */
static struct memory {
	uint64_t mb;
	double items_percent;
} memories[] = { { 8, 60 }, { 64, 88 }, { MEMORY_MOST_MB, 94 } };

enum { SHIFTS = sizeof(shifts) / sizeof(shifts[0]), MEMORIES = sizeof(memories) / sizeof(memories[0]) };

static const struct contender {
	const char *name;
	enum server_kind kind;
	bool flash;
} contenders[] = {
	{ "flashield", SERVER_FLASHIELD, false },
	{ "memcached", SERVER_MEMCACHED, false },
	{ "flashield + flash", SERVER_FLASHIELD, true },
	{ "extstore", SERVER_EXTSTORE, true },
};

enum { CONTENDERS = sizeof(contenders) / sizeof(contenders[0]), OURS = 0, OURS_FLASH = 2 };

struct measured {
	struct bench *bench;
	struct server server;
	char row[NAME_BYTES];
	uint64_t memory_mb, next_key, missing;
	double items_sum, items_least, payload_sum; /* in percent */
	unsigned looks;
};

static void row_name(const struct memory *memory, const struct shift *shift, const struct contender *contender,
		     char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "-m %llu, %s, %s", (unsigned long long)memory->mb, shift->name, contender->name);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Of what index and filters leave. memcached's `bytes` are items' bytes, and nothing is beside them; extstore counts
   what is on flash too. */
static double items_percent(struct measured *measured)
{
	struct server *server = &measured->server;
	double memory = (double)measured->memory_mb * MIB;

	if (server->spec.kind == SERVER_EXTSTORE)
		return NAN;
	if (server->spec.kind == SERVER_MEMCACHED)
		return 100 * server_stat(server, "", "bytes") / memory;
	if (server->spec.flash_bytes)
		memory -= server_stat(server, "flash", "index_bytes") + server_stat(server, "flash", "filter_bytes") +
			  server_stat(server, "flash", "index_other_bytes");
	return 100 * server_stat(server, "flash", "dram_bytes") / memory;
}

static void look(struct measured *measured, uint32_t value_bytes)
{
	double percent = items_percent(measured);

	measured->items_sum += percent;
	measured->items_least = fmin(measured->items_least, percent);
	if (!isnan(percent))
		measured->payload_sum += 100 * stress_dram_items(&measured->server) * (KEY_BYTES + value_bytes) / MIB /
					 (double)measured->memory_mb;
	measured->looks++;
}

/* Sets keys in the background and looks meanwhile. */
static int set_and_look(struct measured *measured, const struct load_spec *spec)
{
	struct load_result result;
	struct load *load;
	int rc = load_start(&load, spec, &measured->server);

	if (rc != FS_OK)
		return rc;
	while (load_running(load)) {
		look(measured, spec->value_bytes);
		stress_sleep(LOOK_SECONDS);
	}
	rc = load_join(load, &result);
	if (rc == FS_OK && result.wrong)
		rc = FS_ECORRUPT;
	measured->missing += result.gets - result.hits;
	load_result_fini(&result);
	return rc;
}

static int set(struct measured *measured, const struct load_spec *spec)
{
	struct load_result result;
	int rc = stress_run(STUDY, spec, &measured->server, &result);

	measured->missing += result.gets - result.hits;
	load_result_fini(&result);
	return rc;
}

/* ---- a row ----------------------------------------------------------------------------------- */

/* Two thirds to fill, and one to look. */
static int fill(struct measured *measured, uint32_t value_bytes, bool looks)
{
	const struct server_spec *server = &measured->server.spec;
	double memory = (double)measured->memory_mb * MIB;
	double bytes =
		server->flash_bytes ? memory + TURNS_OF_FLASH * (double)server->flash_bytes : TURNS_OF_MEMORY * memory;
	uint64_t third = stress_keys_of(bytes / 3, value_bytes);
	double rate = server->kind == SERVER_FLASHIELD && server->flash_bytes ? STRESS_BYTES_PER_SECOND : 0;
	struct load_spec first = stress_sets(measured->bench, measured->next_key, 2 * third, value_bytes, true, rate);
	struct load_spec last =
		stress_sets(measured->bench, measured->next_key + 2 * third, third, value_bytes, true, rate);
	int rc = set(measured, &first);

	measured->next_key += 3 * third;
	if (rc != FS_OK || bench_interrupted())
		return rc;
	return looks ? set_and_look(measured, &last) : set(measured, &last);
}

static void add(struct measured *measured, const char *column, double value)
{
	figures_add(measured->bench->figures, STUDY, measured->row, column, value);
}

static void add_measured(struct measured *measured)
{
	double peak_mib = (double)server_peak_bytes(&measured->server) / MIB;

	add(measured, "mem_items_percent", measured->items_sum / measured->looks);
	add(measured, "mem_items_least_percent", measured->items_least);
	if (!isnan(measured->items_sum))
		add(measured, "mem_payload_percent", measured->payload_sum / measured->looks);
	add(measured, "mem_missing", (double)measured->missing);
	add(measured, "mem_peak_mib", peak_mib);
	add(measured, "mem_bound_percent", 100 * peak_mib / stress_resident_limit_mib(measured->memory_mb));
}

static int run(struct bench *bench, const struct memory *memory, const struct shift *shift,
	       const struct contender *contender)
{
	static const char *const ours[] = { "--admission", "all", NULL };
	uint64_t flash_mb = memory->mb * FLASH_OF_MEMORY;
	const struct server_spec spec = {
		.kind = contender->kind,
		.memory_mb = memory->mb,
		.threads = 1,
		.flash_bytes = !contender->flash ? 0 : (flash_mb < FLASH_LEAST_MB ? FLASH_LEAST_MB : flash_mb) << 20,
		.extra = contender->kind == SERVER_FLASHIELD && contender->flash ? ours : NULL,
	};
	struct measured measured = { .bench = bench, .memory_mb = memory->mb, .items_least = NAN };
	int rc = server_start(&measured.server, bench, &spec), stopped;

	if (rc == FS_ENOTFOUND && contender->kind != SERVER_FLASHIELD) {
		figures_note(bench->figures, STUDY, "memcached is not here: nothing to compare with.");
		return FS_OK;
	}
	if (rc != FS_OK)
		return rc;
	row_name(memory, shift, contender, measured.row);
	bench_progress(bench, STUDY ": %s", measured.row);
	if (shift->value_bytes[1])
		rc = fill(&measured, shift->value_bytes[0], false);
	if (rc == FS_OK && !bench_interrupted())
		rc = fill(&measured, shift->value_bytes[shift->value_bytes[1] ? 1 : 0], true);
	if (rc == FS_OK && measured.looks > 0)
		add_measured(&measured);
	stopped = server_stop(&measured.server);
	return rc != FS_OK ? rc : stopped;
}

/* ---- the study ------------------------------------------------------------------------------- */

static void describe(struct figures *figures)
{
	figures_study(
		figures, STUDY, "what of -m is items, memcached and extstore beside",
		"New keys of 30 B are set, and each is read in the next batch: three times the memory without flash; with "
		"flash the memory and 1.5 times the flash (--admission all, 2 x -m, at least 128 MiB, 40 MB/s). Items: bytes "
		"of DRAM items, of -m less index and filters; mean and least over the last third. payload: keys and values "
		"of items in DRAM, of -m (extstore doesn't tell). missing: set, and a miss in the next batch. peak: VmHWM, bound: "
		"1.1 x -m + 24 MiB. -t 1.");
	figures_column(figures, "mem_items_percent", "items %", 1);
	figures_column(figures, "mem_items_least_percent", "least %", 1);
	figures_column(figures, "mem_payload_percent", "payload %", 1);
	figures_column(figures, "mem_missing", "missing", 0);
	figures_column(figures, "mem_peak_mib", "peak MiB", 1);
	figures_column(figures, "mem_bound_percent", "% of bound", 0);
}

/* The worst of ours over all sizes, with flash and without. */
static double worst(const struct figures *figures, const struct memory *memory, const char *column, bool least)
{
	double value = NAN;
	char row[NAME_BYTES];

	for (int s = 0; s < SHIFTS; s++)
		for (int c = OURS; c <= OURS_FLASH; c += OURS_FLASH - OURS) {
			double median;

			row_name(memory, &shifts[s], &contenders[c], row);
			median = figures_median(figures, STUDY, row, column);
			value = least ? fmin(value, median) : fmax(value, median);
		}
	return value;
}

static void conclude(struct figures *figures)
{
	char measure[96];

	for (int i = 0; i < MEMORIES; i++) {
		const struct memory *memory = &memories[i];
		unsigned long long mb = memory->mb;

		snprintf(measure, sizeof(measure), "-m %llu: items, of what index and filters leave (worst case)", mb);
		figures_target(figures, measure, worst(figures, memory, "mem_items_percent", true), FIGURES_AT_LEAST,
			       memory->items_percent, "%");
		snprintf(measure, sizeof(measure), "-m %llu: peak of resident memory, of its bound (worst case)", mb);
		figures_target(figures, measure, worst(figures, memory, "mem_bound_percent", false), FIGURES_AT_MOST,
			       100, "%");
		snprintf(measure, sizeof(measure), "-m %llu: set and gone in the next batch (worst case)", mb);
		figures_target(figures, measure, worst(figures, memory, "mem_missing", false), FIGURES_AT_MOST, 0, "");
	}
}

/* One round: what memory holds hardly depends on the machine's mood. */
int study_stress_memory(struct bench *bench)
{
	int rc = FS_OK;

	memories[MEMORIES - 1].mb = bench_scaled(bench, MEMORY_MOST_MB, MEMORY_MOST_LEAST_MB);
	describe(bench->figures);
	for (int m = 0; m < MEMORIES; m++)
		for (int s = 0; s < SHIFTS; s++)
			for (int c = 0; c < CONTENDERS && rc == FS_OK && !bench_interrupted(); c++)
				if (contenders[c].kind == SERVER_FLASHIELD || memories[m].mb >= THEIRS_LEAST_MB)
					rc = run(bench, &memories[m], &shifts[s], &contenders[c]);
	if (rc == FS_OK)
		conclude(bench->figures);
	return rc;
}
