/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that have no effect with others, or here: each is told, and no other is. */
#include <string.h>

#include "tests/unit/conf/conf_test.h"

#define FLASH " --flash-path /f --flash-size 64m"

static void expect_none(const char *words)
{
	struct loaded loaded;

	load(&loaded, words, NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	if (loaded.conf.notes)
		fail_msg("%s: %s", words, loaded.conf.notes->text);
	unload(&loaded);
}

static void expect_note(const char *words, enum log_level level, const char *text)
{
	struct loaded loaded;

	load(&loaded, words, NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	assert_non_null(loaded.conf.notes);
	assert_string_equal(loaded.conf.notes->text, text);
	assert_int_equal(loaded.conf.notes->level, level);
	assert_null(loaded.conf.notes->next);
	unload(&loaded);
}

static void what_has_its_effect_is_not_told(void **state)
{
	(void)state;
	expect_none("-p 11211");
	expect_none("--metrics-listen off");
	expect_none("--metrics-auth-file /a");
	expect_none("--metrics-tls-cert /c --metrics-tls-key /k");
	expect_none("-t 64 -f 1.25 -n 48");
	expect_none("--segment-size 1m --model /m --region-dir /r --promote lru" FLASH);
	expect_none("--app-limit a:dram=-1m");
	expect_none("--app-source user");
}

static void an_endpoint_that_is_off_has_no_options(void **state)
{
	const char *text = "--metrics-tls-cert and --metrics-auth-file have no effect with --metrics-listen=off";

	(void)state;
	expect_note("--metrics-listen off --metrics-auth-file /a", LOG_LEVEL_WARN, text);
	expect_note("--metrics-listen off --metrics-tls-cert /c --metrics-tls-key /k", LOG_LEVEL_WARN, text);
	expect_note("--metrics-listen off --metrics-tls-cert /c --metrics-tls-key /k --metrics-auth-file /a",
		    LOG_LEVEL_WARN, text);
}

static void what_needs_a_flash_has_no_effect_without(void **state)
{
	const char *sizes = "--flash-size and --segment-size have no effect without --flash-path";

	(void)state;
	expect_note("--flash-size 64m", LOG_LEVEL_WARN, sizes);
	expect_note("--segment-size 1m", LOG_LEVEL_WARN, sizes);
	expect_note("--model /m", LOG_LEVEL_WARN, "--model has no effect without --flash-path");
	expect_note("--region-dir /r", LOG_LEVEL_WARN, "--region-dir has no effect without --flash-path");
	expect_note("--promote lru", LOG_LEVEL_WARN, "--promote has no effect without --flash-path");
}

static void what_memcached_has_and_this_has_not_is_told(void **state)
{
	(void)state;
	expect_note("-t 65", LOG_LEVEL_WARN, "-t 65: more threads than the machine has cores make it slower");
	expect_note("-f 1.26", LOG_LEVEL_INFO, "-f is without effect: there are no slabs here");
	expect_note("-n 49", LOG_LEVEL_INFO, "-n is without effect: there are no slabs here");
	expect_note("-N 1", LOG_LEVEL_INFO, "-N is without effect: connections go to the workers in turn");
	expect_note("-e /m", LOG_LEVEL_WARN,
		    "-e /m is without effect: what memory holds outlives a clean stop with --state-dir instead");
	expect_note("--app-limit a:dram=-1m --app-source user", LOG_LEVEL_WARN,
		    "--app-limit goes by the start of keys, while --app-source=user counts by users");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_its_effect_is_not_told),
		cmocka_unit_test(an_endpoint_that_is_off_has_no_options),
		cmocka_unit_test(what_needs_a_flash_has_no_effect_without),
		cmocka_unit_test(what_memcached_has_and_this_has_not_is_told),
	};

	return cmocka_run_group_tests_name("conf: options without effect", tests, NULL, NULL);
}
