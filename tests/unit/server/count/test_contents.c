/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in there, by samples: buckets, applications, and how samples lose their weight. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/count/contents.h"
#include "server/store/store.h"

#define NOW_MS 5000u

static int begin(void **state)
{
	(void)state;
	contents_init(':', NOW_MS);
	return 0;
}

static int end(void **state)
{
	(void)state;
	contents_fini();
	return 0;
}

static struct store_sampled object_of(const char *key)
{
	return (struct store_sampled){
		.key = key, .key_length = (uint8_t)strlen(key), .value_length = 100, .bytes = 150, .weight = 1
	};
}

static void note(const char *key, bool flash, double weight)
{
	struct store_sampled object = object_of(key);

	object.from_flash = flash;
	object.weight = weight;
	contents_note(NULL, &object);
}

static struct contents_part all_of(enum contents_tier tier)
{
	struct contents_part all[CONTENTS_TIERS];

	contents_read_all(all);
	return all[tier];
}

/* The bucket of the only object; its name, or "" if it is in none. */
static const char *bucket_of(enum contents_measure measure)
{
	struct contents_part all = all_of(CONTENTS_DRAM);
	const char *found = "", *name;

	for (unsigned i = 0; (name = contents_bucket_name(measure, i)) != NULL; i++) {
		if (!(all.bucket[measure][i] > 0))
			continue;
		assert_string_equal(found, "");
		assert_true(all.bucket[measure][i] == 1);
		found = name;
	}
	return found;
}

/* ---- nothing ------------------------------------------------------------------------------------ */

static void before_and_after(void **state)
{
	struct contents_app app;

	(void)state;
	note("a:b", false, 1); /* not begun: without effect */
	assert_false(contents_read(0, &app));
	contents_tick(1);
	begin(NULL);
	assert_true(contents_read(0, &app));
	assert_int_equal(app.name_length, 0);
	assert_true(app.part[CONTENTS_DRAM].samples == 0);
	assert_false(contents_read(1, &app));
	note("a:b", false, 1);
	assert_true(contents_read(1, &app));
	end(NULL);
	assert_false(contents_read(0, &app));
	begin(NULL);
	assert_false(contents_read(1, &app));
	assert_true(all_of(CONTENTS_DRAM).samples == 0);
	end(NULL);
}

/* ---- buckets ------------------------------------------------------------------------------------ */

static void values_at_the_bounds(void **state)
{
	static const struct {
		enum contents_measure measure;
		uint32_t value;
		const char *name;
	} cases[] = {
		{ CONTENTS_SIZE, 0, "64" },
		{ CONTENTS_SIZE, 64, "64" },
		{ CONTENTS_SIZE, 65, "128" },
		{ CONTENTS_SIZE, 1u << 20, "1m" },
		{ CONTENTS_SIZE, (1u << 20) + 1, "more" },
		{ CONTENTS_SIZE, UINT32_MAX, "more" },
		{ CONTENTS_AGE, 0, "10s" },
		{ CONTENTS_AGE, 10, "10s" },
		{ CONTENTS_AGE, 11, "1m" },
		{ CONTENTS_AGE, 7 * 86400, "7d" },
		{ CONTENTS_AGE, UINT32_MAX, "more" },
		{ CONTENTS_TTL, 1, "10s" },
		{ CONTENTS_TTL, 3601, "6h" },
		{ CONTENTS_IDLE, 59, "1m" },
		{ CONTENTS_IDLE, 86401, "7d" },
		{ CONTENTS_IDLE, UINT32_MAX, "more" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store_sampled object = object_of("k");

		begin(NULL);
		object.expires = true;
		object.ttl_seconds = 1;
		if (cases[i].measure == CONTENTS_SIZE)
			object.value_length = cases[i].value;
		else if (cases[i].measure == CONTENTS_AGE)
			object.age_seconds = cases[i].value;
		else if (cases[i].measure == CONTENTS_TTL)
			object.ttl_seconds = cases[i].value;
		else
			object.idle_seconds = cases[i].value;
		contents_note(NULL, &object);
		assert_string_equal(bucket_of(cases[i].measure), cases[i].name);
		end(NULL);
	}
}

static void objects_beyond_the_bounds(void **state)
{
	struct store_sampled object = object_of("k");

	(void)state;
	object.from_earlier = true;
	object.age_seconds = 5;
	contents_note(NULL, &object);
	assert_string_equal(bucket_of(CONTENTS_AGE), "earlier");
	assert_string_equal(bucket_of(CONTENTS_TTL), "never");
	assert_null(contents_bucket_name(CONTENTS_IDLE, CONTENTS_BUCKETS));
}

/* The time of the last access isn't known of an object that was read on flash. */
static void objects_that_were_read_on_flash(void **state)
{
	struct store_sampled object = object_of("k");
	struct contents_part flash;
	double idle = 0;

	(void)state;
	object.from_flash = true;
	contents_note(NULL, &object);
	object.read_on_flash = true;
	object.weight = 3;
	contents_note(NULL, &object);
	flash = all_of(CONTENTS_FLASH);
	for (unsigned i = 0; i < CONTENTS_BUCKETS; i++)
		idle += flash.bucket[CONTENTS_IDLE][i];
	assert_true(idle == 1);
	assert_true(flash.read_on_flash == 3);
	assert_true(flash.objects == 4);
	assert_true(flash.samples == 2);
	assert_true(all_of(CONTENTS_DRAM).samples == 0);
}

/* ---- applications -------------------------------------------------------------------------------- */

static const struct contents_app *app_named(const char *name)
{
	static struct contents_app app;

	for (unsigned i = 0; contents_read(i, &app); i++)
		if (app.name_length == strlen(name) && memcmp(app.name, name, app.name_length) == 0)
			return &app;
	return NULL;
}

static void applications_are_apart(void **state)
{
	(void)state;
	note("shop:1", false, 2);
	note("shop:2", true, 3);
	note("feed:1", false, 5);
	note("no-delimiter", false, 7);
	note(":empty", false, 11);
	assert_true(app_named("shop")->part[CONTENTS_DRAM].objects == 2);
	assert_true(app_named("shop")->part[CONTENTS_FLASH].objects == 3);
	assert_true(app_named("feed")->part[CONTENTS_DRAM].bytes == 5 * 150);
	assert_true(app_named("feed")->part[CONTENTS_DRAM].value_bytes == 5 * 100);
	assert_true(app_named("")->part[CONTENTS_DRAM].objects == 18);
	assert_true(all_of(CONTENTS_DRAM).objects == 25);
}

static void further_applications_share_one(void **state)
{
	char key[32];

	(void)state;
	for (unsigned i = 0; i < CONTENTS_APPS + 10; i++) {
		snprintf(key, sizeof(key), "app%u:k", i);
		note(key, false, 1);
	}
	assert_non_null(app_named("app0"));
	assert_null(app_named("app70"));
	assert_true(app_named("")->part[CONTENTS_DRAM].objects == 10);
}

/* ---- time ---------------------------------------------------------------------------------------- */

static void old_samples_count_less(void **state)
{
	struct contents_part dram, flash;

	(void)state;
	note("a:1", false, 8);
	note("a:1", true, 8);
	contents_tick(NOW_MS); /* no time has passed */
	assert_true(all_of(CONTENTS_DRAM).objects == 8);
	contents_tick(NOW_MS + 60000);
	dram = all_of(CONTENTS_DRAM);
	flash = all_of(CONTENTS_FLASH);
	assert_true(fabs(dram.objects - 4) < 1e-9 && fabs(dram.samples - 0.5) < 1e-9);
	assert_true(fabs(dram.bytes - 4 * 150) < 1e-9 && fabs(dram.bucket[CONTENTS_SIZE][1] - 4) < 1e-9);
	assert_true(flash.objects > 7.4 && flash.objects < 7.5);
	contents_tick(1000); /* a time of long ago changes nothing */
	assert_true(fabs(all_of(CONTENTS_DRAM).objects - 4) < 1e-9);
	contents_tick(NOW_MS + 600000);
	assert_true(fabs(all_of(CONTENTS_FLASH).objects - 4) < 1e-9);
}

static void *note_many(void *context)
{
	char key[32];

	for (unsigned i = 0; i < 20000; i++) {
		snprintf(key, sizeof(key), "app%u:k", i % 70);
		note(key, context != NULL, 1);
	}
	return NULL;
}

static void threads_together(void **state)
{
	struct contents_app app;
	pthread_t threads[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, note_many, i ? &threads : NULL), 0);
	for (unsigned round = 0; round < 100; round++)
		for (unsigned i = 0; contents_read(i, &app); i++)
			assert_true(app.part[CONTENTS_DRAM].objects == app.part[CONTENTS_DRAM].samples);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(all_of(CONTENTS_DRAM).objects == 20000);
	assert_true(all_of(CONTENTS_FLASH).objects == 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_and_after),
		cmocka_unit_test(values_at_the_bounds),
		cmocka_unit_test_setup_teardown(objects_beyond_the_bounds, begin, end),
		cmocka_unit_test_setup_teardown(objects_that_were_read_on_flash, begin, end),
		cmocka_unit_test_setup_teardown(applications_are_apart, begin, end),
		cmocka_unit_test_setup_teardown(further_applications_share_one, begin, end),
		cmocka_unit_test_setup_teardown(old_samples_count_less, begin, end),
		cmocka_unit_test_setup_teardown(threads_together, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
