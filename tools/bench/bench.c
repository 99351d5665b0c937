/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/bench.h"

#include <stdarg.h>
#include <stdio.h>

uint64_t bench_scaled(const struct bench *bench, uint64_t count, uint64_t low)
{
	double scaled = (double)count * bench->options->scale;

	return scaled > (double)low ? (uint64_t)scaled : low;
}

void bench_progress(const struct bench *bench, const char *format, ...)
{
	char text[512];
	va_list arguments;

	if (bench->options->quiet)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s\n", text);
}
