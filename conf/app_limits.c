/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf/app_limits.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf_internal.h"
#include "conf/units.h"

#define VALUE_BYTES 64u /* longer than any number with a unit that an operator writes */

static const char form[] = "NAME:dram=FLOOR-CEILING,flash=FLOOR-CEILING,write=RATE";

/* A part of the text, between two commas. */
struct part {
	const char *name, *resource, *value; /* name: NULL where the part goes on with the last one */
	size_t name_length, resource_length, value_length;
};

static int refuse_part(char why[APP_LIMITS_WHY_BYTES], const char *text, size_t length)
{
	char copy[VALUE_BYTES + 1], shown[CONF_SHOWN_BYTES];

	snprintf(copy, sizeof(copy), "%.*s", (int)(length < VALUE_BYTES ? length : VALUE_BYTES), text);
	snprintf(why, APP_LIMITS_WHY_BYTES, "\"%s\" is not %s", conf_shown(copy, shown), form);
	return FS_EINVAL;
}

/* The last colon before the last equals sign ends the name, as neither a resource nor a value has one. */
static bool split_part(const char *text, size_t length, struct part *out)
{
	const char *equals = memrchr(text, '=', length), *colon;

	if (!equals)
		return false;
	colon = memrchr(text, ':', (size_t)(equals - text));
	out->name = colon ? text : NULL;
	out->name_length = colon ? (size_t)(colon - text) : 0;
	out->resource = colon ? colon + 1 : text;
	out->resource_length = (size_t)(equals - out->resource);
	out->value = equals + 1;
	out->value_length = (size_t)(text + length - out->value);
	return true;
}

static bool name_is_possible(const struct part *part, char delimiter)
{
	if (part->name_length == 0 || part->name_length > APP_LIMIT_NAME_MAX)
		return false;
	for (size_t i = 0; i < part->name_length; i++) {
		unsigned char byte = (unsigned char)part->name[i];

		if (byte <= ' ' || byte == 0x7f || byte == (unsigned char)delimiter)
			return false; /* no key begins so, or its application has a shorter name */
	}
	return true;
}

static struct app_limit *limit_named(struct app_limits *limits, const struct part *part)
{
	struct app_limit *limit;

	for (unsigned i = 0; i < limits->count; i++)
		if (strlen(limits->of[i].name) == part->name_length &&
		    memcmp(limits->of[i].name, part->name, part->name_length) == 0)
			return &limits->of[i];
	if (limits->count == APP_LIMITS_MOST)
		return NULL;
	limit = &limits->of[limits->count++];
	*limit = (struct app_limit){ .dram_ceiling = APP_LIMIT_NONE,
				     .flash_ceiling = APP_LIMIT_NONE,
				     .write = APP_LIMIT_NONE };
	memcpy(limit->name, part->name, part->name_length);
	return limit;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool read_size(const char *text, uint64_t *bytes)
{
	return units_parse_size(text, 1, bytes) == FS_OK && *bytes >= APP_LIMIT_LEAST && *bytes <= APP_LIMIT_GREATEST;
}

/* A dash tells floor from ceiling, so a number without one is refused. */
static bool read_range(char *text, uint64_t *floor, uint64_t *ceiling)
{
	char *dash = strchr(text, '-');

	if (!dash || (dash == text && !dash[1]))
		return false;
	*dash = '\0';
	return (dash == text || read_size(text, floor)) && (!dash[1] || read_size(dash + 1, ceiling));
}

static bool read_write(const char *text, struct app_limit *limit)
{
	uint64_t rate;

	if (units_parse_rate(text, &rate) != FS_OK || rate & UNITS_RATE_DWPD || rate > APP_LIMIT_GREATEST)
		return false;
	limit->write = rate;
	return true;
}

static int refuse_value(char why[APP_LIMITS_WHY_BYTES], const struct app_limit *limit, const char *resource,
			const char *value, const char *accepted)
{
	char shown[CONF_SHOWN_BYTES];

	snprintf(why, APP_LIMITS_WHY_BYTES, "%s:%s=\"%s\" is not %s", limit->name, resource, conf_shown(value, shown),
		 accepted);
	return FS_EINVAL;
}

static int take_range(const struct app_limit *limit, const char *resource, uint64_t *floor, uint64_t *ceiling,
		      const char *value, char why[APP_LIMITS_WHY_BYTES])
{
	char text[VALUE_BYTES + 1], low[UNITS_TEXT_BYTES], high[UNITS_TEXT_BYTES];

	snprintf(text, sizeof(text), "%s", value);
	if (*floor > 0 || *ceiling != APP_LIMIT_NONE) {
		snprintf(why, APP_LIMITS_WHY_BYTES, "%s:%s is given twice", limit->name, resource);
		return FS_EINVAL;
	}
	if (!read_range(text, floor, ceiling))
		return refuse_value(
			why, limit, resource, value,
			"FLOOR-, -CEILING or FLOOR-CEILING, each a size from 64k to 1p, in bytes or with a suffix k m g t p");
	if (*floor > *ceiling) {
		snprintf(why, APP_LIMITS_WHY_BYTES, "%s:%s: the floor of %s is above the ceiling of %s", limit->name,
			 resource, units_format_size(*floor, low), units_format_size(*ceiling, high));
		return FS_EINVAL;
	}
	return FS_OK;
}

static int take_write(struct app_limit *limit, const char *value, char why[APP_LIMITS_WHY_BYTES])
{
	if (limit->write != APP_LIMIT_NONE) {
		snprintf(why, APP_LIMITS_WHY_BYTES, "%s:write is given twice", limit->name);
		return FS_EINVAL;
	}
	return read_write(value, limit)
		       ? FS_OK
		       : refuse_value(why, limit, "write", value,
				      "a rate from 0 to 1p/s, in bytes per second or with a suffix k m g t p");
}

static bool is_word(const struct part *part, const char *word)
{
	return part->resource_length == strlen(word) && memcmp(part->resource, word, part->resource_length) == 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int take_part(struct app_limits *limits, struct app_limit **last, char delimiter, const char *text,
		     size_t length, char why[APP_LIMITS_WHY_BYTES])
{
	char value[VALUE_BYTES + 1], shown[CONF_SHOWN_BYTES];
	struct part part;

	if (!split_part(text, length, &part) || part.value_length > VALUE_BYTES || (!part.name && !*last))
		return refuse_part(why, text, length);
	if (part.name && !name_is_possible(&part, delimiter)) {
		snprintf(value, sizeof(value), "%.*s",
			 (int)(part.name_length < VALUE_BYTES ? part.name_length : VALUE_BYTES), part.name);
		snprintf(why, APP_LIMITS_WHY_BYTES,
			 "\"%s\" is not a name of 1 to %u bytes without blanks, commas and the delimiter \"%c\"",
			 conf_shown(value, shown), APP_LIMIT_NAME_MAX, delimiter);
		return FS_EINVAL;
	}
	if (part.name)
		*last = limit_named(limits, &part);
	if (!*last) {
		snprintf(why, APP_LIMITS_WHY_BYTES, "%.*s is one application more than the %u that may have limits",
			 (int)part.name_length, part.name, APP_LIMITS_MOST);
		return FS_EINVAL;
	}
	snprintf(value, sizeof(value), "%.*s", (int)part.value_length, part.value);
	if (is_word(&part, "dram"))
		return take_range(*last, "dram", &(*last)->dram_floor, &(*last)->dram_ceiling, value, why);
	if (is_word(&part, "flash"))
		return take_range(*last, "flash", &(*last)->flash_floor, &(*last)->flash_ceiling, value, why);
	if (is_word(&part, "write"))
		return take_write(*last, value, why);
	return refuse_part(why, text, length);
}

int app_limits_parse(const char *text, char delimiter, struct app_limits *out, char why[APP_LIMITS_WHY_BYTES])
{
	struct app_limit *last = NULL;
	int result = FS_OK;

	*out = (struct app_limits){ 0 };
	if (!text || !*text)
		return FS_OK;
	for (;;) {
		size_t length = strcspn(text, ",");

		result = take_part(out, &last, delimiter, text, length, why);
		if (result != FS_OK || !text[length])
			return result;
		text += length + 1;
	}
}

uint64_t app_limits_floors(const struct app_limits *limits)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < limits->count; i++)
		sum += limits->of[i].dram_floor; /* 64 of at most 2^50 */
	return sum;
}
