/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/replay/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "tools/common/text.h"

#define MAX_APP_LINES 24
#define SECONDS_PER_WEEK_TRAINING 7.0 /* the paper trains for a day of its week */
#define SECONDS_PER_WEEK_HORIZON 168.0 /* and looks ahead for an hour */

static void print_known(FILE *out, const char *label, int decimals, struct known known, const char *note)
{
	char text[TEXT_BYTES];

	if (!known.is_known)
		return;
	if (decimals)
		snprintf(text, sizeof(text), "%.*f", decimals, known.value);
	else
		text_grouped(known.value > 0 ? (uint64_t)known.value : 0, text);
	fprintf(out, "  %-24s %s%s\n", label, text, note);
}

static void print_size(FILE *out, const char *label, struct known known)
{
	char text[TEXT_BYTES];

	if (known.is_known)
		fprintf(out, "  %-24s %s\n", label, text_size(known.value, text));
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_head(const struct report *report, FILE *out)
{
	static const char *const modes[] = { "look-aside", "literal", "gets only, look-aside" };
	const struct replay_options *options = report->options;
	char text[TEXT_BYTES], time[TEXT_BYTES], keys[TEXT_BYTES];

	fprintf(out, "\nReplay of %s (%s, %s)%s\n", options->trace_path, trace_format_names[report->spool->format],
		modes[options->mode], report->interrupted ? ", interrupted" : "");
	fprintf(out, "  %-24s %s at %s\n", "server", report->server.version, options->server);
	fprintf(out, "  %-24s %s in %s, %s keys", "played", text_grouped(report->played, text),
		text_duration(report->run_seconds, time),
		text_count((double)report->spool->keys * options->copies, keys));
	if (options->copies > 1)
		fprintf(out, " (%u copies)", options->copies);
	fprintf(out, "\n  %-24s %s requests in %s\n", "measured", text_grouped(report->measure->all.requests, text),
		text_duration(report->measured_seconds, time));
	fprintf(out, "  %-24s %s requests/s, %.2f us CPU each in this tool", "throughput",
		text_count(report->measured_seconds > 0
				   ? (double)report->measure->all.requests / report->measured_seconds
				   : 0,
			   text),
		report->tool_cpu_us);
	if (report->server.cpu_us_per_request.is_known)
		fprintf(out, ", %.2f us in the server", report->server.cpu_us_per_request.value);
	fputc('\n', out);
	if (options->speed > 0)
		fprintf(out, "  %-24s %g trace seconds per second; farthest behind: %s\n", "pace", options->speed,
			text_duration(report->behind_seconds, time));
}

static int by_requests(const void *a, const void *b)
{
	const struct app_counts *x = *(const struct app_counts *const *)a;
	const struct app_counts *y = *(const struct app_counts *const *)b;

	return x->requests < y->requests ? 1 : x->requests > y->requests ? -1 : x < y ? -1 : x > y;
}

static void print_app(FILE *out, const char *name, const struct app_counts *counts)
{
	char requests[TEXT_BYTES], gets[TEXT_BYTES], sets[TEXT_BYTES];

	fprintf(out, "  %-24s %12s %12s %12s", name, text_count((double)counts->requests, requests),
		text_count((double)counts->gets, gets), text_count((double)counts->sets, sets));
	if (counts->gets)
		fprintf(out, " %10.2f %%\n", percent(counts->hits, counts->gets));
	else
		fprintf(out, " %12s\n", "-");
}

/* Prints the applications by their requests; one line sums up those beyond MAX_APP_LINES. */
static void print_apps(const struct report *report, FILE *out)
{
	const struct measure *measure = report->measure;
	const struct app_counts **order = mem_must_zalloc((measure->app_count + 1) * sizeof(*order));
	struct app_counts rest = { 0 };
	uint32_t shown = 0, others = 0;
	char name[64];

	for (uint32_t i = 0; i < measure->app_count; i++)
		order[i] = &measure->apps[i];
	qsort(order, measure->app_count, sizeof(*order), by_requests);
	fprintf(out, "\n%-26s %12s %12s %12s %12s\n", "Hit ratio", "requests", "gets", "sets", "hits/gets");
	for (uint32_t i = 0; i < measure->app_count && order[i]->requests; i++) {
		if (shown < MAX_APP_LINES) {
			snprintf(name, sizeof(name), "app %s", report->spool->apps[order[i] - measure->apps].name);
			print_app(out, name, order[i]);
			shown++;
			continue;
		}
		others++;
		rest.requests += order[i]->requests;
		rest.gets += order[i]->gets;
		rest.hits += order[i]->hits;
		rest.sets += order[i]->sets;
	}
	if (others) {
		snprintf(name, sizeof(name), "%u others", others);
		print_app(out, name, &rest);
	}
	print_app(out, "all", &measure->all);
	mem_free(order);
}

static void print_latencies(const struct report *report, FILE *out)
{
	static const double quantiles[] = { 0.5, 0.9, 0.99, 0.999 };
	char text[TEXT_BYTES];

	fprintf(out, "\n%-26s %12s %12s %12s %12s %12s %12s\n", "Latency", "count", "p50", "p90", "p99", "p99.9",
		"max");
	for (int kind = 0; kind < LATENCY_KINDS; kind++) {
		const struct hist *hist = report->measure->latency[kind];

		if (!hist->count)
			continue;
		fprintf(out, "  %-24s %12s", latency_names[kind], text_count((double)hist->count, text));
		for (size_t q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++)
			fprintf(out, " %12s", text_duration((double)hist_quantile(hist, quantiles[q]) / 1e9, text));
		fprintf(out, " %12s\n", text_duration((double)hist->max / 1e9, text));
	}
}

static void print_count(FILE *out, const char *label, uint64_t count, const char *note)
{
	char text[TEXT_BYTES];

	if (count)
		fprintf(out, "  %-24s %s%s%s\n", label, text_grouped(count, text), *note ? "  " : "", note);
}

static void print_values(const struct report *report, FILE *out)
{
	const struct measure *measure = report->measure;
	const struct spool *spool = report->spool;
	char text[TEXT_BYTES], note[160];

	fprintf(out, "\nValues\n");
	if (report->options->check_values)
		fprintf(out, "  %-24s %s right, %" PRIu64 " older, %" PRIu64 " wrong\n", "checked",
			text_grouped(measure->checked, text), measure->older, measure->wrong);
	print_count(out, "of these from before", measure->from_before, "keys that this run had not written yet");
	print_size(out, "read", (struct known){ true, (double)measure->bytes_read });
	print_size(out, "set, keys included", (struct known){ true, (double)measure->bytes_set });
	print_count(out, "fills after a miss", measure->fills, "");
	print_count(out, "adds of present keys", measure->not_stored, "");
	print_count(out, "values too large", measure->too_large, "over the server's item size limit");
	print_count(out, "sets out of memory", measure->out_of_memory, "");
	print_count(out, "other server errors", measure->server_errors, "");
	print_count(out, "client errors", measure->client_errors, "");
	print_count(out, "keys made longer", measure->long_keys, "than the trace says, to be unique");
	print_count(out, "trace rows left out", spool->left_out, "that this mode does not play");
	print_count(out, "times that went back", spool->backward, "taken as the time of the row above");
	snprintf(note, sizeof(note), "the first in line %" PRIu64 ": %s", spool->broken_line,
		 spool->broken_why ? spool->broken_why : "");
	print_count(out, "broken trace rows", spool->broken, note);
}

static void print_tier(FILE *out, const char *label, struct known bytes_used, struct known limit)
{
	char used[TEXT_BYTES], most[TEXT_BYTES];

	if (bytes_used.is_known && limit.is_known)
		fprintf(out, "  %-24s %s in items, limit %s\n", label, text_size(bytes_used.value, used),
			text_size(limit.value, most));
}

static void print_server(const struct report *report, FILE *out)
{
	const struct server_report *server = &report->server;

	if (!server->items.is_known)
		return; /* a proxy says nothing of the servers behind it */
	fprintf(out, "\nServer\n");
	print_tier(out, "memory", server->dram_bytes_used, server->memory_limit);
	print_size(out, "resident memory", server->resident_bytes);
	print_known(out, "items", 0, server->items, "");
	print_known(out, "evictions", 0, server->evictions, "");
	if (!server->has_flash)
		return;
	fprintf(out, "\nFlash\n");
	print_size(out, "written to flash", server->flash_bytes_written);
	print_size(out, "written by clients", server->app_bytes_written);
	print_known(out, "CLWA", 3, server->clwa, "  bytes to flash per byte written by clients");
	if (server->flash_hit_share.is_known)
		fprintf(out, "  %-24s %.2f %%\n", "hits from flash", 100 * server->flash_hit_share.value);
	print_known(out, "flash reads per hit", 4, server->reads_per_hit, "");
	print_known(out, "flash reads per miss", 4, server->reads_per_miss, "");
	print_known(out, "pages per flash read", 2, server->pages_per_read, "");
	print_tier(out, "flash", server->flash_bytes_used, server->flash_limit);
	print_known(out, "items on flash", 0, server->flash_items, "");
	print_known(out, "DRAM per item on flash", 2, server->dram_bytes_per_flash_item, " B");
	print_known(out, "segment fill", 4, server->segment_fill, "");
	print_known(out, "index load", 4, server->index_load, "");
	if (server->read_errors.value + server->checksum_errors.value > 0) {
		print_known(out, "flash read errors", 0, server->read_errors, "");
		print_known(out, "flash checksum errors", 0, server->checksum_errors, "");
	}
	if (!server->model[0])
		return;
	fprintf(out, "\nClassifier\n  %-24s %s\n", "model", server->model);
	print_known(out, "models trained", 0, server->trainings, "");
	print_known(out, "precision", 3, server->precision, "");
	print_known(out, "recall", 3, server->recall, "");
}

void report_advice(const struct report *report, double run_seconds, FILE *out)
{
	const struct server_report *server = &report->server;
	char window[TEXT_BYTES], horizon[TEXT_BYTES], speed[TEXT_BYTES];
	double needed = server->training_window_s.value + server->horizon_s.value;

	if (!(run_seconds > 0))
		return;
	fprintf(out,
		"  matching options         --training-window %s --flashiness-horizon %s  (trace time runs "
		"%s times as fast)\n",
		text_option_time(run_seconds / SECONDS_PER_WEEK_TRAINING, window),
		text_option_time(run_seconds / SECONDS_PER_WEEK_HORIZON, horizon),
		text_count(report->trace_seconds / run_seconds, speed));
	if (server->training_window_s.is_known && run_seconds < needed)
		fprintf(out,
			"  WARNING                  the run takes %s, less than the server's training "
			"window and horizon (%s): no model can come of it\n",
			text_duration(run_seconds, window), text_duration(needed, horizon));
}

void report_print(const struct report *report, FILE *out)
{
	print_head(report, out);
	report_advice(report, report->run_seconds, out);
	print_apps(report, out);
	print_latencies(report, out);
	print_values(report, out);
	print_server(report, out);
	fflush(out);
}
