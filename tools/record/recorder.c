/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/events.h"
#include "base/hash.h"

void recorder_init(struct recorder *recorder, const struct record_options *options, struct output *output)
{
	memset(recorder, 0, sizeof(*recorder));
	recorder->options = options;
	recorder->output = output;
	recorder->counts.first_us = -1;
	names_init(&recorder->names, options->salt);
	order_init(&recorder->order);
	rows_init(&recorder->rows, options->fill_window_us);
}

void recorder_fini(struct recorder *recorder)
{
	names_fini(&recorder->names);
	order_fini(&recorder->order);
	rows_fini(&recorder->rows);
}

uint64_t recorder_requests(const struct recorder *recorder)
{
	return recorder->counts.gets + recorder->counts.sets + recorder->counts.deletes;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void count_row(struct recorder *recorder, const struct row *row)
{
	struct recorder_counts *counts = &recorder->counts;

	if (counts->first_us < 0)
		counts->first_us = row->time_us;
	counts->last_us = row->time_us;
	counts->gets += row->op == ROW_GET;
	counts->hits += row->op == ROW_GET && row->found;
	counts->unknown += row->op == ROW_GET && !row->found && row->size < 0;
	counts->sets += row->op == ROW_SET;
	counts->deletes += row->op == ROW_DELETE;
	distinct_add(&recorder->keys, row->key);
	distinct_add(&recorder->apps, mix64(hash64(row->app, strlen(row->app), 0)));
}

static void write_rows(struct recorder *recorder, bool all)
{
	struct row row;

	while (rows_next(&recorder->rows, all, &row)) {
		if (recorder_requests(recorder) >= recorder->options->limit)
			continue;
		count_row(recorder, &row);
		output_row(recorder->output, &row, recorder->counts.first_us);
	}
}

static void pass_events(struct recorder *recorder, bool all)
{
	struct event event;

	while (order_next(&recorder->order, all, &event)) {
		rows_add(&recorder->rows, &event);
		write_rows(recorder, false);
	}
}

void recorder_settle(struct recorder *recorder)
{
	pass_events(recorder, true);
	write_rows(recorder, true);
}

/* ---- lines ------------------------------------------------------------------------------------- */

/* The application of a key; one without a delimiter is of none. */
static void name_app(const struct recorder *recorder, const struct line *line, char out[APP_BYTES])
{
	const struct record_options *options = recorder->options;
	const char *end = memchr(line->key, options->delimiter, line->key_length);
	size_t length = end ? (size_t)(end - line->key) : 0;
	char name[3 * LINE_KEY_MAX + 1];

	if (!end || options->apps == APPS_NONE)
		snprintf(out, APP_BYTES, "-");
	else if (options->apps == APPS_HASH)
		snprintf(out, APP_BYTES, "%08" PRIx32, (uint32_t)(names_of(&recorder->names, line->key, length) >> 32));
	else
		snprintf(out, APP_BYTES, "%.*s", APP_BYTES - 1, events_key(line->key, length, name));
	/* A trace has neither of these as a name. */
	if (!out[0])
		snprintf(out, APP_BYTES, "-");
	else if (strcmp(out, "-1") == 0)
		snprintf(out, APP_BYTES, "%%2D1");
}

static void take_event(struct recorder *recorder, const struct line *line)
{
	uint64_t name = names_of(&recorder->names, line->key, line->key_length);
	struct event event = {
		.gid = line->gid,
		.time_us = line->time_us,
		.key = name,
		.ttl_s = line->ttl_s > 0 ? (uint32_t)line->ttl_s : 0,
		.size = (int32_t)line->size,
		.connection = line->connection,
		.key_size = (uint8_t)line->key_length,
		.kind = (uint8_t)line->kind,
		.found = line->found,
		.fills = line->fills,
		.tells_tier = line->tells_tier,
		.expired = line->ttl_s < 0,
	};

	/* The name's own high bits are left to those who sample the trace again. */
	if (recorder->options->sample < 1 && (double)mix64(name) >= recorder->options->sample * 0x1p64) {
		recorder->counts.outside++;
		return;
	}
	name_app(recorder, line, event.app);
	order_add(&recorder->order, &event);
	pass_events(recorder, false);
}

static void note_broken(struct recorder *recorder, const char *text, size_t length)
{
	size_t kept = length < sizeof(recorder->last_broken) - 1 ? length : sizeof(recorder->last_broken) - 1;

	recorder->counts.broken++;
	for (size_t i = 0; i < kept; i++)
		recorder->last_broken[i] = (char)(text[i] >= ' ' && text[i] < 127 ? text[i] : '?');
	recorder->last_broken[kept] = 0;
}

void recorder_line(struct recorder *recorder, const char *text, size_t length)
{
	struct line line;

	line_parse(text, length, &line);
	if (line.kind == LINE_SKIPPED) {
		recorder->counts.skipped += (uint64_t)line.size;
		return;
	}
	recorder->counts.lines++;
	if (line.tells_tier || line.kind == LINE_DELETE || line.kind == LINE_UPDATE)
		recorder->is_flashield = true;
	if (line.kind == LINE_BROKEN)
		note_broken(recorder, text, length);
	else if (line.kind != LINE_IGNORED)
		take_event(recorder, &line);
}
