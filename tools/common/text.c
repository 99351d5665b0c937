/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH 30

/* Three significant digits, with the unit that keeps the number below `step`. */
static char *scaled(double value, double step, const char *const *units, int last, char out[TEXT_BYTES])
{
	int unit = 0;

	while (unit < last && fabs(value) >= step * 0.9995) {
		value /= step;
		unit++;
	}
	if (unit == 0 && value == floor(value))
		snprintf(out, TEXT_BYTES, "%.0f%s", value, units[unit]);
	else
		snprintf(out, TEXT_BYTES, "%.*f%s",
			 fabs(value) < 10    ? 2
			 : fabs(value) < 100 ? 1
					     : 0,
			 value, units[unit]);
	return out;
}

char *text_count(double value, char out[TEXT_BYTES])
{
	static const char *const units[] = { "", " k", " M", " G", " T" };

	return scaled(value, 1000, units, 4, out);
}

char *text_size(double bytes, char out[TEXT_BYTES])
{
	static const char *const units[] = { " B", " KiB", " MiB", " GiB", " TiB" };

	return scaled(bytes, 1024, units, 4, out);
}

char *text_duration(double seconds, char out[TEXT_BYTES])
{
	static const char *const units[] = { " us", " ms", " s" };

	if (seconds >= 172800)
		snprintf(out, TEXT_BYTES, "%.1f days", seconds / 86400);
	else if (seconds >= 3600)
		snprintf(out, TEXT_BYTES, "%.0f h %02.0f min", floor(seconds / 3600), floor(fmod(seconds, 3600) / 60));
	else if (seconds >= 120)
		snprintf(out, TEXT_BYTES, "%.0f min %02.0f s", floor(seconds / 60), floor(fmod(seconds, 60)));
	else
		scaled(seconds * 1e6, 1000, units, 2, out);
	return out;
}

char *text_grouped(uint64_t value, char out[TEXT_BYTES])
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, value);
	int used = 0;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			out[used++] = ' ';
		out[used++] = digits[i];
	}
	out[used] = 0;
	return out;
}

char *text_option_time(double seconds, char out[TEXT_BYTES])
{
	if (seconds >= 10)
		snprintf(out, TEXT_BYTES, "%.0fs", seconds);
	else if (seconds >= 1)
		snprintf(out, TEXT_BYTES, "%.1fs", seconds);
	else
		snprintf(out, TEXT_BYTES, "%.0fms", fmax(1, seconds * 1000));
	return out;
}

static int64_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

void progress_init(struct progress *progress, bool quiet)
{
	*progress = (struct progress){ .quiet = quiet, .terminal = isatty(STDERR_FILENO) };
	progress->start_s = seconds_now();
}

void progress_show(struct progress *progress, double fraction, const char *note)
{
	char bar[BAR_WIDTH + 1];
	int filled = (int)(fmin(fmax(fraction, 0), 1) * BAR_WIDTH);
	int tenth = (int)(fraction * 10 + 1e-9), width;

	if (progress->quiet)
		return;
	if (!progress->terminal) {
		if (tenth > progress->last_tenth && seconds_now() > progress->start_s + 2)
			fprintf(stderr, "%3d %%  %s\n", tenth * 10, note);
		progress->last_tenth = tenth > progress->last_tenth ? tenth : progress->last_tenth;
		return;
	}
	memset(bar, '.', BAR_WIDTH);
	memset(bar, '#', (size_t)filled);
	bar[BAR_WIDTH] = 0;
	if (fraction < 0)
		width = fprintf(stderr, "\r%s", note);
	else
		width = fprintf(stderr, "\r[%s] %3.0f %%  %s", bar, fraction * 100, note);
	if (width < progress->drawn_width)
		fprintf(stderr, "%*s", progress->drawn_width - width, "");
	progress->drawn_width = width;
	fflush(stderr);
}

void progress_clear(struct progress *progress)
{
	if (progress->drawn_width)
		fprintf(stderr, "\r%*s\r", progress->drawn_width, "");
	progress->drawn_width = 0;
	fflush(stderr);
}
