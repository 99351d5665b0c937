/* SPDX-License-Identifier: BSD-3-Clause */
/* --help and the sample file, made from the rows. */
#include <string.h>

#include "conf/conf_internal.h"
#include "conf/version.h"

#define HELP_COLUMN 32
#define SAMPLE_WIDTH 96

static const char *argument_name(const struct conf_row *row)
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

void conf_print_help(FILE *out)
{
	fprintf(out, "flashield %s - a memcached-compatible cache in memory and on flash\n", FS_VERSION);
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		const struct conf_option *option = &row->option;
		const char *argument = argument_name(row);
		char accepted[CONF_ACCEPTED_BYTES];
		int column;

		if (row->kind == CONF_ROW_HEADING) {
			fprintf(out, "\n%s\n", option->text);
			continue;
		}
		if (option->letter)
			column = fprintf(out, "  -%c, --%s%s%s", option->letter, option->name, argument ? "=" : "",
					 argument ? argument : "");
		else
			column = fprintf(out, "      --%s%s%s", option->name, argument ? "=" : "",
					 argument ? argument : "");
		if (column >= HELP_COLUMN)
			column = fprintf(out, "\n") - 1;
		fprintf(out, "%*s%s\n", HELP_COLUMN - column, "", option->text);
		if (row->kind == CONF_ROW_OPTION && has_range(option))
			fprintf(out, "%*s(%s; default %s)\n", HELP_COLUMN, "", conf_accepted(option, accepted),
				option->default_text);
		else if (row->kind == CONF_ROW_OPTION && option->default_text && option->type != CONF_TYPE_FLAG &&
			 option->type != CONF_TYPE_COUNT)
			fprintf(out, "%*s(default %s)\n", HELP_COLUMN, "", option->default_text);
	}
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
		snprintf(comment, sizeof(comment), "%s (%s)", option->text, conf_accepted(option, accepted));
		fputc('\n', out);
		print_comment(out, comment);
		fprintf(out, "#%s =%s%s\n", option->name, option->default_text ? " " : "",
			option->default_text ? option->default_text : "");
	}
}
