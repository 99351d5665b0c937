/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "stress_hang": a drive that answers nothing for a minute, and then works again. 1,500 connections ask for
 * objects on flash all the while, others for objects in DRAM, and, where writes hang, new objects are set that
 * would be written. Does memory stay within its bound, do objects in DRAM stay, and what comes back when?
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tools/bench/stress_part.h"

#define STUDY "stress_hang"
#define MEMORY_MB 64
#define FLASH_BYTES (1ull << 30)
#define HANG_SECONDS 60.0 /* at scale 1 */
#define HANG_SECONDS_LEAST 6.0 /* longer than what is promised, so that "never" is no success */
#define SETTLE_SECONDS 2.0
#define BESIDE_SECONDS 4.0 /* looked at before the hang, and after it */
#define RETURN_SECONDS 90.0 /* how long its end is waited for */
#define PROMPT_SECONDS 5.0 /* what is promised */
#define WATCHDOG_SECONDS 10
#define TOLD_MS 1000 /* a write that isn't answered for so long is told */
#define LOOK_SECONDS 0.05
#define RATE_SECONDS 0.5 /* the shortest time over which a rate is taken */
#define FLASH_CONNECTIONS 1500
#define FLASH_RATE 3000 /* gets per second; each connection is free again after the read timeout of a second */
#define HOT_FIRST 2000000000ull
#define HOT_KEYS 100
#define HOT_BYTES 16
#define HOT_CONNECTIONS 4
#define HOT_SET_SHARE 0.1
#define NEW_FIRST 3000000000ull
#define NEW_RATE 8000 /* sets and gets per second, half of each */
#define NAME_BYTES 64
#define MIB 1048576.0

static const struct flash_size size = { .value_bytes = 257, .wanted = 20000, .filler = 40000, .cycles = 12 };

/* What hangs. */
static const struct fault {
	const char *name;
	bool reads, writes;
} faults[] = { { "reads", true, false }, { "writes", false, true }, { "both", true, true } };

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };
enum { FLASH_GETS, HOT, NEW, LOADS };

struct hang {
	struct bench *bench;
	const struct fault *fault;
	struct server server;
	struct flash_range range;
	struct load *loads[LOADS]; /* NULL: not there */
	char row[NAME_BYTES];
};

static void add(struct hang *hang, const char *column, double value)
{
	figures_add(hang->bench->figures, STUDY, hang->row, column, value);
}

static double hang_seconds(const struct bench *bench)
{
	return fmax(HANG_SECONDS * bench->options->scale, HANG_SECONDS_LEAST);
}

/* ---- loads ----------------------------------------------------------------------------------- */

static struct load_spec load_spec(const struct hang *hang, int which)
{
	struct load_spec spec = {
		.seconds = 1e6, /* until it is stopped */
		.silence_seconds = hang_seconds(hang->bench) + RETURN_SECONDS,
		.timed_from_sending = true,
		.cpu = hang->bench->options->load_cpu,
	};

	spec.kind = which == FLASH_GETS ? LOAD_GET : which == HOT ? LOAD_MIXED : LOAD_SET_GET;
	spec.order = which == NEW ? LOAD_SEQUENTIAL : LOAD_UNIFORM;
	spec.first_key = which == FLASH_GETS ? hang->range.first_key : which == HOT ? HOT_FIRST : NEW_FIRST;
	spec.keys = which == FLASH_GETS ? hang->range.keys : which == HOT ? HOT_KEYS : 1ull << 30;
	spec.value_bytes = which == HOT ? HOT_BYTES : size.value_bytes;
	spec.set_share = HOT_SET_SHARE;
	spec.connections = which == FLASH_GETS ? FLASH_CONNECTIONS : HOT_CONNECTIONS;
	spec.rate = which == FLASH_GETS ? FLASH_RATE : which == HOT ? 0 : NEW_RATE;
	return spec;
}

static int set_hot(struct hang *hang)
{
	struct load_spec spec = load_spec(hang, HOT);
	struct load_result result;
	int rc;

	spec.kind = LOAD_SET_GET;
	spec.order = LOAD_SEQUENTIAL;
	spec.seconds = 0;
	spec.operations = 2 * HOT_KEYS;
	rc = stress_run(STUDY, &spec, &hang->server, &result);
	load_result_fini(&result);
	return rc;
}

static int loads_start(struct hang *hang)
{
	int rc = set_hot(hang);

	for (int i = 0; i < LOADS && rc == FS_OK; i++) {
		struct load_spec spec = load_spec(hang, i);

		if (i != NEW || hang->fault->writes)
			rc = load_start(&hang->loads[i], &spec, &hang->server);
	}
	return rc;
}

/* A load that broke off has said so; that is a figure here, not the end of the study. */
static int loads_stop(struct hang *hang)
{
	int rc = FS_OK;

	for (int i = 0; i < LOADS; i++)
		if (hang->loads[i])
			load_stop(hang->loads[i]);
	for (int i = 0; i < LOADS; i++) {
		struct load_result result;
		int joined;

		if (!hang->loads[i])
			continue;
		joined = load_join(hang->loads[i], &result);
		hang->loads[i] = NULL;
		if (joined != FS_OK)
			figures_note(hang->bench->figures, STUDY, "%s: a load broke off: %s", hang->row,
				     fs_strerror(joined));
		if (result.errors)
			figures_note(hang->bench->figures, STUDY, "%s: commands failed, the first with: %s", hang->row,
				     result.first_error);
		if (result.wrong)
			rc = FS_ECORRUPT;
		load_result_fini(&result);
	}
	return rc;
}

/* ---- watching -------------------------------------------------------------------------------- */

/* What was seen over some time. */
struct watched {
	double began;
	double resident_peak_mib;
	double items_least, items_sum;
	unsigned looks;
	double rate, rate_least; /* of DRAM hits and sets per second: mean, and of RATE_SECONDS */
	double offline_after; /* seconds; NaN: never */
	double told_after; /* the same: that the drive doesn't answer, be it reads or a write */
	double unfed_most; /* seconds without food for the watchdog; NaN: there is none */
	double commands, commands_at, mark, mark_at; /* for the rates */
};

/* DRAM hits and sets so far. */
static double commands(struct hang *hang)
{
	struct server *server = &hang->server;

	if (server->spec.kind == SERVER_FLASHIELD)
		return server_stat(server, "flash", "dram_hits") + server_stat(server, "", "cmd_set");
	return server_stat(server, "", "get_hits") - server_stat(server, "", "get_extstore") +
	       server_stat(server, "", "cmd_set");
}

static void watch_begin(struct hang *hang, struct watched *watched)
{
	*watched = (struct watched){ .began = stress_now(),
				     .items_least = NAN,
				     .rate_least = NAN,
				     .offline_after = NAN,
				     .told_after = NAN,
				     .unfed_most = NAN };
	watched->commands = watched->mark = commands(hang);
	watched->commands_at = watched->mark_at = stress_now();
}

static void look_at_rate(struct hang *hang, struct watched *watched)
{
	double now = stress_now(), count;

	if (now < watched->mark_at + RATE_SECONDS)
		return;
	count = commands(hang);
	now = stress_now();
	watched->rate_least = fmin(watched->rate_least, (count - watched->mark) / (now - watched->mark_at));
	watched->rate = (count - watched->commands) / (now - watched->commands_at);
	watched->mark = count;
	watched->mark_at = now;
}

static bool is_offline(struct hang *hang)
{
	return server_stat(&hang->server, "flash", "flash_offline") > 0;
}

static bool is_told(struct hang *hang)
{
	return is_offline(hang) || server_stat(&hang->server, "flash", "flash_waited_ms") >= TOLD_MS;
}

static void look(struct hang *hang, struct watched *watched)
{
	double items = stress_dram_items(&hang->server);
	double resident_mib = (double)server_resident_bytes(&hang->server) / MIB;

	watched->resident_peak_mib = fmax(watched->resident_peak_mib, resident_mib);
	watched->items_least = fmin(watched->items_least, items);
	watched->items_sum += items;
	watched->looks++;
	if (isnan(watched->offline_after) && is_offline(hang))
		watched->offline_after = stress_now() - watched->began;
	if (isnan(watched->told_after) && is_told(hang))
		watched->told_after = stress_now() - watched->began;
	watched->unfed_most = fmax(watched->unfed_most, server_unfed_seconds(&hang->server));
	look_at_rate(hang, watched);
}

static void watch(struct hang *hang, double seconds, struct watched *watched)
{
	watch_begin(hang, watched);
	while (stress_now() < watched->began + seconds && server_alive(&hang->server) && !bench_interrupted()) {
		look(hang, watched);
		stress_sleep(LOOK_SECONDS);
	}
}

/* Seconds since the drive works again. */
struct returned {
	bool was_offline;
	double first_hit, online; /* NaN: not within RETURN_SECONDS, or it never was offline */
};

static bool awaited(const struct returned *returned)
{
	return isnan(returned->first_hit) || (returned->was_offline && isnan(returned->online));
}

static void watch_return(struct hang *hang, struct returned *returned)
{
	double began = stress_now(), now = began;
	struct stress_counts before, after;

	*returned = (struct returned){ is_offline(hang), NAN, NAN };
	stress_count(&hang->server, &before);
	while (awaited(returned) && now < began + RETURN_SECONDS && server_alive(&hang->server) &&
	       !bench_interrupted()) {
		stress_count(&hang->server, &after);
		now = stress_now();
		if (isnan(returned->first_hit) && stress_gain(&before, &after, STRESS_FLASH_HITS) > 0)
			returned->first_hit = now - began;
		if (returned->was_offline && isnan(returned->online) && !is_offline(hang))
			returned->online = now - began;
		stress_sleep(LOOK_SECONDS / 2);
	}
}

/* ---- a case ---------------------------------------------------------------------------------- */

static void set_hang(struct hang *hang, bool on)
{
	atomic_store(&hang->server.drive->reads.hang, on && hang->fault->reads);
	atomic_store(&hang->server.drive->writes.hang, on && hang->fault->writes);
}

static void add_watched(struct hang *hang, const struct watched *before, const struct watched *during,
			const struct watched *after, const struct returned *returned)
{
	double items = before->items_sum / before->looks;
	double peak = fmax(during->resident_peak_mib, after->resident_peak_mib);

	add(hang, "hang_before_mib", before->resident_peak_mib);
	add(hang, "hang_peak_mib", peak);
	add(hang, "hang_bound_percent", 100 * peak / stress_resident_limit_mib(MEMORY_MB));
	add(hang, "hang_items", items);
	add(hang, "hang_items_least_percent", 100 * during->items_least / items);
	add(hang, "hang_items_after_percent", 100 * after->items_sum / after->looks / items);
	add(hang, "hang_told_s", during->told_after);
	add(hang, "hang_offline_s", during->offline_after);
	add(hang, "hang_first_hit_s", returned->first_hit);
	add(hang, "hang_online_s", returned->online);
	add(hang, "hang_unfed_s", during->unfed_most);
	add(hang, "hang_rate", before->rate);
	add(hang, "hang_rate_ratio", during->rate / before->rate);
	add(hang, "hang_rate_least_ratio", during->rate_least / before->rate);
}

static void measure(struct hang *hang)
{
	double connections = server_stat(&hang->server, "", "curr_connections");
	struct watched before, during, after;
	struct returned returned;

	stress_sleep(SETTLE_SECONDS);
	watch(hang, BESIDE_SECONDS, &before);
	set_hang(hang, true);
	watch(hang, hang_seconds(hang->bench), &during);
	set_hang(hang, false);
	watch_return(hang, &returned);
	watch(hang, BESIDE_SECONDS, &after);
	if (bench_interrupted())
		return;
	add_watched(hang, &before, &during, &after, &returned);
	add(hang, "hang_lost", connections - server_stat(&hang->server, "", "curr_connections"));
	if (!server_alive(&hang->server))
		figures_note(hang->bench->figures, STUDY, "%s: THE SERVER ENDED.", hang->row);
}

static int run_case(struct bench *bench, enum server_kind kind, const struct fault *fault)
{
	const struct server_spec spec = {
		.kind = kind,
		.memory_mb = MEMORY_MB,
		.threads = 1,
		.flash_bytes = FLASH_BYTES,
		.extra = kind == SERVER_FLASHIELD ? stress_ours : stress_theirs,
		.watchdog_seconds = kind == SERVER_FLASHIELD ? WATCHDOG_SECONDS : 0,
	};
	struct hang hang = { .bench = bench, .fault = fault };
	int rc, stopped;
	bool runs;

	snprintf(hang.row, sizeof(hang.row), "%s, %s", server_names[kind], fault->name);
	rc = stress_start_filled(bench, STUDY, &spec, &size, &hang.server, &hang.range, &runs);
	if (rc != FS_OK || !runs)
		return rc;
	bench_progress(bench, STUDY ": %s, a hang of %.0f s", hang.row, hang_seconds(bench));
	rc = loads_start(&hang);
	if (rc == FS_OK)
		measure(&hang);
	stopped = loads_stop(&hang);
	return stress_stop(&hang.server, &runs, rc != FS_OK ? rc : stopped);
}

/* ---- the study ------------------------------------------------------------------------------- */

static void describe(const struct bench *bench)
{
	struct figures *figures = bench->figures;
	char text[1600];

	snprintf(
		text, sizeof(text),
		"The drive is emulated (tools/slowdrive); its reads, writes or both hang for %.0f s, and then it works "
		"again. 1,500 connections ask for 3000 objects on flash a second, one at a time. 4 connections get and set "
		"(10 %%) objects in DRAM as fast as it goes; where writes hang, 4000 new objects a second are set and read. "
		"257 B values. -m %d -t 1, the default read timeout of a second. of bound: 1.1 x -m + 24 MiB. Items: in "
		"DRAM, the mean before; least: during the hang, of that. told: the flash is offline, or a write has waited for a "
		"second; both from the hang's begin. first hit, online: from its end. unfed: the longest time in the hang "
		"without food for the watchdog, which wants some every %d s. DRAM/s: hits and sets; during: of the rate before, "
		"in the mean and of the worst half second. "
		"An object that moves to flash and is asked for is waited for. lost: connections.",
		hang_seconds(bench), MEMORY_MB, WATCHDOG_SECONDS);
	figures_study(figures, STUDY, "a drive that answers nothing for a while, extstore beside", text);
	figures_column(figures, "hang_before_mib", "MiB before", 1);
	figures_column(figures, "hang_peak_mib", "MiB peak", 1);
	figures_column(figures, "hang_bound_percent", "% of bound", 0);
	figures_column(figures, "hang_items", "items", 0);
	figures_column(figures, "hang_items_least_percent", "least %", 1);
	figures_column(figures, "hang_items_after_percent", "after %", 1);
	figures_column(figures, "hang_told_s", "told s", 1);
	figures_column(figures, "hang_offline_s", "offline s", 1);
	figures_column(figures, "hang_first_hit_s", "first hit s", 2);
	figures_column(figures, "hang_online_s", "online s", 2);
	figures_column(figures, "hang_unfed_s", "unfed s", 1);
	figures_column(figures, "hang_rate", "DRAM /s", -1);
	figures_column(figures, "hang_rate_ratio", "during x", 2);
	figures_column(figures, "hang_rate_least_ratio", "worst x", 2);
	figures_column(figures, "hang_lost", "lost", 0);
}

/* never: what stands for something that didn't happen, as long as it was waited for. */
static void add_target(struct figures *figures, const struct fault *fault, const char *what, const char *column,
		       double never, enum figures_bound bound, double limit, const char *unit)
{
	char measure[96], row[NAME_BYTES];
	double value;

	snprintf(row, sizeof(row), "%s, %s", server_names[SERVER_FLASHIELD], fault->name);
	snprintf(measure, sizeof(measure), "hang of %s: %s", fault->name, what);
	value = figures_median(figures, STUDY, row, column);
	if (isnan(value) && never > 0)
		figures_note(figures, STUDY, "%s: %s: never, within %.0f s.", row, what, never);
	figures_target(figures, measure, isnan(value) && never > 0 ? never : value, bound, limit, unit);
}

static void conclude(const struct bench *bench)
{
	struct figures *figures = bench->figures;
	double hang = hang_seconds(bench);

	for (int i = 0; i < FAULTS; i++) {
		const struct fault *fault = &faults[i];

		add_target(figures, fault, "peak of resident memory", "hang_peak_mib", 0, FIGURES_AT_MOST,
			   stress_resident_limit_mib(MEMORY_MB), "MiB");
		add_target(figures, fault, "least DRAM items, of before", "hang_items_least_percent", 0,
			   FIGURES_AT_LEAST, 95, "%");
		/* While reads are answered, the flash is of use. */
		if (fault->reads)
			add_target(figures, fault, "offline after", "hang_offline_s", hang, FIGURES_AT_MOST,
				   PROMPT_SECONDS, "s");
		else
			add_target(figures, fault, "told after", "hang_told_s", hang, FIGURES_AT_MOST, PROMPT_SECONDS,
				   "s");
		add_target(figures, fault, "flash hits again after", "hang_first_hit_s", RETURN_SECONDS,
			   FIGURES_AT_MOST, PROMPT_SECONDS, "s");
		add_target(figures, fault, "connections lost", "hang_lost", 0, FIGURES_AT_MOST, 0, "");
		add_target(figures, fault, "longest time without food for the watchdog", "hang_unfed_s", 0,
			   FIGURES_AT_MOST, WATCHDOG_SECONDS, "s");
	}
}

/* One round: a hang takes a minute, and what it does to memory hardly depends on the machine's mood. */
int study_stress_hang(struct bench *bench)
{
	static const enum server_kind kinds[] = { SERVER_FLASHIELD, SERVER_EXTSTORE };
	int rc = FS_OK;

	describe(bench);
	if (!stress_possible(bench, STUDY))
		return FS_OK;
	for (int i = 0; i < FAULTS; i++)
		for (int k = 0; k < 2 && rc == FS_OK && !bench_interrupted(); k++)
			rc = run_case(bench, kinds[k], &faults[i]);
	if (rc == FS_OK)
		conclude(bench);
	return rc;
}
