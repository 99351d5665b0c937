/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths below the state directory, which an option or the environment names. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/conf/conf_test.h"

static void expect_paths(const char *environment, const char *words, const char *state_dir, const char *flash_path)
{
	struct loaded loaded;

	if (environment)
		setenv("STATE_DIRECTORY", environment, 1);
	else
		unsetenv("STATE_DIRECTORY");
	load(&loaded, words, NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	assert_string_equal(loaded.conf.state_dir ? loaded.conf.state_dir : "", state_dir);
	assert_string_equal(loaded.conf.flash_path ? loaded.conf.flash_path : "", flash_path);
	unload(&loaded);
	unsetenv("STATE_DIRECTORY");
}

static void a_path_that_gets_too_long_is_refused(void **state)
{
	char words[4200] = "--state-dir /var --flash-path ";

	(void)state;
	memset(words + strlen(words), 'f', 4091);
	expect_refusal(words, NULL, 64, "--flash-path: together with --state-dir it is longer than 4095 bytes\n");
}

static void an_environment_that_names_no_folder_counts_for_nothing(void **state)
{
	(void)state;
	expect_paths("", "--flash-path flash", "", "flash");
	expect_paths("state", "--flash-path flash", "", "flash");
}

static void a_relative_flash_path_lies_in_the_state_directory(void **state)
{
	(void)state;
	expect_paths(NULL, "--flash-path flash", "", "flash");
	expect_paths(NULL, "--state-dir /var/lib/x --flash-path flash", "/var/lib/x", "/var/lib/x/flash");
	expect_paths(NULL, "--state-dir /var/lib/x --flash-path /flash", "/var/lib/x", "/flash");
	expect_paths(NULL, "--state-dir /var/lib/x", "/var/lib/x", "");
	expect_paths(NULL, "--state-dir /var/lib/x -o ext_path=flash:64m", "/var/lib/x", "/var/lib/x/flash");
}

static void systemd_names_the_state_directory(void **state)
{
	(void)state;
	expect_paths("/var/lib/a", "--flash-path flash", "/var/lib/a", "/var/lib/a/flash");
	expect_paths("/var/lib/a:/var/lib/b", "--flash-path flash", "/var/lib/a", "/var/lib/a/flash");
	expect_paths("/var/lib/a", "--state-dir /b --flash-path flash", "/b", "/b/flash");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_gets_too_long_is_refused),
		cmocka_unit_test(an_environment_that_names_no_folder_counts_for_nothing),
		cmocka_unit_test(a_relative_flash_path_lies_in_the_state_directory),
		cmocka_unit_test(systemd_names_the_state_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
