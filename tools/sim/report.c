/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/report.h"

#include <stdio.h>

#include "base/assert.h"
#include "tools/sim/calibration.h"

static void print(json_t *line)
{
	must(line && json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0);
	json_decref(line);
	putchar('\n');
	fflush(stdout);
}

void report_line(const char *kind, json_t *value)
{
	print(json_pack("{s:o}", kind, value));
}

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* null where there is nothing to divide by. */
static json_t *share(uint64_t part, uint64_t whole)
{
	return whole ? json_real((double)part / (double)whole) : json_null();
}

static json_t *seconds(uint64_t us)
{
	return json_real((double)us * 1e-6);
}

void report_trace(const struct spool *spool, const struct spec_working_set *set)
{
	report_line("trace",
		    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "requests", count(spool->requests),
			      "keys", count(spool->keys), "apps", count(spool->app_count), "span_s",
			      seconds((uint64_t)spool->span_us), "working_set_bytes", count(set->bytes), "left_out",
			      count(spool->left_out), "broken_rows", count(spool->broken), "backward_rows",
			      count(spool->backward), "timeless", spool->timeless));
}

void report_progress(double part, size_t done)
{
	print(json_pack("{s:f, s:I}", "progress", part, "done", (json_int_t)done));
}

void report_run(const char *text)
{
	printf("{\"result\":%s}\n", text);
	fflush(stdout);
}

void report_error(size_t number, const char *text)
{
	print(json_pack("{s:s, s:I}", "error", text, "run", (json_int_t)number));
}

static void add_counts(json_t *to, const struct sim_counts *counts)
{
	json_object_set_new(to, "requests", count(counts->requests));
	json_object_set_new(to, "gets", count(counts->gets));
	json_object_set_new(to, "get_hits", count(counts->hits));
	json_object_set_new(to, "hit_ratio", share(counts->hits, counts->gets));
	json_object_set_new(to, "byte_hit_ratio", share(counts->hit_bytes, counts->get_bytes));
	json_object_set_new(to, "sets", count(counts->sets));
	json_object_set_new(to, "deletes", count(counts->deletes));
	json_object_set_new(to, "app_bytes_written", count(counts->app_bytes_written));
}

static void add_flash(json_t *to, const struct sim_result *result)
{
	const struct sim_figures *begin = &result->begin, *end = &result->end;
	uint64_t written = end->flash_bytes_written - begin->flash_bytes_written;
	uint64_t reads = end->flash_reads - begin->flash_reads, hits = end->flash_hits - begin->flash_hits;
	uint64_t in_vain = end->flash_reads_missed - begin->flash_reads_missed;

	json_object_set_new(to, "flash_bytes_written", count(written));
	json_object_set_new(to, "clwa", share(written, result->all.app_bytes_written));
	json_object_set_new(to, "flash_bytes_merged", count(end->flash_bytes_merged - begin->flash_bytes_merged));
	json_object_set_new(to, "flash_hits", count(hits));
	json_object_set_new(to, "flash_reads", count(reads));
	json_object_set_new(to, "reads_per_flash_hit", share(reads - in_vain, hits));
	json_object_set_new(to, "reads_per_miss", share(in_vain, result->all.gets - result->all.hits));
	json_object_set_new(to, "pages_per_flash_read", share(end->flash_pages - begin->flash_pages, reads));
	json_object_set_new(to, "bytes_per_flash_read", share(end->flash_key_bytes - begin->flash_key_bytes, reads));
	json_object_set_new(to, "pages_per_small_hit",
			    share(end->small_pages - begin->small_pages, end->small_hits - begin->small_hits));
	json_object_set_new(to, "reclaim_bytes_read", count(end->reclaim_bytes - begin->reclaim_bytes));
	json_object_set_new(to, "segment_fill", json_real(end->segment_fill));
	json_object_set_new(to, "dram_objects", count(end->dram_objects));
	json_object_set_new(to, "flash_objects", count(end->flash_objects));
	json_object_set_new(to, "fixed_bytes", count(end->fixed_bytes));
	json_object_set_new(to, "copy_share", json_real(end->copy_share));
	json_object_set_new(to, "index_bytes", count(end->index_bytes));
	json_object_set_new(to, "extents", count(end->extents));
	json_object_set_new(to, "false_matches", count(end->false_matches - begin->false_matches));
	json_object_set_new(to, "precision", end->has_model ? json_real(end->precision) : json_null());
	json_object_set_new(to, "recall", end->has_model ? json_real(end->recall) : json_null());
	json_object_set_new(to, "model_origin", end->model_origin ? json_string(end->model_origin) : json_null());
	json_object_set_new(to, "model_reason", end->model_origin ? json_string(end->model_reason) : json_null());
}

static void add_space(json_t *to, const struct sim_run *run)
{
	const struct sim_space *space = &run->config.space;
	static const char *const sizes[] = { "none", "own-A", "own-B" };

	json_object_set_new(to, "dram_bytes", count(space->dram_bytes));
	json_object_set_new(to, "memory_bytes", count(space->memory_bytes));
	json_object_set_new(to, "flash_bytes", count(space->flash_bytes));
	json_object_set_new(to, "segment_bytes", count(space->segment_bytes));
	json_object_set_new(to, "value_bytes_only", json_boolean(space->value_bytes_only));
	json_object_set_new(to, "objects_only", json_boolean(space->objects_only));
	json_object_set_new(to, "changed_is_update", json_boolean(run->changed_is_update));
	json_object_set_new(to, "referee", json_string(sizes[space->sizes]));
	json_object_set_new(to, "clwa_budget", json_real(run->config.clwa));
	json_object_set_new(to, "copies", count(run->copies));
	json_object_set_new(to, "sample", count(run->sample));
	json_object_set_new(to, "options", run->config.options ? json_string(run->config.options) : json_null());
	json_object_set_new(to, "warmup_s", seconds(run->warmup_us));
	json_object_set_new(to, "train_s", seconds(run->config.train_us));
	json_object_set_new(to, "horizon_s", seconds(run->config.horizon_us));
}

static json_t *apps_of(const struct sim_run *run, const struct sim_result *result)
{
	json_t *apps = json_array();

	for (uint32_t i = 0; i < run->spool->app_count; i++) {
		json_t *app = json_pack("{s:s}", "app", run->spool->apps[i].name);

		add_counts(app, &result->apps[i]);
		json_array_append_new(apps, app);
	}
	return apps;
}

static json_t *series_of(const struct sim_result *result)
{
	json_t *series = json_array();

	for (uint32_t i = 0; i < result->points; i++) {
		const struct sim_point *point = &result->series[i];

		json_array_append_new(
			series, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "time_s", seconds(point->time_us),
					  "requests", count(point->counts.requests), "gets", count(point->counts.gets),
					  "get_hits", count(point->counts.hits), "get_bytes",
					  count(point->counts.get_bytes), "hit_bytes", count(point->counts.hit_bytes),
					  "app_bytes_written", count(point->counts.app_bytes_written),
					  "flash_bytes_written", count(point->flash_bytes_written)));
	}
	return series;
}

json_t *report_result(const struct sim_run *run, const struct sim_result *result, const char *policy, size_t number)
{
	uint64_t played = result->points ? result->series[result->points - 1].counts.requests : 0;
	json_t *object = json_pack("{s:I, s:s}", "run", (json_int_t)number, "policy", policy);

	add_space(object, run);
	add_counts(object, &result->all);
	add_flash(object, result);
	json_object_set_new(object, "cpu_seconds", json_real(result->cpu_seconds));
	json_object_set_new(object, "requests_per_second", json_real((double)played / (result->cpu_seconds + 1e-9)));
	json_object_set_new(object, "calibration", calibration_json(&result->samples));
	json_object_set_new(object, "features", features_json(&result->samples));
	json_object_set_new(object, "apps", apps_of(run, result));
	json_object_set_new(object, "series", series_of(result));
	return object;
}
