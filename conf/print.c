/* SPDX-License-Identifier: BSD-3-Clause */
/* --help, -V and the sample file, made from the rows. */
#include <stddef.h>
#include <string.h>

#include "conf/conf_internal.h"
#include "conf/version.h"

#define HELP_COLUMN 32
#define HELP_WIDTH 100
#define SAMPLE_WIDTH 96

const char *conf_argument_name(const struct conf_row *row)
{
	if (row->kind == CONF_ROW_ACTION)
		return row->argument;
	switch (row->option.type) {
	case CONF_TYPE_FLAG:
	case CONF_TYPE_COUNT:
		return NULL;
	case CONF_TYPE_INT:
		return "N";
	case CONF_TYPE_SIZE:
		return "SIZE";
	case CONF_TYPE_TIME:
		return "TIME";
	case CONF_TYPE_RATE:
		return "RATE";
	case CONF_TYPE_REAL:
		return "X";
	case CONF_TYPE_OCTAL:
		return "OCTAL";
	case CONF_TYPE_CHAR:
		return "CHAR";
	case CONF_TYPE_STRING:
	case CONF_TYPE_ENUM:
		return row->option.unit;
	}
	return NULL;
}

static bool has_range(const struct conf_option *option)
{
	return option->type != CONF_TYPE_FLAG && option->type != CONF_TYPE_COUNT && option->type != CONF_TYPE_STRING &&
	       option->type != CONF_TYPE_ENUM && option->type != CONF_TYPE_CHAR;
}

/* Prints whole words within HELP_WIDTH, from the column of the cursor on. Further lines begin at HELP_COLUMN. */
static void print_wrapped(FILE *out, int column, const char *text)
{
	bool first = true;

	while (*text) {
		int word = (int)strcspn(text, " ");

		if (!first && column + 1 + word > HELP_WIDTH) {
			column = fprintf(out, "\n%*s", HELP_COLUMN, "") - 1;
			first = true;
		}
		column += fprintf(out, "%s%.*s", first ? "" : " ", word, text);
		first = false;
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

/* Prints the text after an option's name, which took column characters of the line. */
static void print_text(FILE *out, int column, const char *text, const char *accepted, const char *default_text)
{
	char line[1024];

	if (column >= HELP_COLUMN)
		column = fprintf(out, "\n") - 1;
	fprintf(out, "%*s", HELP_COLUMN - column, "");
	print_wrapped(out, HELP_COLUMN, text);
	if (accepted)
		snprintf(line, sizeof(line), "(%s; default %s)", accepted, default_text);
	else
		snprintf(line, sizeof(line), "(default %s)", default_text ? default_text : "");
	if (default_text) {
		fprintf(out, "%*s", HELP_COLUMN, "");
		print_wrapped(out, HELP_COLUMN, line);
	}
}

static void print_row(FILE *out, const struct conf_row *row)
{
	const struct conf_option *option = &row->option;
	const char *argument = conf_argument_name(row), *default_text = option->default_text;
	bool ranged = row->kind == CONF_ROW_OPTION && has_range(option);
	char accepted[CONF_ACCEPTED_BYTES], letter[8] = "    ";
	int column;

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	column = fprintf(out, "  %s--%s%s%s", letter, option->name, argument ? "=" : "", argument ? argument : "");
	if (row->kind != CONF_ROW_OPTION || option->type == CONF_TYPE_FLAG || option->type == CONF_TYPE_COUNT)
		default_text = NULL;
	print_text(out, column, option->text, ranged ? conf_accepted(option, accepted) : NULL, default_text);
}

static const char *suboption_argument(const struct conf_suboption *suboption)
{
	if (suboption->option.offset == offsetof(struct conf, ssl_ciphers))
		return "=LIST";
	if (suboption->form == CONF_FORM_SWITCH || suboption->form == CONF_FORM_WORDS)
		return "";
	return suboption->form == CONF_FORM_TEXT ? "=FILE" : "=N";
}

/* Suboptions with an effect and their texts, then the names of the others. */
static void print_suboption_help(FILE *out)
{
	int column, first = -1;

	fprintf(out, "\nSuboptions of -o, separated by commas\n");
	column = fprintf(out, "  ext_path=FILE:SIZE");
	print_text(out, column, "the flash: --flash-path and --flash-size in one", NULL, NULL);
	for (int i = 0; i < conf_suboption_count; i++) {
		const struct conf_suboption *suboption = &conf_suboptions[i];

		if (suboption->form == CONF_FORM_STATE || suboption->effect)
			continue;
		column = fprintf(out, "  %s%s", suboption->name, suboption_argument(suboption));
		print_text(out, column, suboption->option.text, NULL,
			   suboption->form == CONF_FORM_SWITCH ? NULL : suboption->option.default_text);
	}
	fprintf(out, "  These are accepted and shown by \"stats settings\", but have no effect; -v logs why:\n");
	column = HELP_WIDTH;
	for (int i = 0; i < conf_suboption_count; i++) {
		if (!conf_suboptions[i].effect)
			continue;
		first = first < 0 ? i : first;
		if (column + 1 + (int)strlen(conf_suboptions[i].name) > HELP_WIDTH)
			column = fprintf(out, "%s   ", i == first ? "" : "\n") - (i != first);
		column += fprintf(out, " %s", conf_suboptions[i].name);
	}
	fputc('\n', out);
}

static const char *build_lines;

void conf_set_build(const char *lines)
{
	build_lines = lines;
}

void conf_print_version(FILE *out, FILE *err, const char *compat_version)
{
	fprintf(out, "memcached %s\n", compat_version);
	fflush(out);
	fprintf(err, "flashield %s\n%s", FS_VERSION, build_lines ? build_lines : "");
}

void conf_print_help(FILE *out)
{
	fprintf(out, "flashield %s - a memcached-compatible cache in memory and on flash\n", FS_VERSION);
	for (int i = 0; i < conf_row_count; i++) {
		if (conf_rows[i].kind == CONF_ROW_HEADING)
			fprintf(out, "\n%s\n", conf_rows[i].option.text);
		else
			print_row(out, &conf_rows[i]);
	}
	print_suboption_help(out);
}

/* A comment of whole words, within SAMPLE_WIDTH. */
static void print_comment(FILE *out, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (column && column + 1 + word > SAMPLE_WIDTH) {
			fputc('\n', out);
			column = 0;
		}
		column += (size_t)fprintf(out, "%s%.*s", column ? " " : "# ", (int)word, text);
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void conf_print_sample(FILE *out)
{
	fprintf(out, "# Flashield's options, for --config. A line is \"name = value\"; the names are those of the\n"
		     "# long options, and the command line overrides them. Each is shown with its default.\n");
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		const struct conf_option *option = &row->option;
		char accepted[CONF_ACCEPTED_BYTES], comment[1024];

		if (row->kind == CONF_ROW_HEADING) {
			if (strcmp(option->text, "Other") != 0)
				fprintf(out, "\n# === %s ===\n", option->text);
			continue;
		}
		if (row->kind == CONF_ROW_ACTION) {
			if (option->flags & CONF_IN_FILE) {
				fputc('\n', out);
				print_comment(out, option->text);
				fprintf(out, "#%s =\n", option->name);
			}
			continue;
		}
		snprintf(comment, sizeof(comment), "%s (%s)%s", option->text, conf_accepted(option, accepted),
			 option->flags & CONF_RELOAD ? "; SIGHUP reads it again" : "");
		fputc('\n', out);
		print_comment(out, comment);
		fprintf(out, "#%s =%s%s\n", option->name, option->default_text ? " " : "",
			option->default_text ? option->default_text : "");
	}
}
