/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tools/replay/report.h"

static void put_int(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

static void put_real(json_t *object, const char *name, double value)
{
	json_object_set_new(object, name, json_real(value));
}

static void put_known(json_t *object, const char *name, struct known known)
{
	json_object_set_new(object, name, known.is_known ? json_real(known.value) : json_null());
}

static json_t *counts(const struct app_counts *app)
{
	json_t *object = json_object();

	put_int(object, "requests", app->requests);
	put_int(object, "gets", app->gets);
	put_int(object, "hits", app->hits);
	put_int(object, "sets", app->sets);
	json_object_set_new(object, "hit_ratio",
			    app->gets ? json_real((double)app->hits / (double)app->gets) : json_null());
	return object;
}

static json_t *applications(const struct report *report)
{
	json_t *object = json_object();

	for (uint32_t i = 0; i < report->measure->app_count; i++)
		json_object_set_new(object, report->spool->apps[i].name, counts(&report->measure->apps[i]));
	return object;
}

static json_t *latencies(const struct measure *measure)
{
	json_t *object = json_object();

	for (int kind = 0; kind < LATENCY_KINDS; kind++) {
		const struct hist *hist = measure->latency[kind];
		json_t *one = json_object();

		put_int(one, "count", hist->count);
		put_real(one, "mean_us", hist_mean(hist) / 1e3);
		put_real(one, "p50_us", (double)hist_quantile(hist, 0.5) / 1e3);
		put_real(one, "p90_us", (double)hist_quantile(hist, 0.9) / 1e3);
		put_real(one, "p99_us", (double)hist_quantile(hist, 0.99) / 1e3);
		put_real(one, "p999_us", (double)hist_quantile(hist, 0.999) / 1e3);
		put_real(one, "max_us", (double)hist->max / 1e3);
		json_object_set_new(object, latency_names[kind], one);
	}
	return object;
}

static json_t *values(const struct measure *measure)
{
	json_t *object = json_object();

	put_int(object, "checked", measure->checked);
	put_int(object, "from_before", measure->from_before);
	put_int(object, "older", measure->older);
	put_int(object, "wrong", measure->wrong);
	put_int(object, "bytes_read", measure->bytes_read);
	put_int(object, "bytes_set", measure->bytes_set);
	put_int(object, "fills", measure->fills);
	put_int(object, "deletes", measure->deletes);
	put_int(object, "not_stored", measure->not_stored);
	put_int(object, "too_large", measure->too_large);
	put_int(object, "out_of_memory", measure->out_of_memory);
	put_int(object, "server_errors", measure->server_errors);
	put_int(object, "client_errors", measure->client_errors);
	put_int(object, "long_keys", measure->long_keys);
	return object;
}

static json_t *trace(const struct report *report)
{
	json_t *object = json_object();

	json_object_set_new(object, "path", json_string(report->options->trace_path));
	json_object_set_new(object, "format", json_string(trace_format_names[report->spool->format]));
	put_int(object, "requests", report->spool->requests);
	put_int(object, "keys", report->spool->keys);
	put_int(object, "copies", report->options->copies);
	put_real(object, "span_seconds", (double)report->spool->span_us / 1e6);
	put_int(object, "left_out", report->spool->left_out);
	put_int(object, "broken", report->spool->broken);
	put_int(object, "backward", report->spool->backward);
	return object;
}

static json_t *server_report(const struct server_report *server)
{
	json_t *object = json_object();

	json_object_set_new(object, "version", json_string(server->version));
	json_object_set_new(object, "model", server->model[0] ? json_string(server->model) : json_null());
#define PUT(name) put_known(object, #name, server->name)
	PUT(cpu_us_per_request);
	PUT(evictions);
	PUT(items);
	PUT(bytes_used);
	PUT(dram_bytes_used);
	PUT(memory_limit);
	PUT(resident_bytes);
	PUT(clwa);
	PUT(flash_bytes_written);
	PUT(app_bytes_written);
	PUT(reads_per_hit);
	PUT(reads_per_miss);
	PUT(pages_per_read);
	PUT(flash_hit_share);
	PUT(flash_items);
	PUT(flash_bytes_used);
	PUT(flash_limit);
	PUT(dram_bytes_per_flash_item);
	PUT(segment_fill);
	PUT(index_load);
	PUT(read_errors);
	PUT(checksum_errors);
	PUT(trainings);
	PUT(precision);
	PUT(recall);
#undef PUT
	return object;
}

int report_json(const struct report *report, const char *path)
{
	json_t *root = counts(&report->measure->all);
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	int code = -1;

	json_object_set_new(root, "played", json_integer((json_int_t)report->played));
	json_object_set_new(root, "interrupted", json_boolean(report->interrupted));
	put_real(root, "run_seconds", report->run_seconds);
	put_real(root, "measured_seconds", report->measured_seconds);
	put_real(root, "requests_per_second",
		 report->measured_seconds > 0 ? (double)report->measure->all.requests / report->measured_seconds : 0);
	put_real(root, "tool_cpu_us_per_request", report->tool_cpu_us);
	put_real(root, "behind_seconds", report->behind_seconds);
	json_object_set_new(root, "trace", trace(report));
	json_object_set_new(root, "apps", applications(report));
	json_object_set_new(root, "latency", latencies(report->measure));
	json_object_set_new(root, "values", values(report->measure));
	json_object_set_new(root, "server", server_report(&report->server));
	if (out) {
		code = json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
		fputc('\n', out);
		if ((out == stdout ? fflush(out) : fclose(out)) != 0)
			code = -1;
	}
	json_decref(root);
	return code;
}
