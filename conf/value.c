/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads, checks and prints one value. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "conf/conf_internal.h"
#include "conf/units.h"

#define PAGE_BYTES 4096

static const char *const true_words[] = { "yes", "on", "true", "1" };
static const char *const false_words[] = { "no", "off", "false", "0" };

static void *field_of(struct conf *conf, const struct conf_option *option)
{
	return (char *)conf + option->offset;
}

static const void *const_field_of(const struct conf *conf, const struct conf_option *option)
{
	return (const char *)conf + option->offset;
}

/* --- what is accepted ------------------------------------------------------------------------ */

static char *bound_text(const struct conf_option *option, double bound, char text[UNITS_TEXT_BYTES])
{
	switch (option->type) {
	case CONF_TYPE_SIZE:
		return units_format_size((uint64_t)bound, text);
	case CONF_TYPE_TIME:
		return units_format_time((uint64_t)bound, text);
	case CONF_TYPE_RATE:
		return units_format_rate((uint64_t)bound, text);
	case CONF_TYPE_OCTAL:
		snprintf(text, UNITS_TEXT_BYTES, "%o", (unsigned)bound);
		return text;
	default:
		snprintf(text, UNITS_TEXT_BYTES, "%.15g", bound);
		return text;
	}
}

static const char rate_forms[] =
	", in bytes per second or with a suffix k m g t p, or an endurance: 1200TBW/5y (0.1 to 100 years), "
	"1DWPD of the flash or 1DWPD/1920g of a drive (0.000001 to 1000 DWPD)";

/* What a number counts, " threads". A size's unit is its suffix. */
static const char *counted(const struct conf_option *option, char text[32])
{
	bool counts =
		option->type == CONF_TYPE_INT || option->type == CONF_TYPE_COUNT || option->type == CONF_TYPE_REAL;

	snprintf(text, 32, "%s%.30s", counts && *option->unit ? " " : "", counts ? option->unit : "");
	return text;
}

const char *conf_accepted(const struct conf_option *option, char text[CONF_ACCEPTED_BYTES])
{
	static const char *const forms[] = {
		[CONF_TYPE_COUNT] = "a whole number",  [CONF_TYPE_INT] = "a whole number",
		[CONF_TYPE_SIZE] = "a size",           [CONF_TYPE_TIME] = "a time",
		[CONF_TYPE_RATE] = "a rate",           [CONF_TYPE_REAL] = "a number",
		[CONF_TYPE_OCTAL] = "an octal number", [CONF_TYPE_STRING] = "text",
	};
	static const char *const suffixes[] = {
		[CONF_TYPE_SIZE] = ", in bytes or with a suffix k m g t p",
		[CONF_TYPE_TIME] = ", in seconds or with a suffix us ms s m h d",
		[CONF_TYPE_RATE] = rate_forms,
		[CONF_TYPE_ENUM] = NULL,
	};
	bool in_mib = option->type == CONF_TYPE_SIZE && *option->unit == 'm';
	const char *suffix = in_mib ? ", in MiB or with a suffix k m g t p" : suffixes[option->type];
	char low[UNITS_TEXT_BYTES], high[UNITS_TEXT_BYTES], unit[32];

	switch (option->type) {
	case CONF_TYPE_FLAG:
		snprintf(text, CONF_ACCEPTED_BYTES, "yes or no");
		break;
	case CONF_TYPE_CHAR:
		snprintf(text, CONF_ACCEPTED_BYTES, "one printable character");
		break;
	case CONF_TYPE_STRING:
		snprintf(text, CONF_ACCEPTED_BYTES, "text of 1 to %.0f bytes", option->max);
		break;
	case CONF_TYPE_ENUM:
		snprintf(text, CONF_ACCEPTED_BYTES, "one of %s", option->unit);
		for (char *bar = text; (bar = strchr(bar, '|')) != NULL;)
			*bar = ' ';
		break;
	default:
		if (option->min == option->max) { /* a single value, so far */
			snprintf(text, CONF_ACCEPTED_BYTES, "%s", bound_text(option, option->min, low));
			break;
		}
		snprintf(text, CONF_ACCEPTED_BYTES, "%s from %s to %s%s%s%s%s", forms[option->type],
			 bound_text(option, option->min, low), bound_text(option, option->max, high),
			 counted(option, unit), suffix ? suffix : "",
			 option->flags & CONF_PAGES ? ", a multiple of 4096" : "",
			 option->flags & CONF_AUTO_WORD ? ", or auto" : "");
	}
	return text;
}

const char *conf_shown(const char *value, char text[CONF_SHOWN_BYTES])
{
	size_t at = 0;

	for (; *value && at + 4 + sizeof("...") <= CONF_SHOWN_BYTES; value++) {
		unsigned char byte = (unsigned char)*value;

		if (byte < ' ' || byte == 0x7f)
			at += (size_t)snprintf(text + at, CONF_SHOWN_BYTES - at, "\\x%02x", byte);
		else
			text[at++] = *value;
	}
	snprintf(text + at, CONF_SHOWN_BYTES - at, "%s", *value ? "..." : "");
	return text;
}

/* --- from text ------------------------------------------------------------------------------- */

static bool in_words(const char *value, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(value, words[i]) == 0)
			return true;
	return false;
}

/* The index of a word in "a|b|c", or -1. */
static int word_index(const char *words, const char *value)
{
	size_t length = strlen(value);

	for (int index = 0;; index++) {
		size_t span = strcspn(words, "|");

		if (span == length && strncasecmp(words, value, span) == 0)
			return index;
		if (!words[span])
			return -1;
		words += span + 1;
	}
}

static bool in_range(const struct conf_option *option, double number)
{
	return number >= option->min && number <= option->max;
}

static int set_integer(const struct conf_option *option, const char *value, int base, long *number)
{
	char *end;

	if (*value != '-' && (*value < '0' || *value > '9'))
		return FS_EINVAL; /* strtol would skip blanks and take a plus */
	errno = 0;
	*number = strtol(value, &end, base);
	if (errno || end == value || *end || !in_range(option, (double)*number))
		return FS_EINVAL;
	return FS_OK;
}

static int set_unsigned(const struct conf_option *option, const char *value, uint64_t *field)
{
	uint64_t bare = 1, number;
	int rc;

	if (option->type == CONF_TYPE_TIME) {
		rc = units_parse_time(value, &number);
	} else if (option->type == CONF_TYPE_RATE) {
		rc = units_parse_rate(value, &number);
	} else {
		if (*option->unit) {
			const char one[] = { '1', *option->unit, 0 };

			must(units_parse_size(one, 1, &bare) == FS_OK);
		}
		rc = units_parse_size(value, bare, &number);
	}
	if (rc != FS_OK)
		return FS_EINVAL;
	if (option->type == CONF_TYPE_RATE && number & UNITS_RATE_DWPD) {
		*field = number; /* has a range of its own */
		return FS_OK;
	}
	if (!in_range(option, (double)number) && !(number == 0 && option->flags & CONF_AUTO_WORD))
		return FS_EINVAL; /* 0 is auto's value, and may be written so */
	if (option->flags & CONF_PAGES && number % PAGE_BYTES)
		return FS_EINVAL;
	*field = number;
	return FS_OK;
}

static int set_real(const struct conf_option *option, const char *value, double *field)
{
	char *end;
	double number;

	if (strspn(value, "0123456789.") != strlen(value) || !*value)
		return FS_EINVAL; /* no "nan", "inf", hexadecimal or exponent */
	number = strtod(value, &end);
	if (end == value || *end || !in_range(option, number))
		return FS_EINVAL;
	*field = number;
	return FS_OK;
}

static int set_string(const struct conf_option *option, const char *value, bool append, char **field)
{
	bool joins = append && option->flags & CONF_LIST;
	const char *before = joins && *field ? *field : NULL;
	size_t length = strlen(value);
	char *text;

	if ((double)length < option->min || (double)length > option->max)
		return FS_EINVAL;
	if (asprintf(&text, "%s%s%s", before ? before : "", before ? "," : "", value) < 0)
		return FS_ENOMEM;
	free(*field);
	*field = text;
	return FS_OK;
}

int conf_value_set(struct conf *conf, const struct conf_option *option, const char *value, bool append)
{
	void *field = field_of(conf, option);
	long number;
	int index;

	if (option->flags & CONF_AUTO_WORD && strcasecmp(value, "auto") == 0) {
		if (option->type == CONF_TYPE_INT)
			*(int *)field = CONF_AUTO;
		else if (option->type == CONF_TYPE_REAL)
			*(double *)field = 0;
		else
			*(uint64_t *)field = 0;
		return FS_OK;
	}
	switch (option->type) {
	case CONF_TYPE_FLAG:
		if (in_words(value, true_words, 4))
			*(bool *)field = true;
		else if (in_words(value, false_words, 4))
			*(bool *)field = false;
		else
			return FS_EINVAL;
		return FS_OK;
	case CONF_TYPE_COUNT:
	case CONF_TYPE_INT:
		if (set_integer(option, value, 10, &number) != FS_OK)
			return FS_EINVAL;
		*(int *)field = (int)number;
		return FS_OK;
	case CONF_TYPE_OCTAL:
		if (set_integer(option, value, 8, &number) != FS_OK)
			return FS_EINVAL;
		*(unsigned *)field = (unsigned)number;
		return FS_OK;
	case CONF_TYPE_SIZE:
	case CONF_TYPE_TIME:
	case CONF_TYPE_RATE:
		return set_unsigned(option, value, field);
	case CONF_TYPE_REAL:
		return set_real(option, value, field);
	case CONF_TYPE_CHAR:
		if (strlen(value) != 1 || *value <= ' ' || *value > '~')
			return FS_EINVAL;
		*(char *)field = *value;
		return FS_OK;
	case CONF_TYPE_STRING:
		return set_string(option, value, append, field);
	case CONF_TYPE_ENUM:
		index = word_index(option->unit, value);
		if (index < 0)
			return FS_EINVAL;
		*(int *)field = index;
		return FS_OK;
	}
	return FS_EINVAL;
}

/* --- to text --------------------------------------------------------------------------------- */

static bool is_auto(const struct conf_option *option, const void *field)
{
	if (!(option->flags & CONF_AUTO_WORD))
		return false;
	if (option->type == CONF_TYPE_INT)
		return *(const int *)field == CONF_AUTO;
	if (option->type == CONF_TYPE_REAL)
		return *(const double *)field <= 0;
	return *(const uint64_t *)field == 0;
}

/* A bare number would be in the option's own unit. Ten digits show any part of a KiB exactly. */
static const char *size_text(const struct conf_option *option, uint64_t bytes, char text[CONF_VALUE_BYTES])
{
	if (!*option->unit || bytes % 1024 == 0)
		return units_format_size(bytes, text);
	snprintf(text, CONF_VALUE_BYTES, "%" PRIu64 ".%010" PRIu64 "k", bytes / 1024,
		 bytes % 1024 * (10000000000u / 1024));
	return text;
}

const char *conf_value_text(const struct conf *conf, const struct conf_option *option, char text[CONF_VALUE_BYTES])
{
	const void *field = const_field_of(conf, option);
	const char *word;

	if (is_auto(option, field))
		return "auto";
	switch (option->type) {
	case CONF_TYPE_FLAG:
		return *(const bool *)field ? "yes" : "no";
	case CONF_TYPE_COUNT:
	case CONF_TYPE_INT:
		snprintf(text, CONF_VALUE_BYTES, "%d", *(const int *)field);
		break;
	case CONF_TYPE_SIZE:
		return size_text(option, *(const uint64_t *)field, text);
	case CONF_TYPE_TIME:
		return units_format_time(*(const uint64_t *)field, text);
	case CONF_TYPE_RATE:
		return units_format_rate(*(const uint64_t *)field, text);
	case CONF_TYPE_REAL:
		snprintf(text, CONF_VALUE_BYTES, "%.15g", *(const double *)field);
		break;
	case CONF_TYPE_OCTAL:
		snprintf(text, CONF_VALUE_BYTES, "%o", *(const unsigned *)field);
		break;
	case CONF_TYPE_CHAR:
		snprintf(text, CONF_VALUE_BYTES, "%c", *(const char *)field);
		break;
	case CONF_TYPE_STRING:
		return *(char *const *)field ? *(char *const *)field : "";
	case CONF_TYPE_ENUM:
		word = option->unit;
		for (int index = *(const int *)field; index > 0; index--)
			word += strcspn(word, "|") + 1;
		snprintf(text, CONF_VALUE_BYTES, "%.*s", (int)strcspn(word, "|"), word);
		break;
	}
	return text;
}
