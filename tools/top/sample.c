/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct field_info fields[FIELD_COUNT] = {
#define FIELD(name, report, kind, aggregate, also) { #name, REPORT_##report, FIELD_##kind, FIELD_##aggregate, also },
#include "tools/top/fields.def"
#undef FIELD
};

static const char *const timing_names[TIMINGS] = {
#define LATENCY(name, metric, label, text) #name,
#include "base/metrics/latency.def"
#undef LATENCY
};

static const char *const part_names[TIMING_PARTS] = { "count",  "mean_us", "p50_us", "p90_us",
						      "p99_us", "p999_us", "max_us" };

static const char *const app_rows[APP_COUNTS] = {
	"get_count",    "get_hits",    "flash_hits",       "set_count",
	"delete_count", "other_count", "value_bytes_read", "bytes_written",
};

const struct field_info *field_info(enum field field)
{
	return &fields[field];
}

void sample_clear(struct sample *sample)
{
	memset(sample, 0, sizeof(*sample));
	for (int i = 0; i < FIELD_COUNT; i++)
		sample->value[i] = NAN;
	for (int i = 0; i < TIMINGS; i++)
		for (int j = 0; j < TIMING_PARTS; j++)
			sample->timing[i][j] = NAN;
	for (int i = 0; i < HOT_MEASURES; i++)
		for (int j = 0; j < HOT_WINDOWS; j++)
			sample->hot[i][j].seconds = sample->hot[i][j].total = NAN;
}

/* A finite number with nothing behind it; NAN for all other texts. Decision values may be negative. */
double sample_number(const char *text)
{
	char *rest;
	double value;

	if ((*text < '0' || *text > '9') && *text != '-')
		return NAN;
	value = strtod(text, &rest);
	return rest != text && *rest == 0 && isfinite(value) ? value : NAN;
}

static void take_field(struct sample *sample, enum report report, const char *name, const char *value)
{
	for (int i = 0; i < FIELD_COUNT; i++) {
		bool own = fields[i].report == report && strcmp(fields[i].name, name) == 0;
		bool also = report == REPORT_GENERAL && strcmp(fields[i].also, name) == 0;
		double taken;

		if (!own && !(also && isnan(sample->value[i])))
			continue;
		taken = sample_number(value);
		/* Only the threshold is a decision value; any other negative value is damaged. */
		if (taken >= 0 || i == FIELD_threshold)
			sample->value[i] = taken;
	}
}

static void take_timing(struct sample *sample, const char *name, const char *value)
{
	for (int i = 0; i < TIMINGS; i++) {
		size_t length = strlen(timing_names[i]);

		if (strncmp(name, timing_names[i], length) != 0 || name[length] != '_')
			continue;
		for (int j = 0; j < TIMING_PARTS; j++)
			if (strcmp(name + length + 1, part_names[j]) == 0 && sample_number(value) >= 0)
				sample->timing[i][j] = sample_number(value);
	}
}

static struct app *app_of(struct sample *sample, const char *name, size_t length)
{
	struct app *app;

	for (unsigned i = 0; i < sample->app_count; i++)
		if (strncmp(sample->apps[i].name, name, length) == 0 && !sample->apps[i].name[length])
			return &sample->apps[i];
	if (sample->app_count == APPS_MAX)
		return NULL;
	app = &sample->apps[sample->app_count++];
	memcpy(app->name, name, length);
	app->name[length] = 0;
	for (int i = 0; i < APP_COUNTS; i++)
		app->count[i] = NAN;
	return app;
}

/* "name:row"; the name may have a colon too. A longer name than fits is cut. */
static void take_app(struct sample *sample, const char *name, const char *value)
{
	const char *colon = strrchr(name, ':');
	size_t length = colon ? (size_t)(colon - name) : 0;
	struct app *app;

	if (length == 0)
		return;
	for (int i = 0; i < APP_COUNTS; i++) {
		if (strcmp(colon + 1, app_rows[i]) != 0 || !(sample_number(value) >= 0))
			continue;
		app = app_of(sample, name, length < APP_NAME_BYTES ? length : APP_NAME_BYTES - 1);
		if (app)
			app->count[i] = sample_number(value);
	}
}

static void take_text(struct sample *sample, enum report report, const char *name, const char *value)
{
	const struct {
		enum report report;
		const char *name;
		char *text;
		size_t bytes;
	} texts[] = {
		{ REPORT_GENERAL, "version", sample->version, sizeof(sample->version) },
		{ REPORT_FLASH, "flashield_version", sample->flashield, sizeof(sample->flashield) },
		{ REPORT_FLASH, "flash_offline_reason", sample->offline_reason, sizeof(sample->offline_reason) },
		{ REPORT_FLASH, "flash_writes_held_by", sample->held_by, sizeof(sample->held_by) },
		{ REPORT_CLASSIFIER, "model", sample->model, sizeof(sample->model) },
		{ REPORT_CLASSIFIER, "reason", sample->reason, sizeof(sample->reason) },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].report == report && strcmp(texts[i].name, name) == 0)
			snprintf(texts[i].text, texts[i].bytes, "%s", value);
}

void sample_row(struct sample *sample, enum report report, const char *name, const char *value)
{
	sample->has[report] = true;
	if (report == REPORT_APPS)
		take_app(sample, name, value);
	else if (report == REPORT_LATENCY)
		take_timing(sample, name, value);
	else if (report == REPORT_HOTKEYS)
		sample_hot_row(sample, name, value);
	else if (report == REPORT_SLOW)
		sample_slow_row(sample, name, value);
	else if (report == REPORT_CONTENTS)
		sample_contents_row(sample, name, value);
	else if (report == REPORT_LIMITS)
		sample_limits_row(sample, name, value);
	else
		take_field(sample, report, name, value);
	take_text(sample, report, name, value);
}

void sample_complete(struct sample *sample, int64_t at_us)
{
	sample->at_us = at_us;
	/* extstore has no such row, and has pages only where it has a file. */
	if (isnan(sample->value[FIELD_flash_enabled]) && !isnan(sample->value[FIELD_flash_bytes]))
		sample->value[FIELD_flash_enabled] = sample->value[FIELD_flash_bytes] > 0;
	if (isnan(sample->value[FIELD_segments_total]))
		sample->value[FIELD_segments_total] =
			sample->value[FIELD_segments_used] + sample->value[FIELD_segments_free];
}

const struct app *sample_app(const struct sample *sample, const char *name)
{
	for (unsigned i = 0; i < sample->app_count; i++)
		if (strcmp(sample->apps[i].name, name) == 0)
			return &sample->apps[i];
	return NULL;
}
