/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of "stats limits", whatever a server makes of them. */
#include "tests/unit/tools/top/top_test.h"

static struct sample sample;

static int fresh(void **state)
{
	(void)state;
	a_sample(&sample, 1);
	return 0;
}

static void take(const char *name, const char *value)
{
	give(&sample, REPORT_LIMITS, name, value);
}

static void rows_that_are_none(void **state)
{
	static const char *const names[] = { "",
					     ":",
					     "applications",
					     "counted",
					     "dram_bytes",
					     ":dram_bytes",
					     "shop:",
					     "shop:dram_byte",
					     "shop:dram_bytes:",
					     "shop.dram_bytes" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		take(names[i], "5");
	take("shop:dram_bytes", "-5");
	take("shop:dram_bytes", "many");
	take("shop:dram_bytes", "nan");
	take("shop:dram_ceiling", "none");
	assert_int_equal(sample.limited_count, 0);
}

static void more_names_than_there_is_room_for(void **state)
{
	char name[2 * APP_NAME_BYTES];

	(void)state;
	for (unsigned i = 0; i < 2 * LIMITED_MAX; i++) {
		snprintf(name, sizeof(name), "app%u:dram_bytes", i);
		take(name, "1");
	}
	assert_int_equal(sample.limited_count, LIMITED_MAX);
	take("app0:dram_bytes", "2"); /* a known one has room */
	assert_number(sample.limited[0].amount[LIMIT_DRAM], 2);
}

static void a_name_that_is_too_long_is_cut(void **state)
{
	char name[2 * APP_NAME_BYTES + 16];

	(void)state;
	memset(name, 'n', sizeof(name));
	strcpy(name + 2 * APP_NAME_BYTES, ":dram_bytes");
	take(name, "1");
	take(name, "3");
	assert_int_equal(sample.limited_count, 1);
	assert_int_equal(strlen(sample.limited[0].name), APP_NAME_BYTES - 1);
	assert_number(sample.limited[0].amount[LIMIT_DRAM], 3);
}

static void each_amount_is_taken(void **state)
{
	(void)state;
	for (int i = 0; i < LIMIT_AMOUNTS; i++) {
		char name[64], value[16];

		snprintf(name, sizeof(name), "a:b:%s", limit_amount_name((enum limit_amount)i));
		snprintf(value, sizeof(value), "%d", 10 + i);
		take(name, value);
	}
	assert_int_equal(sample.limited_count, 1);
	assert_string_equal(sample.limited[0].name, "a:b");
	for (int i = 0; i < LIMIT_AMOUNTS; i++)
		assert_number(sample.limited[0].amount[i], 10 + i);
	take("c:dram_bytes", "1");
	take("c:dram_floor", "0"); /* is none */
	take("c:flash_floor", "0");
	for (int i = LIMIT_DRAM + 1; i < LIMIT_AMOUNTS; i++)
		assert_true(isnan(sample.limited[1].amount[i]));
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows_that_are_none),
		TEST(more_names_than_there_is_room_for),
		TEST(a_name_that_is_too_long_is_cut),
		TEST(each_amount_is_taken),
	};

	return cmocka_run_group_tests_name("top: limits of applications", tests, NULL, NULL);
}
