/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/args.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "conf/units.h"
#include "conf/version.h"

void arg_die(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fflush(stdout);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
	exit(EXIT_TROUBLE);
}

uint64_t arg_count(const char *option, const char *text, uint64_t low, uint64_t high)
{
	unsigned long long value = 0;
	uint64_t unit = 1;
	char *rest = NULL;

	errno = 0;
	if (*text >= '0' && *text <= '9')
		value = strtoull(text, &rest, 10);
	if (rest && *rest && !rest[1]) {
		unit = *rest == 'k' ? 1000 : *rest == 'm' ? 1000000 : *rest == 'g' ? 1000000000 : 0;
		rest++;
	}
	if (!rest || *rest || errno || !unit || value > UINT64_MAX / unit || value * unit < low || value * unit > high)
		arg_die("--%s: \"%s\" is not a whole number from %" PRIu64 " to %" PRIu64 " (k, m, g: thousands)",
			option, text, low, high);
	return value * unit;
}

double arg_real(const char *option, const char *text, double low, double high)
{
	char *rest;
	double value = strtod(text, &rest);

	if (rest != text && *rest == '/') {
		const char *divisor_text = rest + 1;
		double divisor = strtod(divisor_text, &rest);

		value = rest != divisor_text && divisor > 0 ? value / divisor : NAN;
	}
	if (rest == text || *rest || !(value >= low && value <= high))
		arg_die("--%s: \"%s\" is not a number from %g to %g", option, text, low, high);
	return value;
}

uint64_t arg_size(const char *option, const char *text, uint64_t low, uint64_t high)
{
	char low_text[UNITS_TEXT_BYTES], high_text[UNITS_TEXT_BYTES];
	uint64_t bytes = 0;

	if (units_parse_size(text, 1, &bytes) != FS_OK || bytes < low || bytes > high)
		arg_die("--%s: \"%s\" is not a size from %s to %s (k, m, g: powers of 1024)", option, text,
			units_format_size(low, low_text), units_format_size(high, high_text));
	return bytes;
}

uint64_t arg_time_us(const char *option, const char *text, uint64_t low_us, uint64_t high_us)
{
	char low_text[UNITS_TEXT_BYTES], high_text[UNITS_TEXT_BYTES];
	uint64_t us = 0;

	if (units_parse_time(text, &us) != FS_OK || us < low_us || us > high_us)
		arg_die("--%s: \"%s\" is not a time from %s to %s (us, ms, s, m, h, d)", option, text,
			units_format_time(low_us, low_text), units_format_time(high_us, high_text));
	return us;
}

int arg_word(const char *option, const char *text, const char *const *words)
{
	char list[256] = "";

	for (int i = 0; words[i]; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	for (int i = 0; words[i]; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", words[i]);
	}
	arg_die("--%s: \"%s\" is not one of %s", option, text, list);
}

/* ---- a table of options ---------------------------------------------------------------------- */

enum { OPTIONS_MOST = 32, OPTION_FIRST = 256 }; /* getopt's numbers start where no letter is */

static void store_value(const struct arg_option *option, const char *text)
{
	uint64_t low = (uint64_t)option->low, high = option->high > 0 ? (uint64_t)option->high : UINT64_MAX;

	switch (option->kind) {
	case ARG_ON:
	case ARG_OFF:
		*(bool *)option->to = option->kind == ARG_ON;
		break;
	case ARG_TEXT:
		*(const char **)option->to = text;
		break;
	case ARG_COUNT:
		*(uint64_t *)option->to = arg_count(option->name, text, low, high);
		break;
	case ARG_COUNT32:
		*(uint32_t *)option->to = (uint32_t)arg_count(option->name, text, low, high);
		break;
	case ARG_REAL:
		*(double *)option->to = arg_real(option->name, text, option->low, option->high);
		break;
	case ARG_SIZE32:
		*(uint32_t *)option->to = (uint32_t)arg_size(option->name, text, low, high);
		break;
	case ARG_TIME_US:
		*(int64_t *)option->to = (int64_t)arg_time_us(option->name, text, low, high);
		break;
	case ARG_WORD:
		*(int *)option->to = arg_word(option->name, text, option->words);
		break;
	case ARG_CALL:
		option->call(option->to, text);
	}
}

int args_parse(int argc, char **argv, const struct arg_option *options, const char *help)
{
	struct option rows[OPTIONS_MOST + 3] = { { "help", no_argument, NULL, 'h' },
						 { "version", no_argument, NULL, 'v' } };
	char letters[2 * OPTIONS_MOST + 1] = "";
	int found;

	for (int i = 0; options[i].name; i++) {
		bool has_value = options[i].kind != ARG_ON && options[i].kind != ARG_OFF;

		must(i < OPTIONS_MOST);
		rows[i + 2] = (struct option){ options[i].name, has_value, NULL, OPTION_FIRST + i };
		if (options[i].letter)
			snprintf(letters + strlen(letters), sizeof(letters) - strlen(letters), "%c%s",
				 options[i].letter, has_value ? ":" : "");
	}
	while ((found = getopt_long(argc, argv, letters, rows, NULL)) != -1) {
		if (found == '?')
			arg_die("see --help");
		if (found == 'h') {
			fputs(help, stdout);
			exit(0);
		}
		if (found == 'v') {
			printf("%s (Flashield) " FS_VERSION "\n", program_invocation_short_name);
			exit(0);
		}
		for (int i = 0; options[i].name; i++)
			if (found == OPTION_FIRST + i || (options[i].letter && found == options[i].letter))
				store_value(&options[i], optarg);
	}
	return optind;
}
