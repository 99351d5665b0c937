/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of "stats contents", whatever a server makes of them. */
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
	give(&sample, REPORT_CONTENTS, name, value);
}

static void rows_that_are_none(void **state)
{
	static const char *const names[] = { "",
					     ":",
					     "::",
					     "dram",
					     "dram:objects",
					     ":dram:objects",
					     "shop:objects",
					     "shop::objects",
					     "shop:dram:",
					     "shop:dram:samples",
					     "shop:disk:objects",
					     "shop:dramx:objects",
					     "shop:ram:objects" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		take(names[i], "5");
	take("shop:dram:objects", "-5");
	take("shop:dram:objects", "many");
	take("shop:dram:size", "64=5"); /* of an application alone */
	assert_int_equal(sample.content_count, 0);
	for (int tier = 0; tier < TIERS; tier++)
		for (int measure = 0; measure < CONTENT_MEASURES; measure++)
			assert_int_equal(sample.histograms[tier][measure].count, 0);
}

static void histograms_that_are_damaged(void **state)
{
	const struct histogram *histogram = &sample.histograms[TIER_FLASH][CONTENT_AGE];
	char many[400] = "";

	(void)state;
	take("(all):flash:age", "");
	assert_int_equal(histogram->count, 0);
	take("(all):flash:age",
	     "10s= =5 10s 1m=x 1h=-1 a-name-that-is-too-long=1 6h=1111111111111111111111111111111111111 = 1d=7");
	assert_int_equal(histogram->count, 1);
	assert_string_equal(histogram->bucket[0].name, "1d");
	assert_number(histogram->bucket[0].objects, 7);
	for (unsigned i = 0; i < 2 * CONTENT_BUCKETS; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "%us=1 ", i);
	take("(all):flash:age", many);
	assert_int_equal(histogram->count, CONTENT_BUCKETS);
}

static void further_applications_than_there_is_room_for(void **state)
{
	char name[200];

	(void)state;
	for (unsigned i = 0; i < 2 * APPS_MAX; i++) {
		snprintf(name, sizeof(name), "app%u:dram:objects", i);
		take(name, "1");
	}
	assert_int_equal(sample.content_count, APPS_MAX);
	fresh(NULL);
	snprintf(name, sizeof(name), "%0*d:flash:bytes", 2 * APP_NAME_BYTES, 7);
	take(name, "1");
	take(name, "2");
	assert_int_equal(sample.content_count, 1);
	assert_int_equal(strlen(sample.contents[0].name), APP_NAME_BYTES - 1);
	assert_number(sample.contents[0].amount[TIER_FLASH][CONTENT_BYTES], 2);
}

static void amounts_and_buckets(void **state)
{
	const struct content *all = &sample.contents[0], *app = &sample.contents[1];
	const struct histogram *sizes = &sample.histograms[TIER_DRAM][CONTENT_SIZE];

	(void)state;
	take("(all):dram:objects", "300");
	take("(all):dram:size", "64=100 128=200 more=0");
	take("(all):dram:idle", "10s=300");
	take("with:colon:flash:value_bytes", "4000");
	take("with:colon:flash:bytes", "5000");
	assert_int_equal(sample.content_count, 2);
	assert_string_equal(all->name, CONTENT_ALL);
	assert_number(all->amount[TIER_DRAM][CONTENT_OBJECTS], 300);
	assert_unknown(all->amount[TIER_FLASH][CONTENT_OBJECTS]);
	assert_string_equal(app->name, "with:colon");
	assert_number(app->amount[TIER_FLASH][CONTENT_VALUE_BYTES], 4000);
	assert_number(app->amount[TIER_FLASH][CONTENT_BYTES], 5000);
	assert_unknown(app->amount[TIER_FLASH][CONTENT_OBJECTS]);
	assert_int_equal(sizes->count, 3);
	assert_string_equal(sizes->bucket[2].name, "more");
	assert_number(sizes->bucket[1].objects, 200);
	assert_number(sample.histograms[TIER_DRAM][CONTENT_IDLE].bucket[0].objects, 300);
	assert_int_equal(sample.histograms[TIER_DRAM][CONTENT_TTL].count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rows_that_are_none, fresh),
		cmocka_unit_test_setup(histograms_that_are_damaged, fresh),
		cmocka_unit_test_setup(further_applications_than_there_is_room_for, fresh),
		cmocka_unit_test_setup(amounts_and_buckets, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
