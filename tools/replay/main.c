/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flashield-replay: reads the trace, connects, plays, reports. The main thread shows the progress
 * while the workers play.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/common/value.h"
#include "tools/replay/report.h"
#include "tools/replay/worker.h"

#define PROGRESS_US 100000
#define ESTIMATE_FROM 0.05 /* the part of the run from which its length can be estimated */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static double own_cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The number of the request before which the replay ends. */
static uint64_t play_until(const struct replay_options *options)
{
	return options->limit < UINT64_MAX - options->skip ? options->skip + options->limit : UINT64_MAX;
}

static void connect_control(const struct replay_options *options, struct server_stats *stats)
{
	char error[CLIENT_ERROR_BYTES];

	if (client_open(stats->client, &options->access, options->server, options->timeout_us, error) != FS_OK)
		arg_die("%s", error);
	if (options->flush_first && !server_flush(stats->client, error))
		arg_die("the server at %s did not accept flush_all: %s", options->server, error);
	server_stats_read(stats);
	if (stats->count > 0)
		return;
	/* twemproxy closes a connection on which stats are asked for. */
	client_close(stats->client);
	if (client_open(stats->client, &options->access, options->server, options->timeout_us, error) != FS_OK)
		arg_die("%s", error);
	if (!server_tells_version(stats->client, error))
		arg_die("the server at %s does not answer \"stats\": is it a memcached server? It says: %s",
			options->server, error);
}

/* Fills in what is played. */
static void find_first(struct run *run)
{
	const struct replay_options *options = run->options;
	struct schedule schedule;
	struct schedule_item item;

	run->end = play_until(options);
	schedule_init(&schedule, run->spool, options->copies, run->end);
	schedule_skip(&schedule, options->skip);
	if (schedule_next(&schedule, &item))
		run->first_us = item.time_us;
	else if (options->skip > 0)
		arg_die("--skip: the trace has no more than %" PRIu64 " requests", schedule.number);
	schedule_fini(&schedule);
	run->total = schedule_total(run->spool, options->copies, run->end) - options->skip;
}

static void init_run(struct run *run, const struct replay_options *options, const struct spool *spool,
		     struct server_stats *before)
{
	size_t key_bytes = (size_t)spool->keys * options->copies * sizeof(*run->keys);

	*run = (struct run){ .options = options, .spool = spool, .before = before };
	pthread_mutex_init(&run->lock, NULL);
	find_first(run);
	run->warmup_requests = (uint64_t)((double)run->total * options->warmup_fraction);
	run->warmup_us = options->warmup_us;
	run->keys = mem_map(key_bytes);
	if (!run->keys)
		arg_die("no memory for the versions of %zu keys", key_bytes / sizeof(*run->keys));
	run->start_ns = worker_now_ns();
}

/* The trace time from the first request to the last, which a limit shortens. */
static double trace_seconds(const struct run *run)
{
	double all = (double)schedule_total(run->spool, run->options->copies, UINT64_MAX);

	return (double)run->spool->span_us / 1e6 * (double)run->total / all;
}

/* For an unpaced run the matching options are printed once its length can be estimated. */
static void show_estimate(struct report *report, double fraction, double seconds, struct progress *progress)
{
	static bool shown;

	if (shown || fraction < ESTIMATE_FROM || seconds < 1 || report->options->quiet)
		return;
	shown = true;
	progress_clear(progress);
	fprintf(stderr, "At this pace the run takes %.0f s:\n", seconds / fraction);
	report_advice(report, seconds / fraction, stderr);
}

static void watch(struct run *run, struct worker *workers, struct report *report, struct progress *progress)
{
	uint64_t last_answered = 0, last_ns = run->start_ns;

	while (!workers_done(workers)) {
		uint64_t answered = workers_answered(workers), now_ns = worker_now_ns();
		double fraction = (double)answered / (double)run->total;
		double rate = (double)(answered - last_answered) * 1e9 / (double)(now_ns - last_ns + 1);
		char note[96], count[TEXT_BYTES], per_second[TEXT_BYTES];

		snprintf(note, sizeof(note), "%s requests, %s/s%s", text_count((double)answered, count),
			 text_count(rate, per_second), run->window_open ? "" : ", warm-up");
		progress_show(progress, fraction, note);
		show_estimate(report, fraction, (double)(now_ns - run->start_ns) / 1e9, progress);
		last_answered = answered;
		last_ns = now_ns;
		if (interrupted)
			atomic_store(&run->stop, true);
		usleep(PROGRESS_US);
	}
	progress_clear(progress);
}

static void conclude(struct report *report, struct run *run, struct worker *workers, struct measure *measure,
		     double cpu_seconds)
{
	const struct replay_options *options = run->options;
	uint64_t end_ns = worker_now_ns();

	for (uint32_t i = 0; i < options->threads; i++) {
		measure_merge(measure, &workers[i].player.measure);
		report->played += workers[i].player.answered;
		if ((double)workers[i].behind_ns / 1e9 > report->behind_seconds)
			report->behind_seconds = (double)workers[i].behind_ns / 1e9;
	}
	report->measure = measure;
	report->interrupted = interrupted;
	report->run_seconds = (double)(end_ns - run->start_ns) / 1e9;
	report->measured_seconds = run->window_open ? (double)(end_ns - run->window_ns) / 1e9 : 0;
	report->tool_cpu_us = report->played ? cpu_seconds * 1e6 / (double)report->played : 0;
}

static int print(const struct report *report)
{
	const struct replay_options *options = report->options;

	if (!options->json_path || strcmp(options->json_path, "-") != 0)
		report_print(report, stdout);
	if (options->json_path && report_json(report, options->json_path) != 0)
		arg_die("%s: %s", options->json_path, strerror(errno));
	return report->measure->older + report->measure->wrong ? EXIT_WRONG : 0;
}

int main(int argc, char **argv)
{
	struct replay_options options;
	struct progress progress;
	struct spool spool;
	struct client control = CLIENT_CLOSED;
	struct server_stats before = { .client = &control }, after = { .client = &control };
	struct measure measure;
	struct worker *workers;
	struct report report = { 0 };
	struct run run;
	char error[256] = "";
	double cpu_seconds;
	int status;

	replay_options_parse(argc, argv, &options);
	progress_init(&progress, options.quiet);
	value_init();
	connect_control(&options, &before);
	spool_load(&spool,
		   &(struct spool_options){ .path = options.trace_path,
					    .format = options.format,
					    .gets_only = options.mode == MODE_GETS_ONLY,
					    .limit = options.copies == 1 ? play_until(&options) : UINT64_MAX,
					    .default_key_size = options.default_key_size,
					    .default_value_size = options.default_value_size },
		   &progress);
	measure_init(&measure, spool.app_count);
	init_run(&run, &options, &spool, &before);
	if (workers_create(&run, &workers, error) != FS_OK)
		arg_die("%s", error);
	report = (struct report){ .options = &options, .spool = &spool, .measure = &measure };
	report_read_server(&report, &before, &before);
	report.trace_seconds = trace_seconds(&run);
	signal(SIGINT, on_interrupt);
	signal(SIGTERM, on_interrupt);
	if (options.speed > 0 && !options.quiet)
		report_advice(&report, report.trace_seconds / options.speed, stderr);

	cpu_seconds = own_cpu_seconds();
	run.start_ns = worker_now_ns();
	workers_start(workers);
	watch(&run, workers, &report, &progress);
	workers_join(workers);
	if (run.failed)
		arg_die("%s", run.error);
	conclude(&report, &run, workers, &measure, own_cpu_seconds() - cpu_seconds);
	server_stats_read(&after);
	report_read_server(&report, &before, &after);
	status = print(&report);

	workers_destroy(workers);
	mem_unmap(run.keys, (size_t)spool.keys * options.copies * sizeof(*run.keys));
	measure_fini(&measure);
	spool_unload(&spool);
	server_stats_fini(&before);
	server_stats_fini(&after);
	client_close(&control);
	access_close(&options.access);
	return status;
}
