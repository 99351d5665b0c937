/* SPDX-License-Identifier: BSD-3-Clause */
/* What manual pages and guides have from the rows: all of them, and nothing that breaks a table or a page.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf_internal.h"
#include "tests/unit/conf/conf_test.h"

static char *printed(enum conf_reference part)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	conf_print_reference(out, part);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Calls each() for each line, without its end. */
static void each_line(enum conf_reference part, void (*each)(const char *line))
{
	char *text = printed(part), *rest = text, *line;

	while ((line = strsep(&rest, "\n")) != NULL)
		each(line);
	free(text);
}

static int columns; /* of the table that the last head began */

static void check_row(const char *line)
{
	int bars = 0;

	if (*line != '|') {
		columns = 0;
		return;
	}
	for (const char *at = line; *at; at++)
		bars += *at == '|' && (at == line || at[-1] != '\\');
	if (columns == 0)
		columns = bars;
	if (bars != columns)
		fail_msg("%d bars instead of %d: %s", bars, columns, line);
}

static void a_bar_in_a_text_ends_no_cell(void **state)
{
	(void)state;
	each_line(CONF_REFERENCE_MD_OPTIONS, check_row);
	each_line(CONF_REFERENCE_MD_SUBOPTIONS, check_row);
	each_line(CONF_REFERENCE_MD_EXTSTORE, check_row);
	each_line(CONF_REFERENCE_MD_MEMCACHED, check_row);
}

/* A text that begins with a dot or an apostrophe would be a request, an unknown escape would vanish. */
static void check_roff(const char *line)
{
	static const char *const requests[] = { ".It ", ".Ss ", ".Bl ", ".El", ".Pp", ".Ql " };
	bool known = false;

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		known |= strncmp(line, requests[i], strlen(requests[i])) == 0;
	if ((*line == '.' && !known) || *line == '\'')
		fail_msg("no text: %s", line);
	for (const char *at = line; (at = strchr(at, '\\')) != NULL; at += 2) {
		if (at[1] != '-' && at[1] != 'e')
			fail_msg("an escape: %s", line);
	}
}

static void texts_are_no_requests(void **state)
{
	(void)state;
	each_line(CONF_REFERENCE_MAN_OPTIONS, check_roff);
	each_line(CONF_REFERENCE_MAN_FILE, check_roff);
	each_line(CONF_REFERENCE_MAN_SUBOPTIONS, check_roff);
}

static void expect_named(const char *text, const char *before, const char *name, const char *after)
{
	char words[128];

	snprintf(words, sizeof(words), "%s%s%s", before, name, after);
	if (!strstr(text, words))
		fail_msg("%s is missing", words);
}

static void every_option_is_there(void **state)
{
	char *md = printed(CONF_REFERENCE_MD_OPTIONS), *man = printed(CONF_REFERENCE_MAN_OPTIONS),
	     *file = printed(CONF_REFERENCE_MAN_FILE), *memcached = printed(CONF_REFERENCE_MD_MEMCACHED);

	(void)state;
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_row *row = &conf_rows[i];

		if (row->kind == CONF_ROW_HEADING)
			continue;
		expect_named(md, "`--", row->option.name, "");
		expect_named(man, "Fl \\-", row->option.name, "");
		if (row->option.letter)
			expect_named(memcached, "`--", row->option.name, "`");
		if (row->kind == CONF_ROW_OPTION)
			expect_named(file, ".It Ic ", row->option.name, " No");
	}
	assert_null(strstr(file, "print-sample-config"));
	free(md);
	free(man);
	free(file);
	free(memcached);
}

static unsigned accepted_lines;

static void count_accepted(const char *line)
{
	accepted_lines += strncmp(line, "Accepts ", 8) == 0;
}

/* A flag has no value, and of a text nothing is refused. */
static void the_manual_says_what_numbers_and_words_are_accepted(void **state)
{
	unsigned wanted = 0;

	(void)state;
	for (int i = 0; i < conf_row_count; i++) {
		enum conf_type type = conf_rows[i].option.type;

		wanted += conf_rows[i].kind == CONF_ROW_OPTION && type != CONF_TYPE_FLAG && type != CONF_TYPE_COUNT &&
			  type != CONF_TYPE_STRING;
	}
	accepted_lines = 0;
	each_line(CONF_REFERENCE_MAN_OPTIONS, count_accepted);
	assert_int_equal(accepted_lines, wanted);
}

static void every_suboption_is_there(void **state)
{
	char *md = printed(CONF_REFERENCE_MD_SUBOPTIONS), *man = printed(CONF_REFERENCE_MAN_SUBOPTIONS),
	     *extstore = printed(CONF_REFERENCE_MD_EXTSTORE);

	(void)state;
	for (int i = 0; i < conf_suboption_count; i++) {
		const struct conf_suboption *suboption = &conf_suboptions[i];

		if (suboption->form == CONF_FORM_STATE)
			continue;
		expect_named(md, "| `", suboption->name, "` |");
		expect_named(man, ".It Cm ", suboption->name, "");
		if (strncmp(suboption->name, "ext_", 4) == 0)
			expect_named(extstore, "| `", suboption->name, "` |");
	}
	assert_null(strstr(extstore, "slab"));
	free(md);
	free(man);
	free(extstore);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bar_in_a_text_ends_no_cell),
		cmocka_unit_test(texts_are_no_requests),
		cmocka_unit_test(every_option_is_there),
		cmocka_unit_test(the_manual_says_what_numbers_and_words_are_accepted),
		cmocka_unit_test(every_suboption_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
