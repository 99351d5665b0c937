/* SPDX-License-Identifier: BSD-3-Clause */
/* --help: what it tells of each option. */
#include <stdlib.h>
#include <string.h>

#include "conf/conf_internal.h"
#include "tests/unit/conf/conf_test.h"

#define WIDTH 100

static char *help(void)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	conf_print_help(out);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* What the help says of an option, in one line with single blanks. Its name begins in the row's column 6. */
static void told_of(const char *text, const char *option, char *out, size_t room)
{
	size_t length = 0, name = strlen(option);
	const char *row = text, *end;

	while (strnlen(row, 8) < 8 || strncmp(row + 6, "--", 2) != 0 || strncmp(row + 8, option, name) != 0 ||
	       !strchr("= \n", row[8 + name])) {
		row = strchr(row, '\n');
		assert_non_null(row++);
	}
	for (end = strchr(row, '\n'); end && strncmp(end + 1, "        ", 8) == 0; end = strchr(end + 1, '\n'))
		;
	for (; *row && row != end && length + 1 < room; row++)
		if (*row != '\n' && (*row != ' ' || length == 0 || out[length - 1] != ' '))
			out[length++] = *row;
	out[length] = 0;
}

static void lines_are_no_wider_than_a_screen(void **state)
{
	char *text = help();

	(void)state;
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_in_range(strcspn(line, "\n"), 0, WIDTH);
	free(text);
}

static void defaults_are_told_of_what_has_a_value(void **state)
{
	char *text = help(), told[2048], wanted[256];
	unsigned with_default = 0;

	(void)state;
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_option *option = &conf_rows[i].option;
		bool has_default, has_value = option->type != CONF_TYPE_FLAG && option->type != CONF_TYPE_COUNT;

		if (conf_rows[i].kind == CONF_ROW_HEADING)
			continue;
		told_of(text, option->name, told, sizeof(told));
		snprintf(wanted, sizeof(wanted), "default %s)", option->default_text ? option->default_text : "");
		has_default = conf_rows[i].kind == CONF_ROW_OPTION && has_value && option->default_text;
		if (has_default != (strstr(told, wanted) != NULL))
			fail_msg("--%s: \"%s\" in \"%s\"", option->name, wanted, told);
		with_default += has_default;
	}
	assert_true(with_default > 20);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_no_wider_than_a_screen),
		cmocka_unit_test(defaults_are_told_of_what_has_a_value),
	};

	return cmocka_run_group_tests_name("conf: help", tests, NULL, NULL);
}
