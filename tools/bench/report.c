/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"

static void report(const char *kind, json_t *value)
{
	json_t *line = json_pack("{s:o}", kind, value);

	must(line && json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0);
	json_decref(line);
	putchar('\n');
	fflush(stdout);
}

void report_add(const char *row, const char *column, double value)
{
	report("add", json_pack("[s, s, o]", row, column, isfinite(value) ? json_real(value) : json_null()));
}

static void __attribute__((format(printf, 2, 0))) report_text(const char *kind, const char *format, va_list arguments)
{
	char text[1024];

	vsnprintf(text, sizeof(text), format, arguments);
	report(kind, json_string(text));
}

void report_note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_text("note", format, arguments);
	va_end(arguments);
}

void report_progress(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_text("progress", format, arguments);
	va_end(arguments);
}

void report_result(json_t *result)
{
	report("result", result);
}

json_t *report_hist(const struct hist *hist)
{
	json_t *steps = json_array();

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t count = hist->bucket[i];

		if (count)
			must(json_array_append_new(steps, json_pack("[I, I]", (json_int_t)i, (json_int_t)count)) == 0);
	}
	return json_pack("{s:I, s:o}", "max", (json_int_t)hist->max, "steps", steps);
}
