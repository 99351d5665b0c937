/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags: those of the command line, and those of a file that is a list of them. */
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "conf/conf_internal.h"
#include "conf/units.h"

#define FIRST_LONG 256 /* getopt's value of row r is FIRST_LONG + r */

/* memcached's error lines for values that are too small, or no values at all. */
static const struct refusal {
	const char *name;
	int exit_code;
	const char *text; /* "%s" stands for the value */
} refusals[] = {
	{ "threads", CONF_EXIT_UNKNOWN, "Number of threads must be greater than 0" },
	{ "conn-limit", CONF_EXIT_UNKNOWN, "Maximum connections must be greater than 0" },
	{ "max-reqs-per-event", CONF_EXIT_UNKNOWN, "Number of requests per event must be greater than 0" },
	{ "napi-ids", CONF_EXIT_UNKNOWN, "Maximum number of NAPI IDs must be greater than 0" },
	{ "slab-growth-factor", CONF_EXIT_UNKNOWN, "Factor must be greater than 1" },
	{ "slab-min-size", CONF_EXIT_UNKNOWN, "Chunk size must be greater than 0" },
	{ "detail-delimiter", CONF_EXIT_UNKNOWN, "No delimiter specified" },
	{ "max-item-size", CONF_EXIT_VALUE, "Item max size cannot be less than 1024 bytes." },
	{ "protocol", CONF_EXIT_VALUE,
	  "Invalid value for binding protocol: %s\n -- should be one of auto, binary, or ascii" },
};

/* --- getopt's tables ------------------------------------------------------------------------- */

struct getopt_tables {
	struct option longs[CONF_ROWS_MAX + 1];
	char shorts[3 * CONF_ROWS_MAX];
};

static bool takes_no_argument(const struct conf_row *row)
{
	if (row->kind == CONF_ROW_ACTION)
		return !row->argument;
	return row->option.type == CONF_TYPE_FLAG || row->option.type == CONF_TYPE_COUNT;
}

static void make_tables(struct getopt_tables *tables)
{
	struct option *next = tables->longs;
	char *letter = tables->shorts;

	must(conf_row_count <= CONF_ROWS_MAX);
	memset(tables, 0, sizeof(*tables));
	*letter++ = ':'; /* getopt then tells a missing argument from an unknown option */
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		/* Our own flags take "=no", so that they can override the file; memcached's take nothing. */
		bool flag = row->kind == CONF_ROW_OPTION && row->option.type == CONF_TYPE_FLAG;
		bool count = row->kind == CONF_ROW_OPTION && row->option.type == CONF_TYPE_COUNT;

		if (row->kind == CONF_ROW_HEADING)
			continue;
		*next++ = (struct option){ .name = row->option.name,
					   .has_arg = flag || count            ? optional_argument
						      : takes_no_argument(row) ? no_argument
									       : required_argument,
					   .val = FIRST_LONG + i };
		if (!row->option.letter)
			continue;
		*letter++ = row->option.letter;
		if (!takes_no_argument(row))
			*letter++ = ':';
	}
}

static int row_of(int value)
{
	if (value >= FIRST_LONG)
		return value - FIRST_LONG;
	for (int i = 0; i < conf_row_count; i++)
		if (conf_rows[i].option.letter && conf_rows[i].option.letter == value)
			return i;
	return -1;
}

/* --- mistakes -------------------------------------------------------------------------------- */

static bool begins_with(const struct conf_row *row, const char *word)
{
	return row->kind != CONF_ROW_HEADING && strncmp(row->option.name, word, strcspn(word, "=")) == 0;
}

static bool is_ambiguous(const char *word)
{
	int count = 0;

	for (int i = 0; i < conf_row_count; i++)
		count += begins_with(&conf_rows[i], word);
	return count > 1;
}

static void tell_ambiguous(const char *program, const char *word, FILE *err)
{
	fprintf(err, "%s: option '%s' is ambiguous; possibilities:", program, word);
	for (int i = 0; i < conf_row_count; i++)
		if (begins_with(&conf_rows[i], word + 2))
			fprintf(err, " '--%s'", conf_rows[i].option.name);
	fputc('\n', err);
}

/* getopt's error line, then memcached's, unless it is to be one line only. */
static int tell_bad_option(const struct conf_walk *walk, int what, char **argv, bool only)
{
	const char *word = optind > 0 ? argv[optind - 1] : "";
	bool is_long = word[0] == '-' && word[1] == '-';
	FILE *err = walk->err;

	fputs(walk->origin, err);
	if (what == ':' && is_long)
		fprintf(err, "%s: option '--%s' requires an argument\n", argv[0],
			conf_rows[optopt - FIRST_LONG].option.name);
	else if (what == ':')
		fprintf(err, "%s: option requires an argument -- '%c'\n", argv[0], optopt);
	else if (is_long && optopt >= FIRST_LONG)
		fprintf(err, "%s: option '--%s' doesn't allow an argument\n", argv[0],
			conf_rows[optopt - FIRST_LONG].option.name);
	else if (is_long && is_ambiguous(word + 2))
		tell_ambiguous(argv[0], word, err);
	else if (is_long)
		fprintf(err, "%s: unrecognized option '%s'\n", argv[0], word);
	else
		fprintf(err, "%s: invalid option -- '%c'\n", argv[0], optopt);
	if (!only)
		fprintf(err, "Illegal argument \"?\"\n");
	return CONF_EXIT_UNKNOWN;
}

/* Both ways to write the option: "-t/--threads". */
static const char *spelled(const struct conf_option *option, char text[80])
{
	if (option->letter)
		snprintf(text, 80, "-%c/--%s", option->letter, option->name);
	else
		snprintf(text, 80, "--%s", option->name);
	return text;
}

/*
 * The number that memcached reads in a value: the digits that it begins with. -I takes a suffix there; -m takes none
 * and counts MiB.
 */
static double number_of(const struct conf_option *option, const char *value)
{
	uint64_t size;

	if (option->type == CONF_TYPE_SIZE && *option->unit == 'm')
		return strtod(value, NULL) * 0x1p20;
	if (option->type == CONF_TYPE_SIZE && units_parse_size(value, 1, &size) == FS_OK)
		return (double)size;
	return strtod(value, NULL);
}

/* Returns whether memcached refuses the value too. It has error lines for numbers that are too small. */
static bool is_refused_there(const struct conf_option *option, const char *value)
{
	return option->type == CONF_TYPE_ENUM || option->type == CONF_TYPE_CHAR ||
	       !(number_of(option, value) >= option->min);
}

/* plain: without memcached's own error lines. */
static int tell_bad_value(const struct conf_walk *walk, const struct conf_option *option, const char *value,
			  const char *why, bool plain)
{
	char name[80];

	fputs(walk->origin, walk->err);
	if (!plain && strcmp(option->name, "max-item-size") == 0 && number_of(option, value) > option->max) {
		fprintf(walk->err, "Cannot set item size limit higher than a gigabyte.\n");
		return CONF_EXIT_VALUE;
	}
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const char *hole = strstr(refusals[i].text, "%s");

		if (strcmp(refusals[i].name, option->name) != 0 || !is_refused_there(option, value))
			continue;
		if (plain) {
			fprintf(walk->err, "%s: %s\n", spelled(option, name), why);
			return refusals[i].exit_code;
		}
		if (hole)
			fprintf(walk->err, "%.*s%s%s\n", (int)(hole - refusals[i].text), refusals[i].text, value,
				hole + 2);
		else
			fprintf(walk->err, "%s\n", refusals[i].text);
		return refusals[i].exit_code;
	}
	fprintf(walk->err, "%s: %s\n", spelled(option, name), why);
	return CONF_EXIT_VALUE;
}

/* --- one flag -------------------------------------------------------------------------------- */

/* Each mention counts one; the first one replaces the file's number. */
static void count(struct conf *conf, const struct conf_option *option, bool again)
{
	int *field = (int *)((char *)conf + option->offset);

	if (!again)
		*field = 0;
	if (*field < (int)option->max)
		++*field;
}

/* Returns the length of the number that a text begins with; 0: it begins with none, or more digits follow, which the option
   can't have. */
static size_t number_length(const struct conf_option *option, const char *text)
{
	char part[CONF_VALUE_BYTES];
	size_t length = 0;
	uint64_t bytes;

	switch (option->type) {
	case CONF_TYPE_INT:
		length = *text == '-';
		length += strspn(text + length, "0123456789");
		break;
	case CONF_TYPE_OCTAL:
		length = strspn(text, "01234567");
		break;
	case CONF_TYPE_REAL:
		length = strspn(text, "0123456789.");
		break;
	case CONF_TYPE_SIZE:
		for (length = strnlen(text, sizeof(part) - 1); length > 0; length--) {
			snprintf(part, sizeof(part), "%.*s", (int)length, text);
			if (units_parse_size(part, 1, &bytes) == FS_OK)
				break;
		}
		break;
	default:
		break;
	}
	return text[length] >= '0' && text[length] <= '9' ? 0 : length;
}

/*
 * memcached's own options have a letter. It reads their numbers as atoi does: blanks and a plus may be in front, and what
 * follows is cut off. Returns the number, in text. Returns the value as it is where there is no number, or where the option is
 * one of ours, which must be written without a mistake.
 */
static const char *number_as_memcached(struct conf *conf, const struct conf_option *option, const char *value,
				       char text[CONF_VALUE_BYTES])
{
	const char *begin = value + strspn(value, CONF_BLANKS);
	size_t length;
	char name[80], shown[CONF_SHOWN_BYTES];

	begin += *begin == '+';
	length = number_length(option, begin);
	if (!option->letter || length == 0 || length >= CONF_VALUE_BYTES)
		return value;
	snprintf(text, CONF_VALUE_BYTES, "%.*s", (int)length, begin);
	if (begin[length + strspn(begin + length, CONF_BLANKS)])
		conf_note(conf, LOG_LEVEL_WARN, "%s: \"%s\" is read as %s", spelled(option, name),
			  conf_shown(value, shown), text);
	if (option->offset == offsetof(struct conf, threads) && strtod(text, NULL) > option->max) {
		conf_note(conf, LOG_LEVEL_WARN, "%s: %s are too many: there will be %.0f", spelled(option, name), text,
			  option->max);
		snprintf(text, CONF_VALUE_BYTES, "%.0f", option->max);
	}
	return text;
}

/* 0 or the exit code. */
static int apply(struct conf *conf, const struct conf_row *row, const char *value, struct conf_walk *walk)
{
	const struct conf_option *option = &row->option;
	bool again = walk->seen[row - conf_rows];
	char why[CONF_WHY_BYTES], first[2] = "", number[CONF_VALUE_BYTES];
	int rc;

	walk->seen[row - conf_rows] = true;
	if (option->offset == offsetof(struct conf, detail_delimiter) && row->kind == CONF_ROW_OPTION && value) {
		first[0] = value[strspn(
			value,
			CONF_BLANKS)]; /* memcached takes the first character of a longer text; a blank ends no prefix */
		value = first;
	}
	if (row->kind == CONF_ROW_OPTION && option->type == CONF_TYPE_COUNT) {
		count(conf, option, again); /* memcached's --verbose=3 counts as one too */
		return 0;
	}
	conf_keep_line(conf, (int)(row - conf_rows), walk->line);
	if (row->kind == CONF_ROW_OPTION && value)
		value = number_as_memcached(conf, option, value, number);
	rc = conf_row_set(conf, row, value ? value : "yes", again, why, sizeof(why));
	if (rc == FS_OK)
		return 0;
	if (conf->faults)
		conf->faults->refused[row - conf_rows] = true;
	if (row->kind == CONF_ROW_OPTION)
		return tell_bad_value(walk, option, value ? value : "", why, conf->faults != NULL);
	/* -o has memcached's own text. */
	conf_tell_each(walk->err, walk->origin, conf->faults ? "-o/--extended" : "", why, conf->faults != NULL);
	return CONF_EXIT_UNKNOWN;
}

/* Prints what an action asks for, before the start ends. */
static void act(const struct conf *conf, const char *name, const struct conf_walk *walk)
{
	if (strcmp(name, "help") == 0)
		conf_print_help(walk->out);
	else if (strcmp(name, "version") == 0)
		conf_print_version(walk->out, walk->err, conf->compat_version);
	else if (strcmp(name, "license") == 0)
		conf_print_license(walk->out);
	else
		conf_print_sample(walk->out);
}

/* 0: go on; CONF_EXIT: conf->exit_code says how the start ends. */
static int take(struct conf *conf, const struct conf_row *row, struct conf_walk *walk)
{
	bool sets = row->kind == CONF_ROW_OPTION || row->option.flags & CONF_IN_FILE;

	if (sets) {
		/* -V has its way before any mistake, but it shows the version of --compat-version. */
		if (walk->applying || (!conf->faults && strcmp(row->option.name, "compat-version") == 0))
			conf->exit_code = conf_fault(conf, apply(conf, row, optarg, walk));
		return conf->exit_code == 0 ? FS_OK : CONF_EXIT;
	}
	if (walk->in_file) {
		fprintf(walk->err, "%s--%s belongs on the command line\n", walk->origin, row->option.name);
		conf->exit_code = conf_fault(conf, CONF_EXIT_VALUE);
		return conf->exit_code == 0 ? FS_OK : CONF_EXIT;
	}
	if (strcmp(row->option.name, "config") == 0) {
		walk->file = optarg;
		return FS_OK;
	}
	if (strcmp(row->option.name, "check-config") != 0)
		walk->action = row->option.name;
	return FS_OK;
}

bool conf_walk_has(int argc, char **argv, const char *name)
{
	struct getopt_tables tables;
	int row = conf_find_row(name), found;
	bool has = false;

	make_tables(&tables);
	optind = 0;
	opterr = 0;
	while ((found = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1)
		has = has || found == FIRST_LONG + row;
	return has;
}

int conf_walk(struct conf *conf, int argc, char **argv, struct conf_walk *walk)
{
	struct getopt_tables tables;
	int found;

	make_tables(&tables);
	optind = 0; /* GNU: start anew */
	opterr = 0;
	while ((found = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
		int i = found == '?' || found == ':' ? -1 : row_of(found);

		if (i < 0) {
			/* memcached obeys an action before it finds the mistake. */
			if (walk->action)
				break;
			if (conf->faults && walk->applying && !walk->in_file)
				continue; /* the walk that looked has told it */
			conf->exit_code = conf_fault(conf, tell_bad_option(walk, found, argv, conf->faults));
			if (conf->exit_code == 0)
				continue;
			return CONF_EXIT;
		}
		if (take(conf, &conf_rows[i], walk) != FS_OK)
			return CONF_EXIT;
	}
	if (walk->action) {
		act(conf, walk->action, walk);
		conf->exit_code = 0;
		return CONF_EXIT;
	}
	for (int i = optind; walk->applying && i < argc; i++)
		conf_note(conf, LOG_LEVEL_WARN, "\"%s\" is not an option and is ignored", argv[i]);
	return FS_OK;
}
