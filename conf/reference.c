/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the options for manual pages and guides, from the rows. */
#include <ctype.h>
#include <string.h>

#include "conf/conf_internal.h"

/* --- text of either form ----------------------------------------------------------------------- */

/* In a cell of a Markdown table a bar would end it. */
static void put_cell(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
}

/* For roff: a backslash is an escape, and a "-" that begins a word is no hyphen. */
static void put_roff(FILE *out, const char *text)
{
	for (const char *at = text; *at; at++) {
		bool dash = *at == '-' && (at == text || strchr(" \"'(-|", at[-1]));

		fputs(*at == '\\' ? "\\e" : dash ? "\\-" : "", out);
		if (*at != '\\' && !dash)
			fputc(*at, out);
	}
}

/* The texts of the rows begin with a small letter and have no full stop at their end. */
static void put_sentence(FILE *out, const char *text)
{
	fputc(toupper((unsigned char)*text), out);
	put_roff(out, text + 1);
	fprintf(out, ".\n");
}

static bool has_value(const struct conf_option *option)
{
	return option->type != CONF_TYPE_FLAG && option->type != CONF_TYPE_COUNT;
}

/* --- Markdown ---------------------------------------------------------------------------------- */

static void md_option(FILE *out, const struct conf_row *row)
{
	const struct conf_option *option = &row->option;
	const char *argument = conf_argument_name(row);
	char accepted[CONF_ACCEPTED_BYTES];

	fprintf(out, "| `");
	if (option->letter)
		fprintf(out, "-%c`, `", option->letter);
	fprintf(out, "--%s%s", option->name, argument ? " " : "");
	put_cell(out, argument ? argument : "");
	fprintf(out, "` | ");
	put_cell(out, option->text);
	if (row->kind == CONF_ROW_ACTION) {
		fprintf(out, " | | |\n");
		return;
	}
	fprintf(out, "%s | ", option->flags & CONF_RELOAD ? " *(reload)*" : "");
	put_cell(out, conf_accepted(option, accepted));
	fprintf(out, " | %s |\n", option->default_text ? option->default_text : "");
}

static void md_options(FILE *out)
{
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];

		if (row->kind == CONF_ROW_HEADING)
			fprintf(out, "%s## %s\n\n| option | what for | accepts | default |\n|---|---|---|---|\n",
				i ? "\n" : "", row->option.text);
		else
			md_option(out, row);
	}
}

/* A suboption's row: its effect, or the reason why it has none. */
static void md_suboption(FILE *out, const struct conf_suboption *suboption)
{
	const char *default_text = suboption->option.default_text;
	bool toggles = suboption->form == CONF_FORM_SWITCH || suboption->form == CONF_FORM_WORDS;

	fprintf(out, "| `%s` | ", suboption->name);
	if (suboption->effect)
		fprintf(out, "no effect: ");
	put_cell(out, suboption->effect ? suboption->effect : suboption->option.text);
	fprintf(out, " | %s |\n", !toggles && !suboption->effect && default_text ? default_text : "");
}

static void md_suboptions(FILE *out, bool of_extstore)
{
	fprintf(out,
		"| suboption | what for | default |\n|---|---|---|\n"
		"| `ext_path=FILE:SIZE[:BUCKET]` | the flash: `--flash-path` and `--flash-size` in "
		"one. What extstore has left there is overwritten. A bucket (compact, old, ...) has no effect; of several files the first one without a bucket is used | |\n");
	for (int i = 0; i < conf_suboption_count; i++) {
		const struct conf_suboption *suboption = &conf_suboptions[i];
		bool ext = strncmp(suboption->name ? suboption->name : "", "ext_", 4) == 0;

		if (suboption->form != CONF_FORM_STATE && (ext || !of_extstore))
			md_suboption(out, suboption);
	}
}

/* memcached's flags are the options with a letter: our own have none. */
static void md_memcached(FILE *out)
{
	fprintf(out, "| memcached's flag | here |\n|---|---|\n");
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_option *option = &conf_rows[i].option;

		if (conf_rows[i].kind == CONF_ROW_HEADING || !option->letter)
			continue;
		fprintf(out, "| `-%c`, `--%s` | ", option->letter, option->name);
		put_cell(out, option->text);
		fprintf(out, " |\n");
	}
}

/* --- mdoc -------------------------------------------------------------------------------------- */

static void man_text(FILE *out, const struct conf_row *row)
{
	const struct conf_option *option = &row->option;
	bool any_text = option->type == CONF_TYPE_STRING;
	char accepted[CONF_ACCEPTED_BYTES];

	put_sentence(out, option->text);
	if (row->kind == CONF_ROW_OPTION && has_value(option) && !any_text) {
		fprintf(out, "Accepts ");
		put_roff(out, conf_accepted(option, accepted));
		fprintf(out, ".\n");
	}
	if (row->kind == CONF_ROW_OPTION && has_value(option) && option->default_text) {
		fprintf(out, "The default is ");
		put_roff(out, option->default_text);
		fprintf(out, ".\n");
	}
	if (option->flags & CONF_RELOAD)
		fprintf(out, "May change at a reload.\n");
}

static void man_option(FILE *out, const struct conf_row *row)
{
	const struct conf_option *option = &row->option;
	const char *argument = conf_argument_name(row);

	fprintf(out, ".It ");
	if (option->letter)
		fprintf(out, "Fl %c , ", option->letter);
	fprintf(out, "Fl \\-%s", option->name);
	if (argument)
		fprintf(out, " Ns = Ns Ar %s", argument);
	fputc('\n', out);
	man_text(out, row);
}

/* As a line of the file, which has no actions but those with CONF_IN_FILE. */
static void man_line(FILE *out, const struct conf_row *row)
{
	const char *argument = conf_argument_name(row);
	bool counts = row->kind == CONF_ROW_OPTION && row->option.type == CONF_TYPE_COUNT;
	char accepted[CONF_ACCEPTED_BYTES];

	if (row->kind == CONF_ROW_ACTION && !(row->option.flags & CONF_IN_FILE))
		return;
	if (counts)
		argument = "N"; /* on the command line its mentions are counted instead */
	fprintf(out, ".It Ic %s No = Ar %s\n", row->option.name, argument ? argument : "yes|no");
	man_text(out, row);
	if (counts) {
		fprintf(out, "Accepts ");
		put_roff(out, conf_accepted(&row->option, accepted));
		fprintf(out, ".\nThe default is %s.\n", row->option.default_text);
	}
}

static void man_rows(FILE *out, void (*print)(FILE *, const struct conf_row *))
{
	bool open = false;

	for (int i = 0; i < conf_row_count; i++) {
		if (conf_rows[i].kind != CONF_ROW_HEADING) {
			print(out, &conf_rows[i]);
			continue;
		}
		fprintf(out, "%s.Ss %s\n.Bl -tag -width Ds\n", open ? ".El\n" : "", conf_rows[i].option.text);
		open = true;
	}
	fprintf(out, ".El\n");
}

static void man_suboption(FILE *out, const struct conf_suboption *suboption)
{
	const char *default_text = suboption->option.default_text;
	bool toggles = suboption->form == CONF_FORM_SWITCH || suboption->form == CONF_FORM_WORDS;

	fprintf(out, ".It Cm %s%s\n", suboption->name, toggles ? "" : " Ns = Ns Ar value");
	put_sentence(out, suboption->effect ? suboption->effect : suboption->option.text);
	if (!toggles && !suboption->effect && default_text) {
		fprintf(out, "The default is ");
		put_roff(out, default_text);
		fprintf(out, ".\n");
	}
}

static void man_suboptions(FILE *out)
{
	fprintf(out,
		".Bl -tag -width Ds\n.It Cm ext_path Ns = Ns Ar FILE:SIZE\n"
		"The flash: \\-\\-flash-path and \\-\\-flash-size in one. What extstore has left there is overwritten.\n");
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < conf_suboption_count; i++) {
			const struct conf_suboption *suboption = &conf_suboptions[i];

			if (suboption->form != CONF_FORM_STATE && (suboption->effect != NULL) == (pass == 1))
				man_suboption(out, suboption);
		}
		if (pass == 0)
			fprintf(out, ".El\n.Pp\nThese are accepted and shown by\n.Ql stats settings ,\nbut "
				     "have no effect:\n"
				     ".Bl -tag -width Ds\n");
	}
	fprintf(out, ".El\n");
}

void conf_print_reference(FILE *out, enum conf_reference part)
{
	switch (part) {
	case CONF_REFERENCE_MD_OPTIONS:
		md_options(out);
		break;
	case CONF_REFERENCE_MD_SUBOPTIONS:
	case CONF_REFERENCE_MD_EXTSTORE:
		md_suboptions(out, part == CONF_REFERENCE_MD_EXTSTORE);
		break;
	case CONF_REFERENCE_MD_MEMCACHED:
		md_memcached(out);
		break;
	case CONF_REFERENCE_MAN_OPTIONS:
		man_rows(out, man_option);
		break;
	case CONF_REFERENCE_MAN_FILE:
		man_rows(out, man_line);
		break;
	case CONF_REFERENCE_MAN_SUBOPTIONS:
		man_suboptions(out);
		break;
	}
}
