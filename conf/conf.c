/* SPDX-License-Identifier: BSD-3-Clause */
/* Defaults, file, command line: in this order into one struct. */
#include "conf/conf.h"

#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "conf/conf_internal.h"
#include "conf/version.h"

/* memcached's: sysexits' EX_USAGE for a value out of its range, 1 for what isn't known at all. */
#define EXIT_BAD_VALUE 64
#define EXIT_UNKNOWN 1

#define WHY_BYTES 1024
#define ROWS_MAX 128
#define FIRST_LONG 256 /* getopt's value of row r is FIRST_LONG + r */

/* --- notes and single values ----------------------------------------------------------------- */

void conf_note(struct conf *conf, enum log_level level, const char *format, ...)
{
	struct conf_note **tail = &conf->notes, *note;
	char text[WHY_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	note = mem_must_zalloc(sizeof(*note) + strlen(text) + 1);
	note->level = level;
	memcpy(note->text, text, strlen(text) + 1);
	while (*tail)
		tail = &(*tail)->next;
	*tail = note;
}

void conf_init(struct conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_option *option = &conf_rows[i].option;

		if (conf_rows[i].kind == CONF_ROW_OPTION && option->default_text)
			must(conf_value_set(conf, option, option->default_text, false) == FS_OK);
	}
	conf_extended_init(conf);
}

void conf_free(struct conf *conf)
{
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_option *option = &conf_rows[i].option;

		if (conf_rows[i].kind == CONF_ROW_OPTION && option->type == CONF_TYPE_STRING) {
			char **field = (char **)((char *)conf + option->offset);

			free(*field);
			*field = NULL;
		}
	}
	conf_extended_free(conf);
	while (conf->notes) {
		struct conf_note *note = conf->notes;

		conf->notes = note->next;
		mem_free(note);
	}
}

static int set_row(struct conf *conf, const struct conf_row *row, const char *value, bool append, char *why,
		   size_t why_bytes)
{
	char accepted[CONF_ACCEPTED_BYTES];
	int rc;

	if (row->kind == CONF_ROW_ACTION) {
		if (!(row->option.flags & CONF_IN_FILE)) {
			snprintf(why, why_bytes, "it belongs on the command line");
			return FS_EINVAL;
		}
		return conf_extended(conf, value, why, why_bytes);
	}
	rc = conf_value_set(conf, &row->option, value, append);
	if (rc == FS_ENOMEM)
		snprintf(why, why_bytes, "%s", fs_strerror(rc));
	else if (rc != FS_OK)
		snprintf(why, why_bytes, "\"%s\" is not %s", value, conf_accepted(&row->option, accepted));
	return rc;
}

int conf_set(struct conf *conf, const char *name, const char *value, char *why, size_t why_bytes)
{
	int row = conf_find_row(name);

	if (row < 0) {
		snprintf(why, why_bytes, "there is no option \"%s\"", name);
		return FS_ENOTFOUND;
	}
	return set_row(conf, &conf_rows[row], value, true, why, why_bytes);
}

void conf_describe(const struct conf *conf, conf_each_fn *each, void *context)
{
	for (int i = 0; i < conf_row_count; i++) {
		char text[CONF_VALUE_BYTES];

		if (conf_rows[i].kind == CONF_ROW_OPTION)
			each(context, &conf_rows[i].option, conf_value_text(conf, &conf_rows[i].option, text));
	}
}

/* --- the file -------------------------------------------------------------------------------- */

struct file_reader {
	struct conf *conf;
	FILE *file;
	const char *path;
	int line;
	bool seen[ROWS_MAX];
	bool failed;
	int failed_line;
	int exit_code;
	char why[WHY_BYTES];
};

static void file_fails(struct file_reader *reader, int exit_code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The first mistake is told, the rest is read over. */
static void file_fails(struct file_reader *reader, int exit_code, const char *format, ...)
{
	va_list arguments;

	if (reader->failed)
		return;
	reader->failed = true;
	reader->failed_line = reader->line;
	reader->exit_code = exit_code;
	va_start(arguments, format);
	vsnprintf(reader->why, sizeof(reader->why), format, arguments);
	va_end(arguments);
}

/*
 * inih's source of lines. It counts them (Debian's inih doesn't tell the handler) and takes their
 * indentation away, as inih would take an indented line for the continuation of the one before.
 */
static char *read_line(char *line, int bytes, void *context)
{
	struct file_reader *reader = context;
	char *text = NULL;
	size_t room = 0, indent;
	ssize_t length = getline(&text, &room, reader->file);

	if (length < 0) {
		free(text);
		return NULL;
	}
	reader->line++;
	indent = strspn(text, " \t");
	length -= (ssize_t)indent;
	if (length >= bytes) {
		file_fails(reader, EXIT_BAD_VALUE, "the line is longer than %d characters", bytes - 1);
		length = 0; /* an empty line */
	}
	memcpy(line, text + indent, (size_t)length);
	line[length] = 0;
	free(text);
	return line;
}

/* Takes away a pair of quotes, which protects what inih would take for a comment. */
static const char *unquoted(const char *value, char *buffer, size_t bytes)
{
	size_t length = strlen(value);

	if (length < 2 || value[0] != '"' || value[length - 1] != '"' || length - 2 >= bytes)
		return value;
	memcpy(buffer, value + 1, length - 2);
	buffer[length - 2] = 0;
	return buffer;
}

static int take_line(void *context, const char *section, const char *name, const char *value)
{
	struct file_reader *reader = context;
	char buffer[WHY_BYTES], why[WHY_BYTES];
	const struct conf_row *row;
	int i;

	if (reader->failed)
		return 1;
	if (*section) {
		file_fails(reader, EXIT_BAD_VALUE, "[%s]: the file has no sections", section);
		return 1;
	}
	i = conf_find_row(name);
	if (i < 0) {
		file_fails(reader, EXIT_UNKNOWN, "there is no option \"%s\"", name);
		return 1;
	}
	row = &conf_rows[i];
	if (reader->seen[i] && !(row->option.flags & (CONF_LIST | CONF_IN_FILE))) {
		file_fails(reader, EXIT_BAD_VALUE, "%s is given a second time", name);
		return 1;
	}
	if (set_row(reader->conf, row, unquoted(value, buffer, sizeof(buffer)), reader->seen[i], why,
		    sizeof(why)) != FS_OK)
		file_fails(reader, EXIT_BAD_VALUE, "%s: %s", name, why);
	reader->seen[i] = true;
	return 1;
}

/* 0 or the exit code. */
static int load_file(struct conf *conf, const char *path, FILE *err)
{
	struct file_reader reader = {.conf = conf, .path = path};
	int bad_line;

	reader.file = fopen(path, "re");
	if (!reader.file) {
		fprintf(err, "--config: \"%s\" can't be read: %s\n", path, strerror(errno));
		return EXIT_BAD_VALUE;
	}
	bad_line = ini_parse_stream(read_line, &reader, take_line, &reader);
	if (ferror(reader.file)) {
		fprintf(err, "--config: \"%s\" can't be read: %s\n", path, strerror(errno));
		reader.exit_code = EXIT_BAD_VALUE;
	} else if (reader.failed) {
		fprintf(err, "%s:%d: %s\n", path, reader.failed_line, reader.why);
	} else if (bad_line != 0) {
		fprintf(err, "%s:%d: the line is not \"name = value\"\n", path, bad_line < 0 ? 0 : bad_line);
		reader.exit_code = EXIT_BAD_VALUE;
	}
	fclose(reader.file);
	return reader.exit_code;
}

/* --- the command line ------------------------------------------------------------------------ */

struct getopt_tables {
	struct option longs[ROWS_MAX + 1];
	char shorts[3 * ROWS_MAX];
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

	must(conf_row_count <= ROWS_MAX);
	memset(tables, 0, sizeof(*tables));
	*letter++ = ':'; /* a missing argument is told from an unknown option */
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		bool flag = row->kind == CONF_ROW_OPTION && row->option.type == CONF_TYPE_FLAG;

		if (row->kind == CONF_ROW_HEADING)
			continue;
		/* A flag takes "=no" in its long form, so that it can override the file. */
		*next++ = (struct option){.name = row->option.name,
					  .has_arg = flag			  ? optional_argument
						     : takes_no_argument(row) ? no_argument
									  : required_argument,
					  .val = FIRST_LONG + i};
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

/* In getopt's and then memcached's words. */
static int tell_bad_option(int what, char **argv, FILE *err)
{
	const char *word = optind > 0 ? argv[optind - 1] : "";
	bool is_long = word[0] == '-' && word[1] == '-';

	if (what == ':' && is_long)
		fprintf(err, "%s: option '%s' requires an argument\n", argv[0], word);
	else if (what == ':')
		fprintf(err, "%s: option requires an argument -- '%c'\n", argv[0], optopt);
	else if (is_long && optopt >= FIRST_LONG)
		fprintf(err, "%s: option '--%s' doesn't allow an argument\n", argv[0],
			conf_rows[optopt - FIRST_LONG].option.name);
	else if (is_long)
		fprintf(err, "%s: unrecognized option '%s'\n", argv[0], word);
	else
		fprintf(err, "%s: invalid option -- '%c'\n", argv[0], optopt);
	fprintf(err, "Illegal argument \"?\"\n");
	return EXIT_UNKNOWN;
}

/* How the operator may have written the option: "-t/--threads". */
static const char *spelled(const struct conf_option *option, char text[80])
{
	if (option->letter)
		snprintf(text, 80, "-%c/--%s", option->letter, option->name);
	else
		snprintf(text, 80, "--%s", option->name);
	return text;
}

/* Applies one option of the command line. 0 or the exit code. */
static int apply(struct conf *conf, const struct conf_row *row, const char *value, bool again, FILE *err)
{
	char why[WHY_BYTES], name[80];
	int rc;

	if (row->option.type == CONF_TYPE_COUNT && row->kind == CONF_ROW_OPTION) {
		int *count = (int *)((char *)conf + row->option.offset);

		if (!again)
			*count = 0;
		if (*count < (int)row->option.max)
			++*count;
		return 0;
	}
	rc = set_row(conf, row, value ? value : "yes", again, why, sizeof(why));
	if (rc == FS_OK)
		return 0;
	if (row->kind == CONF_ROW_ACTION) {
		fprintf(err, "%s\n", why); /* memcached's own text */
		return EXIT_UNKNOWN;
	}
	fprintf(err, "%s: %s\n", spelled(&row->option, name), why);
	return EXIT_BAD_VALUE;
}

/* One walk over the command line. The first looks for actions and the file, the second applies. */
static int walk(struct conf *conf, int argc, char **argv, const char **file, bool applying, FILE *out, FILE *err)
{
	struct getopt_tables tables;
	bool seen[ROWS_MAX] = {false};
	int found;

	make_tables(&tables);
	optind = 0; /* GNU: start anew */
	opterr = 0;
	while ((found = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
		int i = found == '?' || found == ':' ? -1 : row_of(found);
		const struct conf_row *row;
		int code;

		if (i < 0) {
			conf->exit_code = tell_bad_option(found, argv, err);
			return CONF_EXIT;
		}
		row = &conf_rows[i];
		if (row->kind == CONF_ROW_OPTION || row->option.flags & CONF_IN_FILE) {
			code = applying ? apply(conf, row, optarg, seen[i], err) : 0;
			seen[i] = true;
			if (code == 0)
				continue;
			conf->exit_code = code;
			return CONF_EXIT;
		}
		if (strcmp(row->option.name, "config") == 0) {
			*file = optarg;
			continue;
		}
		if (strcmp(row->option.name, "help") == 0)
			conf_print_help(out);
		else if (strcmp(row->option.name, "version") == 0)
			fprintf(out, "flashield %s\n", FS_VERSION);
		else
			conf_print_sample(out);
		conf->exit_code = 0;
		return CONF_EXIT;
	}
	for (int i = optind; applying && i < argc; i++)
		conf_note(conf, LOG_LEVEL_WARN, "\"%s\" is not an option and is ignored", argv[i]);
	return FS_OK;
}

/* --- loading --------------------------------------------------------------------------------- */

/* What no single row can say. 0 or the exit code. */
static int check(const struct conf *conf, FILE *err)
{
	if (conf->max_item_size_bytes > conf->memory_limit_bytes / 2) {
		fprintf(err, "-I/--max-item-size: it may be at most half of -m/--memory-limit: give a smaller -I, "
			     "or -m %llu\n",
			(unsigned long long)((conf->max_item_size_bytes * 2 + (1 << 20) - 1) >> 20));
		return EXIT_BAD_VALUE;
	}
	if (conf->segment_size_bytes && conf->flash_size_bytes && conf->segment_size_bytes > conf->flash_size_bytes / 4) {
		fprintf(err, "--segment-size: it may be at most a quarter of --flash-size\n");
		return EXIT_BAD_VALUE;
	}
	return 0;
}

static void add_notes(struct conf *conf)
{
	if (!conf->flash_path && (conf->flash_size_bytes || conf->segment_size_bytes))
		conf_note(conf, LOG_LEVEL_WARN,
			  "--flash-size and --segment-size have no effect without --flash-path");
}

static void log_notes(const struct conf *conf)
{
	for (const struct conf_note *note = conf->notes; note; note = note->next)
		log_line(note->level, "%s", note->text);
}

int conf_load(struct conf *conf, int argc, char **argv, FILE *out, FILE *err)
{
	const char *file = NULL;

	conf_init(conf);
	if (walk(conf, argc, argv, &file, false, out, err) != FS_OK)
		return CONF_EXIT;
	if (file) {
		conf->exit_code = load_file(conf, file, err);
		if (conf->exit_code)
			return CONF_EXIT;
	}
	if (walk(conf, argc, argv, &file, true, out, err) != FS_OK)
		return CONF_EXIT;
	conf->exit_code = check(conf, err);
	if (conf->exit_code)
		return CONF_EXIT;
	log_set_level(conf->verbose >= 2   ? LOG_LEVEL_DEBUG
		      : conf->verbose == 1 ? LOG_LEVEL_INFO
					   : LOG_LEVEL_NOTICE);
	add_notes(conf);
	log_notes(conf);
	return FS_OK;
}
