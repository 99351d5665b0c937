/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the file of --config. It has one of two forms, and the first line that is neither empty nor a comment shows
 * which: our own lines of "name = value", or memcached's flags, as in Debian's /etc/memcached.conf.
 */
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "conf/conf_internal.h"

#define WORDS_MAX 64 /* of a line of flags */
#define FILE_BYTES_MOST ((size_t)1 << 20) /* a larger file is not one of options */

struct file_reader {
	struct conf *conf;
	FILE *file, *err;
	const char *path;
	int line;
	bool seen[CONF_ROWS_MAX];
	bool failed;
	int failed_line;
	int exit_code;
	char why[CONF_WHY_BYTES];
};

static void file_fails(struct file_reader *reader, int exit_code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Keeps the first mistake; later ones are not told, except with --check-config, where each is told at once. */
static void file_fails(struct file_reader *reader, int exit_code, const char *format, ...)
{
	va_list arguments;

	if (reader->failed)
		return;
	va_start(arguments, format);
	vsnprintf(reader->why, sizeof(reader->why), format, arguments);
	va_end(arguments);
	if (conf_fault(reader->conf, exit_code) == 0) {
		char origin[CONF_ORIGIN_BYTES];

		snprintf(origin, sizeof(origin), "%.4000s:%d: ", reader->path, reader->line);
		conf_tell_each(reader->err, origin, "", reader->why, true);
		return;
	}
	reader->failed = true;
	reader->failed_line = reader->line;
	reader->exit_code = exit_code;
}

/* The next line without indentation and line end, to be freed; NULL at the end. */
static char *next_line(struct file_reader *reader)
{
	char *text = NULL;
	size_t room = 0, indent;
	ssize_t length = getline(&text, &room, reader->file);

	if (length < 0) {
		free(text);
		return NULL;
	}
	reader->line++;
	length = (ssize_t)strcspn(text, "\r\n");
	while (length > 0 && strchr(" \t", text[length - 1]))
		length--;
	text[length] = 0;
	indent = strspn(text, " \t");
	memmove(text, text + indent, (size_t)length - indent + 1);
	return text;
}

/* --- our own form ---------------------------------------------------------------------------- */

/* Takes a pair of quotes away. Quotes protect text that would be a comment without them. */
static char *unquoted(const char *value)
{
	size_t length = strlen(value);
	bool quoted = length >= 2 && value[0] == '"' && value[length - 1] == '"';
	char *copy = quoted ? strndup(value + 1, length - 2) : strdup(value);

	must(copy);
	return copy;
}

/* A "#" behind a value is part of it. Who meant a comment would not notice where the value is a path, for one. */
static void note_hash(const struct file_reader *reader, const char *name, const char *value)
{
	const char *hash = *value == '"' ? NULL : strchr(value, '#');

	if (hash && hash > value && strchr(" \t", hash[-1]))
		conf_note(reader->conf, LOG_LEVEL_WARN,
			  "%s:%d: %s: \"#\" and the rest are part of the value; only \";\" begins a comment there",
			  reader->path, reader->line, name);
}

static int take_pair(void *context, const char *section, const char *name, const char *value)
{
	struct file_reader *reader = context;
	char why[CONF_WHY_BYTES], shown[CONF_SHOWN_BYTES], *text;
	const struct conf_row *row;
	int i;

	if (reader->failed)
		return 1;
	if (*section) {
		file_fails(reader, CONF_EXIT_VALUE, "[%s]: a section is not accepted", section);
		return 1;
	}
	i = conf_find_row(name);
	if (i < 0) {
		file_fails(reader, CONF_EXIT_UNKNOWN, "there is no option \"%s\"", conf_shown(name, shown));
		return 1;
	}
	row = &conf_rows[i];
	if (reader->seen[i] && !(row->option.flags & (CONF_LIST | CONF_IN_FILE))) {
		file_fails(reader, CONF_EXIT_VALUE, "%s is given a second time", name);
		return 1;
	}
	note_hash(reader, name, value);
	text = unquoted(value);
	conf_keep_line(reader->conf, i, reader->line);
	if (conf_row_set(reader->conf, row, text, reader->seen[i], why, sizeof(why)) != FS_OK) {
		if (reader->conf->faults)
			reader->conf->faults->refused[i] = true;
		file_fails(reader, CONF_EXIT_VALUE, "%s: %s", name, why);
	}
	free(text);
	reader->seen[i] = true;
	return 1;
}

/* The closing quote of a value that begins with one: only blanks or a comment follow it. NULL when there is none. */
static char *end_of_quotes(char *value)
{
	for (char *quote = value; (quote = strchr(quote + 1, '"')) != NULL;) {
		size_t blanks = strspn(quote + 1, " \t");

		if (!quote[1 + blanks] || (blanks > 0 && quote[1 + blanks] == ';'))
			return quote;
	}
	return NULL;
}

/* Reads a line that inih can't: one that is too long for its buffer, or whose quoted text looks like a comment to it.
   All else is read as inih reads it. */
static void take_line(struct file_reader *reader, char *text)
{
	char *value = text + strcspn(text, "=:"), *comment = NULL;
	size_t length;

	if (*text == '#' || *text == ';')
		return;
	if (*text == '[' || !*value) {
		file_fails(reader, CONF_EXIT_VALUE, "the line is not \"name = value\"");
		return;
	}
	*value++ = 0;
	value += strspn(value, " \t");
	if (*value == '"')
		comment = end_of_quotes(value);
	for (comment = comment ? comment : value; (comment = strchr(comment, ';')) != NULL; comment++)
		if (comment > value && strchr(" \t", comment[-1])) {
			*comment = 0;
			break;
		}
	for (length = strlen(value); length > 0 && strchr(" \t", value[length - 1]); length--)
		value[length - 1] = 0;
	for (length = strlen(text); length > 0 && strchr(" \t", text[length - 1]); length--)
		text[length - 1] = 0;
	take_pair(reader, "", text, value);
}

/*
 * inih's source of lines. It counts lines, because Debian's inih doesn't tell the handler their numbers. It takes
 * indentation away, because inih takes an indented line for the continuation of the line before.
 */
static char *read_line(char *line, int bytes, void *context)
{
	struct file_reader *reader = context;
	char *text = next_line(reader);

	if (!text)
		return NULL;
	/* inih keeps only its first mistake: --check-config reads all lines here. */
	if (strlen(text) + 2 > (size_t)bytes || strchr(text, '"') || (reader->conf->faults && *text)) {
		take_line(reader, text);
		*text = 0; /* an empty line */
	}
	snprintf(line, (size_t)bytes, "%s\n", text);
	free(text);
	return line;
}

static void take_pairs(struct file_reader *reader)
{
	int bad_line = ini_parse_stream(read_line, reader, take_pair, reader);

	if (bad_line == 0 || reader->failed)
		return;
	reader->line = bad_line < 0 ? 0 : bad_line;
	file_fails(reader, CONF_EXIT_VALUE, "the line is not \"name = value\"");
}

/* --- a list of flags ------------------------------------------------------------------------- */

/*
 * Splits a line into words as a shell does: quotes and backslashes protect. A comment starts at any "#". The words lie
 * in the line itself. Returns their number, or -1 when a quote is not closed or there are too many words.
 */
static int split(char *line, char *words[WORDS_MAX])
{
	char *from = line, *to = line, quote = 0;
	int count = 0;

	while (*from && *from != '#') {
		if (strchr(" \t", *from)) {
			from++;
			continue;
		}
		if (count == WORDS_MAX - 1)
			return -1;
		words[count++] = to;
		for (; *from && (quote || !strchr(" \t#", *from)); from++) {
			if (quote ? *from == quote : *from == '"' || *from == '\'')
				quote = quote ? 0 : *from;
			else if (*from == '\\' && quote != '\'' && from[1])
				*to++ = *++from;
			else
				*to++ = *from;
		}
		if (quote)
			return -1;
		if (*from && *from != '#')
			from++;
		else if (*from == '#')
			*from = 0;
		*to++ = 0;
	}
	words[count] = NULL;
	return count;
}

/* Takes the flags in the words [1, count). False after a mistake, which is then told already. */
static bool take_flags(struct file_reader *reader, int count, char **words, struct conf_walk *walk)
{
	char origin[CONF_WHY_BYTES];

	snprintf(origin, sizeof(origin), "%s:%d: ", reader->path, reader->line);
	walk->origin = origin;
	walk->line = reader->line;
	if (words[1][0] != '-') {
		if (strcmp(words[1], "logfile") == 0) {
			conf_note(reader->conf, LOG_LEVEL_INFO, "%slogfile is without effect: the option is --log-file",
				  origin);
			return true;
		}
		fprintf(walk->err, "%s\"%s\" is not a flag\n", origin, words[1]);
		reader->exit_code = conf_fault(reader->conf, CONF_EXIT_VALUE);
		return reader->exit_code == 0;
	}
	if (strncmp(words[1], "-d", 2) == 0 || strcmp(words[1], "-h") == 0) {
		conf_note(reader->conf, LOG_LEVEL_INFO, "%s%s is without effect in a file, as with Debian's scripts",
			  origin, words[1]);
		return true;
	}
	if (conf_walk(reader->conf, count, words, walk) == FS_OK)
		return true;
	reader->exit_code = reader->conf->exit_code;
	return false;
}

static void take_lines_of_flags(struct file_reader *reader, const char *program, FILE *err)
{
	struct conf_walk walk = { .applying = true, .in_file = true, .err = err };
	char *name = strdup(program), *words[WORDS_MAX + 1], *text;
	bool good = true;

	must(name);
	while (good && (text = next_line(reader)) != NULL) {
		int count = split(text, words + 1);

		words[0] = name;
		if (count < 0) {
			fprintf(err, "%s:%d: a quote is not closed, or there are more than %d words\n", reader->path,
				reader->line, WORDS_MAX - 1);
			reader->exit_code = conf_fault(reader->conf, CONF_EXIT_VALUE);
			good = reader->exit_code == 0;
		} else if (count > 0) {
			good = take_flags(reader, count + 1, words, &walk);
		}
		free(text);
	}
	free(name);
}

/* --- the file's form ------------------------------------------------------------------------- */

/* A list of flags begins with a flag, or with "logfile FILE". */
static bool is_list_of_flags(struct file_reader *reader)
{
	bool flags = false, found = false;
	char *text;

	while (!found && (text = next_line(reader)) != NULL) {
		found = *text && *text != '#' && *text != ';';
		flags = *text == '-' ||
			(strncmp(text, "logfile", 7) == 0 && strchr(" \t", text[7]) && !strchr(text, '='));
		free(text);
	}
	rewind(reader->file);
	reader->line = 0;
	return found && flags;
}

/* Reads the whole file into text, because a pipe can't be read a second time. The length, less than FILE_BYTES_MOST, or
   -1. */
static ssize_t read_whole(const char *path, char *text)
{
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(text, 1, FILE_BYTES_MOST, file) : 0;
	bool good = file && !ferror(file);

	if (good && length == FILE_BYTES_MOST) {
		errno = EFBIG;
		good = false;
	}
	if (file) {
		int saved = errno;

		fclose(file);
		errno = saved;
	}
	return good ? (ssize_t)length : -1;
}

static int load_text(struct conf *conf, const char *path, char *text, const char *program, FILE *err)
{
	struct file_reader reader = { .conf = conf, .path = path, .err = err };
	ssize_t length = read_whole(path, text);

	if (length >= 0)
		reader.file = length > 0 ? fmemopen(text, (size_t)length, "r") : fopen("/dev/null", "re");
	if (!reader.file) {
		fprintf(err, "--config: \"%s\" can't be read: %s\n", path, strerror(errno));
		return CONF_EXIT_VALUE;
	}
	if (is_list_of_flags(&reader))
		take_lines_of_flags(&reader, program, err);
	else
		take_pairs(&reader);
	if (ferror(reader.file)) {
		fprintf(err, "--config: \"%s\" can't be read: %s\n", path, strerror(errno));
		reader.exit_code = CONF_EXIT_VALUE;
	} else if (reader.failed) {
		fprintf(err, "%s:%d: %s\n", path, reader.failed_line, reader.why);
	}
	fclose(reader.file);
	return reader.exit_code;
}

int conf_load_file(struct conf *conf, const char *path, const char *program, FILE *err)
{
	char *text = mem_alloc(FILE_BYTES_MOST);
	int exit_code;

	must(text);
	exit_code = load_text(conf, path, text, program, err);
	mem_free(text);
	return exit_code;
}
