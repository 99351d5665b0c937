/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/report.h"

#include <errno.h>
#include <inttypes.h>

#include "tools/common/text.h"

static void print_count(FILE *out, const char *name, uint64_t count, const char *note)
{
	char text[TEXT_BYTES];

	fprintf(out, "%-10s %15s%s%s\n", name, text_grouped(count, text), note[0] ? "   " : "", note);
}

void report_summary(const struct recorder *recorder, bool tells_deletes, FILE *out)
{
	const struct recorder_counts *counts = &recorder->counts;
	const struct rows_counts *rows = &recorder->rows.counts;
	char note[200], time[TEXT_BYTES];

	print_count(out, "requests", recorder_requests(recorder), "");
	snprintf(note, sizeof(note), "%.2f %% hit in the server; %" PRIu64 " missed and were not set within the window",
		 counts->gets ? 100.0 * (double)counts->hits / (double)counts->gets : 0, counts->unknown);
	print_count(out, "gets", counts->gets, note);
	if (rows->updates > 0) {
		snprintf(note, sizeof(note), "%" PRIu64 " of them were incr, decr or touch", rows->updates);
		fprintf(out, "%-10s %15s   %s\n", "", "", note);
	}
	snprintf(note, sizeof(note),
		 "beside %" PRIu64 " that followed a miss and are part of its get, and %" PRIu64 " without effect",
		 rows->fills, rows->refused);
	print_count(out, "sets", counts->sets, note);
	print_count(out, "deletes", counts->deletes,
		    recorder->is_flashield ? ""
		    : tells_deletes        ? "incr, decr and touch look like gets in memcached's lines"
					   : "deletes, incr, decr and touch look like gets in this server's lines");
	print_count(out, "keys", (uint64_t)(distinct_estimate(&recorder->keys) + 0.5), "an estimate, 1 % off");
	print_count(out, "apps", (uint64_t)(distinct_estimate(&recorder->apps) + 0.5), "");
	fprintf(out, "%-10s %15s\n", "time",
		counts->first_us < 0 ? "none"
				     : text_duration((double)(counts->last_us - counts->first_us) / 1e6, time));
}

void report_lost(const struct recorder *recorder, int64_t dropped)
{
	const struct recorder_counts *counts = &recorder->counts;
	const char *name = program_invocation_short_name;

	if (counts->skipped > 0 || dropped > 0)
		fprintf(stderr,
			"%s: the trace is not complete: the server skipped %" PRIu64
			" lines, and its threads dropped %" PRId64
			"; larger -o watcher_logbuf_size and worker_logbuf_size of the server lose fewer\n",
			name, counts->skipped, dropped > 0 ? dropped : 0);
	else if (dropped < 0)
		fprintf(stderr, "%s: the server doesn't tell whether its threads dropped lines\n", name);
	if (counts->broken > 0)
		fprintf(stderr, "%s: %" PRIu64 " lines made no sense, the last of them \"%s\"\n", name, counts->broken,
			recorder->last_broken);
}
