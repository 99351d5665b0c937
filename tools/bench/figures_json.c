/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of a run, kept so that a later run is compared with it:
 *
 *   {"format": "flashield-bench 1",
 *    "about": {name: text},
 *    "columns": {name: {"head": text, "decimals": digits}},
 *    "studies": {name: {"title": text, "explanation": text, "notes": [text],
 *                       "rows": {row: {column: [sample of each round]}}}},
 *    "targets": [{"measure": text, "value": v, "unit": text, "at_most" or "at_least": limit}]}
 *
 * What is not a number is null. Objects are in the order of the first addition.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "tools/bench/figures_internal.h"

#define FORMAT "flashield-bench 1"

/* ---- writing --------------------------------------------------------------------------------- */

/* Out of memory, or text that is not UTF-8: the latter is given as far as it can be. */
static json_t *text_json(const char *text)
{
	json_t *value = json_string(text);
	char plain[1024];
	size_t i = 0;

	if (value)
		return value;
	for (; text[i] && i < sizeof(plain) - 1; i++)
		plain[i] = text[i] & 0x80 ? '?' : text[i];
	plain[i] = 0;
	return json_string(plain);
}

static json_t *number_json(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static void put(json_t *object, const char *name, json_t *value)
{
	must(json_object_set_new_nocheck(object, name, value) == 0);
}

static void put_last(json_t *array, json_t *value)
{
	must(json_array_append_new(array, value) == 0);
}

static json_t *abouts_json(const struct figures *figures)
{
	json_t *object = json_object();

	for (size_t i = 0; i < figures->about_count; i++)
		put(object, figures->abouts[i].name, text_json(figures->abouts[i].text));
	return object;
}

static json_t *columns_json(const struct figures *figures)
{
	json_t *object = json_object();

	for (size_t i = 0; i < figures->column_count; i++) {
		json_t *column = json_object();

		put(column, "head", text_json(figures->columns[i].head));
		put(column, "decimals", json_integer(figures->columns[i].decimals));
		put(object, figures->columns[i].name, column);
	}
	return object;
}

static json_t *row_json(const struct figures *figures, const struct figures_row *row)
{
	json_t *object = json_object();

	for (size_t c = 0; c < row->cell_count; c++) {
		json_t *samples = json_array();

		for (size_t i = 0; i < row->cells[c].count; i++)
			put_last(samples, number_json(row->cells[c].samples[i]));
		put(object, figures->columns[row->cells[c].column].name, samples);
	}
	return object;
}

static json_t *study_json(const struct figures *figures, const struct figures_study *study)
{
	json_t *object = json_object(), *notes = json_array(), *rows = json_object();

	for (size_t i = 0; i < study->note_count; i++)
		put_last(notes, text_json(study->notes[i]));
	for (size_t i = 0; i < study->row_count; i++)
		put(rows, study->rows[i].name, row_json(figures, &study->rows[i]));
	put(object, "title", text_json(study->title));
	put(object, "explanation", text_json(study->explanation));
	put(object, "notes", notes);
	put(object, "rows", rows);
	return object;
}

static json_t *target_json(const struct figures_target *target)
{
	json_t *object = json_object();

	put(object, "measure", text_json(target->measure));
	put(object, "value", number_json(target->value));
	put(object, "unit", text_json(target->unit));
	if (target->has_limit)
		put(object, target->bound == FIGURES_AT_MOST ? "at_most" : "at_least", number_json(target->limit));
	return object;
}

static json_t *figures_json(const struct figures *figures)
{
	json_t *root = json_object(), *studies = json_object(), *targets = json_array();

	for (size_t i = 0; i < figures->study_count; i++)
		put(studies, figures->studies[i].name, study_json(figures, &figures->studies[i]));
	for (size_t i = 0; i < figures->target_count; i++)
		put_last(targets, target_json(&figures->targets[i]));
	put(root, "format", json_string(FORMAT));
	put(root, "about", abouts_json(figures));
	put(root, "columns", columns_json(figures));
	put(root, "studies", studies);
	put(root, "targets", targets);
	return root;
}

int figures_write_json(const struct figures *figures, const char *path)
{
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	json_t *root;
	int code;

	if (!out)
		return -1;
	root = figures_json(figures);
	code = json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	if (fputc('\n', out) == EOF)
		code = -1;
	if ((out == stdout ? fflush(out) : fclose(out)) != 0)
		code = -1;
	json_decref(root);
	return code;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *string_of(const json_t *value)
{
	const char *text = json_string_value(value);

	return text ? text : "";
}

static const char *text_of(const json_t *object, const char *name)
{
	return string_of(json_object_get(object, name));
}

static double number_of(const json_t *value)
{
	return json_is_number(value) ? json_number_value(value) : NAN;
}

static void read_abouts(struct figures *figures, json_t *abouts)
{
	const char *name;
	json_t *text;

	json_object_foreach(abouts, name, text) figures_about(figures, name, "%s", string_of(text));
}

static void read_columns(struct figures *figures, json_t *columns)
{
	const char *name;
	json_t *column;

	json_object_foreach(columns, name, column) figures_column(
		figures, name, text_of(column, "head"), (int)json_integer_value(json_object_get(column, "decimals")));
}

static void read_rows(struct figures *figures, const char *study, json_t *rows)
{
	const char *row_name, *column;
	json_t *row, *samples, *sample;
	size_t i;

	json_object_foreach(rows, row_name, row)
	{
		json_object_foreach(row, column, samples)
		{
			json_array_foreach(samples, i, sample)
				figures_add(figures, study, row_name, column, number_of(sample));
		}
	}
}

static void read_studies(struct figures *figures, json_t *studies)
{
	const char *name;
	json_t *study, *note;
	size_t i;

	json_object_foreach(studies, name, study)
	{
		figures_study(figures, name, text_of(study, "title"), text_of(study, "explanation"));
		read_rows(figures, name, json_object_get(study, "rows"));
		json_array_foreach(json_object_get(study, "notes"), i, note)
			figures_note(figures, name, "%s", string_of(note));
	}
}

static void read_targets(struct figures *figures, json_t *targets)
{
	json_t *target;
	size_t i;

	json_array_foreach(targets, i, target)
	{
		const char *measure = text_of(target, "measure"), *unit = text_of(target, "unit");
		double value = number_of(json_object_get(target, "value"));
		json_t *most = json_object_get(target, "at_most");
		json_t *least = json_object_get(target, "at_least");

		if (most || least)
			figures_target(figures, measure, value, most ? FIGURES_AT_MOST : FIGURES_AT_LEAST,
				       number_of(most ? most : least), unit);
		else
			figures_beside(figures, measure, value, unit);
	}
}

struct figures *figures_read_json(const char *path, char error[256])
{
	json_error_t why;
	FILE *in = fopen(path, "r");
	json_t *root = in ? json_loadf(in, 0, &why) : NULL;
	struct figures *figures = NULL;

	if (!in)
		snprintf(error, 256, "%s: %s", path, strerror(errno));
	else if (!root)
		snprintf(error, 256, "%s:%d: %s", path, why.line, why.text);
	else if (strcmp(text_of(root, "format"), FORMAT) != 0)
		snprintf(error, 256, "%s: not the figures of a flashield-bench run (\"format\": \"" FORMAT "\")", path);
	else {
		figures = figures_create();
		read_abouts(figures, json_object_get(root, "about"));
		read_columns(figures, json_object_get(root, "columns"));
		read_studies(figures, json_object_get(root, "studies"));
		read_targets(figures, json_object_get(root, "targets"));
	}
	json_decref(root);
	if (in)
		fclose(in);
	return figures;
}
