/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-record: watches a server, writes what it sees, reports. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/common/args.h"
#include "tools/common/text.h"
#include "tools/record/report.h"
#include "tools/record/source.h"

#define STEP_MS 100
#define PROGRESS_US 200000
#define QUIET_US 2000000 /* without a line for so long, nothing that was logged before is still to come */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

struct session {
	const struct record_options *options;
	struct source source;
	struct recorder recorder;
	struct progress progress;
	int64_t start_us;
	int64_t shown_us;
	uint64_t shown_lines;
	char error[SOURCE_ERROR_BYTES]; /* why it ended too early; empty: it did not */
};

static void show(struct session *session, int64_t at_us)
{
	const struct record_options *options = session->options;
	const struct recorder *recorder = &session->recorder;
	uint64_t lines = recorder->counts.lines, requests = recorder_requests(recorder);
	double seconds = (double)(at_us - session->shown_us) / 1e6, fraction = -1;
	char note[160], count[TEXT_BYTES], rate[TEXT_BYTES], skipped[TEXT_BYTES];

	if (!session->progress.terminal || at_us < session->shown_us + PROGRESS_US)
		return;
	if (options->duration_us > 0)
		fraction = (double)(at_us - session->start_us) / (double)options->duration_us;
	if (options->limit < UINT64_MAX && (double)requests / (double)options->limit > fraction)
		fraction = (double)requests / (double)options->limit;
	snprintf(note, sizeof(note), "%s requests, %s lines/s, %s skipped", text_count((double)requests, count),
		 text_count((double)(lines - session->shown_lines) / seconds, rate),
		 text_count((double)recorder->counts.skipped, skipped));
	progress_show(&session->progress, fraction, note);
	session->shown_us = at_us;
	session->shown_lines = lines;
}

static bool is_over(const struct session *session, int64_t at_us)
{
	const struct record_options *options = session->options;

	return interrupted || output_failed(session->recorder.output) ||
	       recorder_requests(&session->recorder) >= options->limit ||
	       (options->duration_us > 0 && at_us >= session->start_us + options->duration_us);
}

/* Takes lines until the recording is over. */
static void record(struct session *session)
{
	int64_t at_us = session->start_us, last_us = at_us;
	int code = FS_OK;

	while (!is_over(session, at_us) && code != FS_ESYS) {
		const char *line;
		size_t length;

		while ((line = source_line(&session->source, &length)))
			recorder_line(&session->recorder, line, length);
		code = source_read(&session->source, STEP_MS);
		at_us = now_us();
		if (code == FS_OK) {
			last_us = at_us;
		} else if (at_us > last_us + QUIET_US) {
			recorder_settle(&session->recorder);
			output_flush(session->recorder.output);
			last_us = at_us;
		}
		if (code == FS_ESYS)
			snprintf(session->error, sizeof(session->error), "the server at %s: %s",
				 session->options->server, client_why(&session->source.client));
		show(session, at_us);
	}
	recorder_settle(&session->recorder);
	progress_clear(&session->progress);
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_interrupt };
	struct record_options options;
	struct session session = { .options = &options };
	struct output *output;
	int64_t dropped, after;
	char error[256];

	record_options_parse(argc, argv, &options);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	dropped = source_dropped(&options.access, options.server, (uint64_t)options.timeout_us);
	if (source_open(&session.source, &options.access, options.server, (uint64_t)options.timeout_us,
			session.error) != FS_OK)
		arg_die("%s", session.error);
	output = output_open(options.output);
	recorder_init(&session.recorder, &options, output);
	progress_init(&session.progress, options.quiet);

	session.start_us = session.shown_us = now_us();
	record(&session);
	/* First of all: the server may be slow to answer. */
	if (output_close(output, error) != FS_OK)
		snprintf(session.error, sizeof(session.error), "%s", error);
	after = source_dropped(&options.access, options.server, (uint64_t)options.timeout_us);

	if (!options.quiet)
		report_summary(&session.recorder, session.source.tells_deletes,
			       strcmp(options.output, "-") ? stdout : stderr);
	report_lost(&session.recorder, dropped < 0 || after < dropped ? -1 : after - dropped);
	recorder_fini(&session.recorder);
	source_close(&session.source);
	access_close(&options.access);
	if (session.error[0])
		arg_die("%s", session.error);
	return 0;
}
