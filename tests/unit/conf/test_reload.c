/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of a daemon that runs, read again from a file that has changed meanwhile. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/conf/conf_test.h"

static char folder[] = "/tmp/flashield-reload-XXXXXX";
static char program[] = "flashield", config[] = "--config", file_name[] = "f", verbose[] = "-vv";
static char *arguments[] = { program, config, file_name, verbose, NULL };

static void write_file(const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/f", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* As a daemon starts that goes to the root afterwards, as -d does. */
static void start(struct conf *running, int argc, const char *text)
{
	FILE *null = fopen("/dev/null", "w");

	assert_non_null(null);
	write_file(text);
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(conf_load(running, argc, arguments, null, null), FS_OK);
	assert_int_equal(chdir("/"), 0);
	fclose(null);
}

static void note_change(void *context, const struct conf_change *change)
{
	FILE *out = context;

	fprintf(out, "%s%s: %s -> %s\n", change->reloadable ? "" : "!", change->option->name, change->before,
		change->after);
}

static void expect_changes(const struct conf *before, const struct conf *after, const char *expected)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	conf_each_change(before, after, note_change, out);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void expect_refused(const struct conf *running, const char *text, const char *why_end)
{
	struct conf fresh;
	char why[1024];

	write_file(text);
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(conf_reload(&fresh, running, 3, arguments, why, sizeof(why)), CONF_EXIT);
	assert_null(strchr(why, '\n'));
	assert_true(strlen(why) >= strlen(why_end));
	assert_string_equal(why + strlen(why) - strlen(why_end), why_end);
	assert_int_equal(log_level(), LOG_LEVEL_ERROR);
	conf_free(&fresh);
}

static void what_is_wrong_is_told_in_one_line(void **state)
{
	struct conf running, fresh;
	char why[1024], path[64], expected[256];

	(void)state;
	start(&running, 3, "threads = 2\n");
	expect_refused(&running, "threads = 3\nhot-fraction = 2\n",
		       "/f:2: hot-fraction: \"2\" is not a number from 0 to 1");
	expect_refused(&running, "no-such = 1\n", "/f:1: there is no option \"no-such\"");
	expect_refused(&running, "what\n", "/f:1: the line is not \"name = value\"");
	expect_refused(&running, "-z\n", "/f:1: flashield: invalid option -- 'z'"); /* memcached adds a second line */
	expect_refused(&running, "max-item-size = 64m\n", "Cannot set item size limit higher than 1/2 of memory max.");
	snprintf(path, sizeof(path), "%s/f", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(conf_reload(&fresh, &running, 3, arguments, why, sizeof(why)), CONF_EXIT);
	snprintf(expected, sizeof(expected), "--config: \"%s\" can't be read: No such file or directory", path);
	assert_string_equal(why, expected);
	conf_free(&fresh);
	conf_free(&running);
}

static void changes_are_told_with_whether_they_need_a_restart(void **state)
{
	struct conf running, fresh;
	char why[1024];

	(void)state;
	start(&running, 3, "threads = 2\nadmission = all\n");
	write_file(
		"admission = read-once\nflash-write-limit = 5m/s\nauth-file = /x\nextended = idle_timeout=9,hashpower=20\n");
	assert_int_equal(conf_reload(&fresh, &running, 3, arguments, why, sizeof(why)), FS_OK);
	expect_changes(&running, &fresh,
		       "!protocol: auto -> ascii\n!auth-file:  -> /x\n!threads: 2 -> 4\nflash-write-limit: 0 -> 5m/s\n"
		       "admission: all -> read-once\n!idle_timeout: 0 -> 9\n");
	expect_changes(&running, &running, "");
	conf_adopt(&running, &fresh,
		   &(struct conf_option){ .type = CONF_TYPE_RATE, .offset = offsetof(struct conf, flash_write_limit) });
	assert_int_equal(running.flash_write_limit, 5 << 20);
	assert_int_equal(running.admission, CONF_ADMISSION_ALL);
	conf_free(&fresh);
	conf_free(&running);
}

static void the_command_line_counts_more_than_the_file(void **state)
{
	struct conf running, fresh;
	char why[1024];

	(void)state;
	start(&running, 4, "verbose = 0\n");
	assert_int_equal(running.verbose, 2);
	write_file("verbose = 1\n");
	assert_int_equal(conf_reload(&fresh, &running, 4, arguments, why, sizeof(why)), FS_OK);
	assert_int_equal(fresh.verbose, 2);
	expect_changes(&running, &fresh, "");
	conf_free(&fresh);
	conf_free(&running);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/f", folder);
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_told_in_one_line),
		cmocka_unit_test(changes_are_told_with_whether_they_need_a_restart),
		cmocka_unit_test(the_command_line_counts_more_than_the_file),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
