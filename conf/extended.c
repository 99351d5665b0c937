/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads memcached's -o list. extended.def declares the suboptions. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "conf/conf_internal.h"
#include "conf/units.h"

const struct conf_suboption conf_suboptions[] = {
#define ROW(name, form, type, field, def, min, max, unit, text) \
	name, form, \
	{ \
		name, 0, CONF_TYPE_##type, def, min, max, unit, 0, text, offsetof(struct conf, field) \
	}
#define NUMBER(name, form, type, field, def, min, max, unit, missing, range, effect, text) \
	{ ROW(#name, CONF_FORM_##form, type, field, def, min, max, unit, text), missing, range, effect, NULL },
#define CHOICE(name, field, def, words, missing, range, effect, text) \
	{ ROW(#name, CONF_FORM_TEXT, ENUM, field, def, 0, 0, words, text), missing, range, effect, NULL },
#define TEXT(name, field, effect, text) \
	{ ROW(#name, CONF_FORM_TEXT, STRING, field, NULL, 0, 65535, "TEXT", text), "Missing " #name " argument", NULL, \
	  effect, NULL },
#define SWITCH(name, field, def, effect, text) \
	{ ROW(#name, CONF_FORM_SWITCH, FLAG, field, def, 0, 1, "", text), NULL, NULL, effect, NULL },
#define WORDS(word, list, effect, help) \
	{ #word, CONF_FORM_WORDS, { #word, 0, CONF_TYPE_FLAG, NULL, 0, 0, "", 0, help, 0 }, NULL, NULL, effect, list },
#define STATE(type, field, def) \
	{ ROW(#field, CONF_FORM_STATE, type, field, def, 0, 1, "", ""), NULL, NULL, NULL, NULL },
#include "conf/extended.def"
#undef ROW
#undef NUMBER
#undef CHOICE
#undef TEXT
#undef SWITCH
#undef WORDS
#undef STATE
};

const int conf_suboption_count = sizeof(conf_suboptions) / sizeof(conf_suboptions[0]);

static const struct conf_suboption *find(const char *name)
{
	for (int i = 0; i < conf_suboption_count; i++)
		if (strcmp(conf_suboptions[i].name, name) == 0)
			return &conf_suboptions[i];
	return NULL;
}

/* --- values ---------------------------------------------------------------------------------- */

/* Sets a value that operators may not give: "hashpower=0" is a default, but out of range. */
static int set_unbounded(struct conf *conf, const struct conf_suboption *suboption, const char *value)
{
	struct conf_option option = suboption->option;

	option.min = -1e308;
	option.max = 1e308;
	return conf_value_set(conf, &option, value, false);
}

static void store_number(struct conf *conf, const struct conf_option *option, double number)
{
	void *field = (char *)conf + option->offset;

	if (option->type == CONF_TYPE_INT)
		*(int *)field = (int)number;
	else if (option->type == CONF_TYPE_SIZE)
		*(uint64_t *)field = (uint64_t)number;
	else
		*(double *)field = number;
}

static double unit_of(const struct conf_option *option)
{
	return *option->unit == 'm' ? 0x1p20 : *option->unit == 'k' ? 0x1p10 : 1;
}

/*
 * Reads a number as memcached does: some forms strictly, others as far as the text is a number. False when it is none.
 * *end is the end of the number.
 */
static bool parse_number(enum conf_form form, const char *value, double *number, const char **end)
{
	bool decimal = form == CONF_FORM_DECIMAL || form == CONF_FORM_LOOSE_DECIMAL;
	bool loose = form == CONF_FORM_LOOSE || form == CONF_FORM_LOOSE_DECIMAL;
	char *after;

	*number = decimal ? strtod(value, &after) : (double)strtoll(value, &after, 10);
	*end = after;
	if (*number != *number) /* "nan" */
		return false;
	if (loose)
		return true;
	return after != value && !*after && (form != CONF_FORM_STRICT || *number >= 0);
}

/* In the suboption's own unit: 4095 of ext_page_size are MiB. */
static void say_accepted(const struct conf_suboption *suboption, const char *value, char *why, size_t why_bytes)
{
	const struct conf_option *option = &suboption->option;
	const char *unit = *option->unit == 'm' ? " MiB" : *option->unit == 'k' ? " KiB" : "";
	char shown[CONF_SHOWN_BYTES];

	snprintf(why, why_bytes, "%s: \"%s\" is not a whole number from %.0f to %.0f%s", suboption->name,
		 conf_shown(value, shown), option->min / unit_of(option), floor(option->max / unit_of(option)), unit);
}

/* memcached's line about a value, or with --check-config, for whole numbers, one with the range. */
static void say_range(const struct conf *conf, const struct conf_suboption *suboption, const char *value, double number,
		      char *why, size_t why_bytes)
{
	bool whole = suboption->option.type != CONF_TYPE_REAL;

	if (whole && (conf->faults || (!suboption->range && strcmp(suboption->name, "hashpower") != 0)))
		say_accepted(suboption, value, why, why_bytes);
	else if (suboption->range)
		snprintf(why, why_bytes, "%s", suboption->range);
	else if (number < suboption->option.min)
		snprintf(why, why_bytes, "Initial hashtable multiplier of %.0f is too low", number);
	else
		snprintf(why, why_bytes,
			 "Initial hashtable multiplier of %.0f is too high\n"
			 "Choose a value based on \"STAT hash_power_level\" from a running instance",
			 number);
}

static int set_number(struct conf *conf, const struct conf_suboption *suboption, const char *value, char *why,
		      size_t why_bytes)
{
	const struct conf_option *option = &suboption->option;
	double number, scaled;
	const char *end;

	if (!parse_number(suboption->form, value, &number, &end)) {
		if (conf->faults && option->type != CONF_TYPE_REAL)
			say_accepted(suboption, value, why, why_bytes);
		else if (strcmp(suboption->name, "lru_crawler_tocrawl") == 0)
			snprintf(why, why_bytes, "%s", suboption->range);
		else
			snprintf(why, why_bytes, "could not parse argument to %s", suboption->name);
		return FS_EINVAL;
	}
	scaled = number * unit_of(option);
	if (scaled < 0 && suboption->form == CONF_FORM_LOOSE && option->type == CONF_TYPE_SIZE)
		scaled += 0x1p32; /* memcached reads an unsigned number: -1 is the largest */
	if (scaled < option->min || scaled > option->max) {
		say_range(conf, suboption, value, number, why, why_bytes);
		return FS_EINVAL;
	}
	if (*end || end == value)
		conf_note(conf, LOG_LEVEL_WARN, "-o %s: \"%s\" is read as %.15g", suboption->name, value, number);
	store_number(conf, option, scaled);
	return FS_OK;
}

static int assign(struct conf *conf, const char *assigns)
{
	char *copy = strdup(assigns), *rest = copy, *name;
	int rc = FS_OK;

	must(copy);
	while (rc == FS_OK && (name = strsep(&rest, ",")) != NULL && *name) {
		char *value = strchr(name, '=');
		const struct conf_suboption *target;

		must(value);
		*value++ = 0;
		target = find(name);
		must(target);
		rc = set_unbounded(conf, target, value);
	}
	free(copy);
	return rc;
}

/* value is NULL when there is no "=". */
static int set_suboption(struct conf *conf, const struct conf_suboption *suboption, const char *value, char *why,
			 size_t why_bytes)
{
	int rc = FS_OK;

	if (!value && suboption->missing) {
		snprintf(why, why_bytes, "%s", suboption->missing);
		return FS_EINVAL;
	}
	switch (suboption->form) {
	case CONF_FORM_SWITCH:
		rc = conf_value_set(conf, &suboption->option, "yes", false);
		break;
	case CONF_FORM_WORDS:
		rc = assign(conf, suboption->assigns);
		break;
	case CONF_FORM_TEXT:
		rc = conf_value_set(conf, &suboption->option, value, false);
		if (rc != FS_OK)
			snprintf(why, why_bytes, "%s", suboption->range ? suboption->range : fs_strerror(rc));
		break;
	default:
		/* Only a number that needs no value comes without one; it is set to its default. */
		rc = value ? set_number(conf, suboption, value, why, why_bytes)
			   : set_unbounded(conf, suboption, suboption->option.default_text);
	}
	return rc;
}

/* --- the list -------------------------------------------------------------------------------- */

static int take_word(struct conf *conf, char *word, char *why, size_t why_bytes)
{
	char *value = strchr(word, '=');
	const struct conf_suboption *suboption;
	int rc;

	if (value)
		*value++ = 0;
	if (strcmp(word, "ext_path") == 0)
		return conf_ext_path(conf, value, why, why_bytes);
	suboption = find(word);
	if (!suboption || suboption->form == CONF_FORM_STATE) {
		/* getsubopt(3) gives memcached the whole word, with its value. */
		if (value)
			value[-1] = '=';
		snprintf(why, why_bytes, "Illegal suboption \"%s\"", word);
		return FS_ENOTFOUND;
	}
	rc = set_suboption(conf, suboption, value, why, why_bytes);
	if (rc != FS_OK)
		return rc;
	if (strcmp(word, "temporary_ttl") == 0)
		conf->temp_lru = true;
	if (strcmp(word, "resp_obj_mem_limit") == 0)
		conf_note(conf, LOG_LEVEL_WARN, "resp_obj_mem_limit is deprecated, see read_buf_mem_limit");
	else if (suboption->effect)
		conf_note(conf, LOG_LEVEL_INFO, "-o %s is without effect: %s", word, suboption->effect);
	return FS_OK;
}

int conf_extended(struct conf *conf, const char *list, char *why, size_t why_bytes)
{
	char *copy = strdup(list), *rest = copy, *word;
	int rc = FS_OK, first = FS_OK;

	must(copy);
	/* An empty word is an unknown suboption, unless it is the last word. */
	while (rc == FS_OK && rest && *rest && (word = strsep(&rest, ",")) != NULL) {
		size_t said;
		int bad = take_word(conf, word, why, why_bytes);

		if (bad == FS_OK)
			continue;
		if (!conf->faults || !rest || (said = strlen(why) + 1) >= why_bytes) {
			rc = bad;
			break;
		}
		why[said - 1] = CONF_NEXT_FAULT; /* --check-config: the next mistake is another line */
		why[said] = 0;
		why += said;
		why_bytes -= said;
		first = first != FS_OK ? first : bad;
	}
	free(copy);
	return rc != FS_OK ? rc : first;
}

void conf_extended_init(struct conf *conf)
{
	for (int i = 0; i < conf_suboption_count; i++) {
		const struct conf_suboption *suboption = &conf_suboptions[i];

		if (suboption->option.default_text)
			must(set_unbounded(conf, suboption, suboption->option.default_text) == FS_OK);
	}
}

void conf_extended_free(struct conf *conf)
{
	for (int i = 0; i < conf_suboption_count; i++) {
		char **field = (char **)((char *)conf + conf_suboptions[i].option.offset);

		if (conf_suboptions[i].form == CONF_FORM_WORDS || conf_suboptions[i].option.type != CONF_TYPE_STRING)
			continue;
		free(*field);
		*field = NULL;
	}
}
