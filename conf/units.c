/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Reads digits with at most one dot between them. Returns the rest of the text, or NULL. On x86-64 a long double holds
   every 64-bit number exactly. */
static const char *parse_decimal(const char *text, long double *value)
{
	long double number = 0, scale = 1;
	const char *cursor = text;

	if (*cursor < '0' || *cursor > '9')
		return NULL;
	for (; *cursor >= '0' && *cursor <= '9'; cursor++)
		number = number * 10 + (*cursor - '0');
	if (*cursor == '.') {
		cursor++;
		if (*cursor < '0' || *cursor > '9')
			return NULL;
		for (; *cursor >= '0' && *cursor <= '9'; cursor++)
			if (scale < 1e18L) { /* further digits change nothing */
				number = number * 10 + (*cursor - '0');
				scale *= 10;
			}
	}
	*value = number / scale; /* rounded once: what is exact in binary is exact here */
	return cursor;
}

static int store(long double value, uint64_t *out)
{
	if (value >= 0x1p64L)
		return FS_ERANGE;
	*out = (uint64_t)value;
	return FS_OK;
}

static int parse_size_prefix(const char *text, uint64_t bare, long double *bytes, const char **rest)
{
	static const char suffixes[] = "kmgtp";
	long double value;
	const char *cursor = parse_decimal(text, &value);
	const char *suffix;

	if (!cursor)
		return FS_EINVAL;
	suffix = *cursor ? strchr(suffixes, *cursor | 0x20) : NULL;
	if (suffix) {
		value *= (long double)((uint64_t)1 << (10 * (suffix - suffixes + 1)));
		cursor++;
		if (strncasecmp(cursor, "ib", 2) == 0)
			cursor += 2;
		else if (strncasecmp(cursor, "b", 1) == 0)
			cursor++;
	} else {
		value *= (long double)bare;
	}
	*bytes = value;
	*rest = cursor;
	return FS_OK;
}

int units_parse_size(const char *text, uint64_t bare, uint64_t *bytes)
{
	long double value;
	const char *rest;

	if (parse_size_prefix(text, bare, &value, &rest) != FS_OK || *rest)
		return FS_EINVAL;
	return store(value, bytes);
}

#define TB 1e12L
#define DAY_S 86400
#define YEAR_S (365 * DAY_S)
#define YEARS_LEAST 0.1L
#define YEARS_MOST 100
#define DWPD_LEAST 1e-6L
#define DWPD_MOST 1000

/* The size of a drive, as data sheets have it. */
static int parse_drive_bytes(const char *text, long double *bytes)
{
	static const char suffixes[] = "kmgtp";
	const char *cursor = parse_decimal(text, bytes);
	const char *suffix;

	if (!cursor)
		return FS_EINVAL;
	suffix = *cursor ? strchr(suffixes, *cursor | 0x20) : NULL;
	if (suffix) {
		for (long power = suffix - suffixes; power >= 0; power--)
			*bytes *= 1000;
		cursor++;
		cursor += *cursor == 'b' || *cursor == 'B';
	}
	return *cursor ? FS_EINVAL : FS_OK;
}

static int store_endurance(long double bytes_per_second, uint64_t *rate)
{
	if (bytes_per_second < 1 || bytes_per_second >= 0x1p63L)
		return FS_ERANGE;
	return store(bytes_per_second, rate);
}

static int parse_tbw(long double tb, const char *rest, uint64_t *rate)
{
	long double years;

	rest = parse_decimal(rest, &years);
	if (!rest || strcasecmp(rest, "y") != 0)
		return FS_EINVAL;
	if (years < YEARS_LEAST || years > YEARS_MOST)
		return FS_ERANGE;
	return store_endurance(tb * TB / (years * YEAR_S), rate);
}

static int parse_dwpd(long double dwpd, const char *rest, uint64_t *rate)
{
	long double bytes = 0;

	if (*rest && (*rest != '/' || parse_drive_bytes(rest + 1, &bytes) != FS_OK))
		return FS_EINVAL;
	if (dwpd < DWPD_LEAST || dwpd > DWPD_MOST)
		return FS_ERANGE;
	if (*rest)
		return store_endurance(dwpd * bytes / DAY_S, rate);
	*rate = units_rate_of(0, (double)dwpd);
	return FS_OK;
}

int units_parse_rate(const char *text, uint64_t *rate)
{
	long double value;
	const char *rest = parse_decimal(text, &value);

	if (!rest)
		return FS_EINVAL;
	if (strncasecmp(rest, "TBW/", 4) == 0)
		return parse_tbw(value, rest + 4, rate);
	if (strncasecmp(rest, "DWPD", 4) == 0)
		return parse_dwpd(value, rest + 4, rate);
	if (parse_size_prefix(text, 1, &value, &rest) != FS_OK)
		return FS_EINVAL;
	if (*rest && strcasecmp(rest, "/s") != 0)
		return FS_EINVAL;
	if (value >= 0x1p63L)
		return FS_ERANGE;
	return store(value, rate);
}

static const struct {
	const char *suffix;
	uint64_t us;
} time_units[] = {
	{ "d", 86400000000u }, { "h", 3600000000u }, { "m", 60000000u },
	{ "s", 1000000u },     { "ms", 1000u },      { "us", 1u },
};

#define TIME_UNITS (sizeof(time_units) / sizeof(time_units[0]))

int units_parse_time(const char *text, uint64_t *us)
{
	long double value;
	const char *rest = parse_decimal(text, &value);

	if (!rest)
		return FS_EINVAL;
	if (!*rest)
		return store(value * 1000000, us);
	for (size_t i = 0; i < TIME_UNITS; i++)
		if (strcasecmp(rest, time_units[i].suffix) == 0)
			return store(value * (long double)time_units[i].us, us);
	return FS_EINVAL;
}

char *units_format_size(uint64_t bytes, char text[UNITS_TEXT_BYTES])
{
	static const char *const suffixes[] = { "", "k", "m", "g", "t", "p" };
	unsigned power = 0;

	while (bytes && power < 5 && bytes % 1024 == 0) {
		bytes /= 1024;
		power++;
	}
	snprintf(text, UNITS_TEXT_BYTES, "%" PRIu64 "%s", bytes, suffixes[power]);
	return text;
}

char *units_show_size(uint64_t bytes, char text[UNITS_TEXT_BYTES])
{
	static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double shown = (double)bytes / 1024;
	unsigned name = 0;

	for (; name < 5 && shown >= 1023.995; name++)
		shown /= 1024;
	if (bytes < 1024)
		snprintf(text, UNITS_TEXT_BYTES, "%" PRIu64 " bytes", bytes);
	else
		snprintf(text, UNITS_TEXT_BYTES, "%.2f %s", shown, names[name]);
	return text;
}

char *units_format_time(uint64_t us, char text[UNITS_TEXT_BYTES])
{
	if (us == 0) {
		memcpy(text, "0", 2);
		return text;
	}
	for (size_t i = 0; i < TIME_UNITS; i++) {
		if (us % time_units[i].us)
			continue;
		snprintf(text, UNITS_TEXT_BYTES, "%" PRIu64 "%s", us / time_units[i].us, time_units[i].suffix);
		break;
	}
	return text;
}

static char *format_dwpd(uint64_t millionths, char text[UNITS_TEXT_BYTES])
{
	int length =
		snprintf(text, UNITS_TEXT_BYTES, "%" PRIu64 ".%06" PRIu64, millionths / 1000000, millionths % 1000000);

	while (text[length - 1] == '0')
		length--;
	if (text[length - 1] == '.')
		length--;
	snprintf(text + length, UNITS_TEXT_BYTES - (size_t)length, "DWPD");
	return text;
}

char *units_format_rate(uint64_t rate, char text[UNITS_TEXT_BYTES])
{
	if (rate & UNITS_RATE_DWPD)
		return format_dwpd(rate & ~UNITS_RATE_DWPD, text);
	size_t length = strlen(units_format_size(rate, text));

	if (rate)
		snprintf(text + length, UNITS_TEXT_BYTES - length, "/s");
	return text;
}
