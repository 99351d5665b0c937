/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints options and suboptions for a shell's completion, from the rows. */
#include <string.h>

#include "conf/conf_internal.h"

/* The option's argument: words to choose from, or "@" and a kind of name. NULL when it takes none. */
static const char *value_kind(const struct conf_row *row)
{
	const struct conf_option *option = &row->option;
	const char *argument = row->kind == CONF_ROW_ACTION ? row->argument : option->unit;

	if (row->kind == CONF_ROW_ACTION && !argument)
		return NULL;
	if (row->kind == CONF_ROW_OPTION && (option->type == CONF_TYPE_FLAG || option->type == CONF_TYPE_COUNT))
		return NULL;
	if (option->type == CONF_TYPE_ENUM)
		return argument;
	if (strcmp(argument, "FILE") == 0)
		return "@file";
	if (strcmp(argument, "DIRECTORY") == 0)
		return "@directory";
	if (strcmp(option->name, "user") == 0)
		return "@user";
	if (strcmp(option->name, "extended") == 0)
		return "@suboption";
	return option->flags & CONF_AUTO_WORD ? "auto" : "@text";
}

/* Words of an ENUM stand in its row with bars between them. */
static void print_kind(FILE *out, const char *name, const char *kind)
{
	fprintf(out, "\t[%s]='", name);
	for (; *kind; kind++)
		fputc(*kind == '|' ? ' ' : *kind, out);
	fputs("'\n", out);
}

static void print_suboption_array(FILE *out)
{
	fprintf(out, "declare -gA _flashield_suboptions=(\n\t[ext_path]='@file'\n");
	for (int i = 0; i < conf_suboption_count; i++) {
		const struct conf_suboption *suboption = &conf_suboptions[i];

		if (suboption->form == CONF_FORM_STATE || strcmp(suboption->name, "ext_path") == 0)
			continue;
		if (suboption->form == CONF_FORM_SWITCH || suboption->form == CONF_FORM_WORDS)
			print_kind(out, suboption->name, "");
		else if (suboption->option.type == CONF_TYPE_ENUM)
			print_kind(out, suboption->name, suboption->option.unit);
		else
			print_kind(out, suboption->name, suboption->form == CONF_FORM_TEXT ? "@file" : "@text");
	}
	fprintf(out, ")\n");
}

void conf_print_completion(FILE *out)
{
	fprintf(out, "# Options and what they take, from flashield's own table; empty: no argument.\n"
		     "declare -gA _flashield_options=(\n");
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];
		const char *kind;
		char name[80];

		if (row->kind == CONF_ROW_HEADING)
			continue;
		kind = value_kind(row) ? value_kind(row) : "";
		snprintf(name, sizeof(name), "--%s", row->option.name);
		print_kind(out, name, kind);
		if (row->option.letter) {
			snprintf(name, sizeof(name), "-%c", row->option.letter);
			print_kind(out, name, kind);
		}
	}
	fprintf(out, ")\n");
	print_suboption_array(out);
}
