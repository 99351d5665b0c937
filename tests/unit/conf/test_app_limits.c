/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of applications as an operator writes them: what is refused is named with what is accepted. */
#include <stdio.h>
#include <string.h>

#include "conf/app_limits.h"
#include "tests/unit/conf/conf_test.h"

static struct app_limits limits;
static char why[APP_LIMITS_WHY_BYTES];

static void refused(const char *text, char delimiter, const char *reason)
{
	assert_int_equal(app_limits_parse(text, delimiter, &limits, why), FS_EINVAL);
	assert_string_equal(why, reason);
}

static void accepted(const char *text)
{
	why[0] = 0;
	assert_int_equal(app_limits_parse(text, ':', &limits, why), FS_OK);
	assert_string_equal(why, "");
}

static void what_is_no_limit_is_refused(void **state)
{
	static const char *const texts[] = {
		"shop", "shop:", "dram=1g-", "shop:disk=1g-", "shop:=1g-", "shop:dram", ","
	};
	char reason[200];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(reason, sizeof(reason), "\"%s\" is not NAME:dram=FLOOR-CEILING,flash=FLOOR-CEILING,write=RATE",
			 strcmp(texts[i], ",") == 0 ? "" : texts[i]);
		refused(texts[i], ':', reason);
	}
	refused("shop:dram=1g-,", ':', "\"\" is not NAME:dram=FLOOR-CEILING,flash=FLOOR-CEILING,write=RATE");
}

static void a_number_without_a_dash_is_refused_as_it_may_be_either(void **state)
{
	static const char *const texts[] = { "1g",  "",     "-",    "1g-2g-3g", "1g--", "x-",
					     "-1q", "63k-", "-63k", "2p-",      "0-1g", "1.5e3-" };
	char text[80], reason[300];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(text, sizeof(text), "shop:dram=%s", texts[i]);
		snprintf(
			reason, sizeof(reason),
			"shop:dram=\"%s\" is not FLOOR-, -CEILING or FLOOR-CEILING, each a size from 64k to 1p, in bytes or with "
			"a suffix k m g t p",
			texts[i]);
		refused(text, ':', reason);
	}
	refused("shop:flash=1g", ':',
		"shop:flash=\"1g\" is not FLOOR-, -CEILING or FLOOR-CEILING, each a size from 64k to 1p, in bytes or with a suffix "
		"k m g t p");
	refused("shop:flash=2t-1t", ':', "shop:flash: the floor of 2t is above the ceiling of 1t");
	refused("shop:dram=2g-1g", ':', "shop:dram: the floor of 2g is above the ceiling of 1g");
}

static void a_wrong_rate_is_refused(void **state)
{
	static const char *const texts[] = { "fast", "", "-1", "1DWPD", "2p" };
	char text[80], reason[300];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(text, sizeof(text), "shop:write=%s", texts[i]);
		snprintf(
			reason, sizeof(reason),
			"shop:write=\"%s\" is not a rate from 0 to 1p/s, in bytes per second or with a suffix k m g t p",
			texts[i]);
		refused(text, ':', reason);
	}
}

static void a_limit_that_is_given_twice_is_refused(void **state)
{
	(void)state;
	refused("shop:dram=1g-,write=1m,shop:dram=-2g", ':', "shop:dram is given twice");
	refused("shop:flash=1g-,flash=1g-", ':', "shop:flash is given twice");
	refused("shop:write=0,write=0", ':', "shop:write is given twice");
}

static void names_that_no_key_can_have_are_refused(void **state)
{
	char text[200] = "", reason[300];

	(void)state;
	refused(":dram=1g-", ':',
		"\"\" is not a name of 1 to 100 bytes without blanks, commas and the delimiter \":\"");
	refused("a b:dram=1g-", ':',
		"\"a b\" is not a name of 1 to 100 bytes without blanks, commas and the delimiter \":\"");
	refused("a\x1b:dram=1g-", ':',
		"\"a\\x1b\" is not a name of 1 to 100 bytes without blanks, commas and the delimiter \":\"");
	refused("a:b:dram=1g-", ':',
		"\"a:b\" is not a name of 1 to 100 bytes without blanks, commas and the delimiter \":\"");
	refused("a/b:dram=1g-", '/',
		"\"a/b\" is not a name of 1 to 100 bytes without blanks, commas and the delimiter \"/\"");
	memset(text, 'n', 101);
	strcat(text, ":write=0");
	snprintf(reason, sizeof(reason),
		 "\"%.64s\" is not a name of 1 to 100 bytes without blanks, commas and the delimiter \":\"", text);
	refused(text, ':', reason);
	accepted(text + 1);
	assert_int_equal(strlen(limits.of[0].name), 100);
}

static void one_application_too_many_is_refused(void **state)
{
	char text[2000] = "";

	(void)state;
	for (unsigned i = 0; i < APP_LIMITS_MOST; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sapp%u:write=%u", i ? "," : "", i, i);
	accepted(text);
	assert_int_equal(limits.count, APP_LIMITS_MOST);
	assert_string_equal(limits.of[63].name, "app63");
	assert_int_equal(limits.of[63].write, 63);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), ",one:write=0");
	refused(text, ':', "one is one application more than the 64 that may have limits");
}

static void floor_and_ceiling_stand_alone_or_together(void **state)
{
	(void)state;
	accepted(NULL);
	assert_int_equal(limits.count, 0);
	accepted("");
	assert_int_equal(limits.count, 0);
	accepted("a:dram=1.5m-,b:dram=-64k,write=5m,c:dram=1G-2GiB,d:write=0,e:write=10MB/s,a:write=7,flash=1t-2t");
	assert_int_equal(limits.count, 5);
	assert_string_equal(limits.of[0].name, "a");
	assert_int_equal(limits.of[0].dram_floor, 3 << 19);
	assert_int_equal(limits.of[0].dram_ceiling, APP_LIMIT_NONE);
	assert_int_equal(limits.of[0].write, 7);
	assert_int_equal(limits.of[0].flash_floor, 1ull << 40);
	assert_int_equal(limits.of[0].flash_ceiling, 2ull << 40);
	assert_int_equal(limits.of[1].flash_floor, 0);
	assert_int_equal(limits.of[1].flash_ceiling, APP_LIMIT_NONE);
	assert_int_equal(limits.of[1].dram_floor, 0);
	assert_int_equal(limits.of[1].dram_ceiling, 64 << 10);
	assert_int_equal(limits.of[1].write, 5 << 20);
	assert_int_equal(limits.of[2].dram_floor, 1ull << 30);
	assert_int_equal(limits.of[2].dram_ceiling, 2ull << 30);
	assert_int_equal(limits.of[2].write, APP_LIMIT_NONE);
	assert_int_equal(limits.of[3].write, 0);
	assert_int_equal(limits.of[4].write, 10 << 20);
	assert_int_equal(app_limits_floors(&limits), (3u << 19) + (1ull << 30));
}

static void a_name_may_have_what_separates_elsewhere(void **state)
{
	(void)state;
	assert_int_equal(app_limits_parse("a:b=c:write=3", '/', &limits, why), FS_OK);
	assert_string_equal(limits.of[0].name, "a:b=c");
	assert_int_equal(limits.of[0].write, 3);
}

static void the_start_refuses_what_can_not_be_held(void **state)
{
	struct loaded loaded;

	(void)state;
	expect_refusal("-m 100 --app-limit a:dram=40m- --app-limit b:dram=36m-", NULL, 64,
		       "--app-limit: the floors of dram are 76.00 MiB together, and may be at most three quarters of "
		       "--memory-limit: 75.00 MiB\n");
	expect_refusal(
		"-M --app-limit a:dram=-40m", NULL, 64,
		"--app-limit: limits on dram choose what is evicted, and -M (--disable-evictions) forbids eviction\n");
	expect_refusal("--app-limit a", NULL, 64,
		       "--app-limit: \"a\" is not NAME:dram=FLOOR-CEILING,flash=FLOOR-CEILING,write=RATE\n");
	expect_refusal("--index=frugal --app-limit a:write=1m", NULL, 64,
		       "--index: frugal: it can't go with --app-limit, as it can't tell how much an application has on "
		       "flash\n");
	expect_refusal("--index=frugal -M", NULL, 64,
		       "--index: frugal: it can't go with -M/--disable-evictions, as it may lose an object\n");
	load(&loaded, "-m 100 --app-limit a:dram=40m- --app-limit a:write=1m,b:dram=35m-", NULL);
	assert_int_equal(loaded.rc, FS_OK);
	assert_string_equal(loaded.conf.app_limit, "a:dram=40m-,a:write=1m,b:dram=35m-");
	unload(&loaded);
	load(&loaded, "-M --app-limit a:write=40m", NULL);
	assert_int_equal(loaded.rc, FS_OK);
	unload(&loaded);
	load(&loaded, "--config @", "app-limit = a:dram=1m-2m,write=1m\napp-limit = b:dram=-2m\n");
	assert_int_equal(loaded.rc, FS_OK);
	assert_string_equal(loaded.conf.app_limit, "a:dram=1m-2m,write=1m,b:dram=-2m");
	unload(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_limit_is_refused),
		cmocka_unit_test(a_number_without_a_dash_is_refused_as_it_may_be_either),
		cmocka_unit_test(a_wrong_rate_is_refused),
		cmocka_unit_test(a_limit_that_is_given_twice_is_refused),
		cmocka_unit_test(names_that_no_key_can_have_are_refused),
		cmocka_unit_test(one_application_too_many_is_refused),
		cmocka_unit_test(floor_and_ceiling_stand_alone_or_together),
		cmocka_unit_test(a_name_may_have_what_separates_elsewhere),
		cmocka_unit_test(the_start_refuses_what_can_not_be_held),
	};

	return cmocka_run_group_tests_name("limits of applications", tests, NULL, NULL);
}
