/* SPDX-License-Identifier: BSD-3-Clause */
/* The log as a file: made, appended to, opened anew after a rotation; a file that can't be is told. */
#include "base/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/unit/base/base_test.h"

static char folder[] = "/tmp/flashield-log-XXXXXX";
static char path[64], rotated[64], text[4096];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/log", folder);
	snprintf(rotated, sizeof(rotated), "%s/log.1", folder);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(rotated);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static const char *contents(const char *name)
{
	static char read_text[4096];
	FILE *file = fopen(name, "r");
	size_t length;

	assert_non_null(file);
	length = fread(read_text, 1, sizeof(read_text) - 1, file);
	read_text[length] = 0;
	fclose(file);
	return read_text;
}

static void wrong_paths(void)
{
	char reason[256] = "";
	bool told = log_file_open("/nonexistent/log", 0, 0, reason) == FS_ESYS && errno == ENOENT &&
		    strcmp(reason, "--log-file: /nonexistent/log: No such file or directory") == 0 &&
		    log_file_check("/nonexistent/log", reason) == FS_ESYS &&
		    log_file_check("/dev/null/log", reason) == FS_ESYS && !log_file_is_open() &&
		    log_file_reopen(reason) == FS_OK;

	log_error("still here, %s", told ? "told" : "not told");
}

static void a_file_that_can_not_be_is_told(void **state)
{
	(void)state;
	assert_int_equal(run_in_child(wrong_paths, text, sizeof(text)), 0);
	assert_string_equal(text, "error: still here, told\n");
}

static void log_over_a_rotation(void)
{
	char reason[256];

	if (chdir(folder) != 0 || log_file_check("log", reason) != FS_OK || access(path, F_OK) == 0 ||
	    log_file_open("log", 0, 0, reason) != FS_OK || chdir("/") != 0)
		_exit(1);
	log_error("one");
	log_file_tell("for the person");
	log_file_settle();
	log_file_tell("for nobody");
	if (rename(path, rotated) != 0)
		_exit(2);
	log_error("two");
	if (log_file_reopen(reason) != FS_OK)
		_exit(3);
	log_error("three");
}

static void a_rotation_loses_no_line(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(run_in_child(log_over_a_rotation, text, sizeof(text)), 0);
	assert_string_equal(text, "for the person\n");
	assert_string_equal(contents(rotated), "error: one\nerror: two\n");
	assert_string_equal(contents(path), "error: three\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0137, 0);
}

static void append(void)
{
	char reason[256];

	if (log_file_open(path, 0, 0, reason) != FS_OK)
		_exit(1);
	log_error("more");
	if (unlink(path) != 0 || mkdir(path, 0700) != 0)
		_exit(2);
	if (log_file_reopen(reason) != FS_ESYS)
		_exit(3);
	if (rmdir(path) != 0)
		_exit(4);
}

static void a_file_that_is_there_is_appended_to(void **state)
{
	FILE *file = fopen(path, "w");

	(void)state;
	assert_non_null(file);
	fputs("before\n", file);
	fclose(file);
	assert_int_equal(link(path, rotated), 0);
	assert_int_equal(run_in_child(append, text, sizeof(text)), 0);
	assert_string_equal(contents(rotated), "before\nerror: more\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_can_not_be_is_told),
		cmocka_unit_test_teardown(a_rotation_loses_no_line, remove_files),
		cmocka_unit_test_teardown(a_file_that_is_there_is_appended_to, remove_files),
	};

	return cmocka_run_group_tests_name("base: the log as a file", tests, make_folder, remove_folder);
}
