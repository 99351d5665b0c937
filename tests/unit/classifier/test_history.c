/* SPDX-License-Identifier: BSD-3-Clause */
/* The history: unknown keys, aging, counts, bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "classifier/classifier_internal.h"

#define BYTES (64u << 10) /* 1024 buckets, 32 768 keys */

static struct history history;

static int setup(void **state)
{
	(void)state;
	memset(&history, 0, sizeof(history));
	return history_init(&history, BYTES);
}

static int teardown(void **state)
{
	(void)state;
	history_fini(&history);
	return 0;
}

static unsigned stays(uint64_t i, bool *recent)
{
	return history_stays(&history, mix64(i), recent);
}

static void no_memory_is_refused(void **state)
{
	(void)state;
	struct history none = { 0 };

	assert_int_equal(history_init(&none, 63), FS_EINVAL);
	history_fini(&none);
}

static void an_empty_list_knows_nobody(void **state)
{
	(void)state;
	bool recent;

	for (uint64_t i = 0; i < 100000; i++)
		assert_int_equal(stays(i, &recent), 0);
}

static void few_strangers_are_taken_for_known(void **state)
{
	(void)state;
	bool recent;
	unsigned taken = 0;

	for (uint64_t i = 0; i < 200000; i++)
		history_add(&history, mix64(i));
	for (uint64_t i = 1000000; i < 1100000; i++)
		taken += stays(i, &recent) > 0;
	assert_true(taken < 1000); /* 0.8 % expected of 100 000 */
}

static void stays_are_counted_up_to_15(void **state)
{
	(void)state;
	bool recent;

	for (unsigned n = 1; n <= 20; n++) {
		history_add(&history, mix64(5));
		assert_int_equal(stays(5, &recent), n < 15 ? n : 15);
		assert_true(recent);
	}
}

static void old_keys_age_and_are_forgotten(void **state)
{
	(void)state;
	const uint64_t keys = 1024 * 32;
	unsigned known = 0, young = 0;
	bool recent;

	for (uint64_t i = 0; i < 4 * keys; i++)
		history_add(&history, mix64(i));
	for (uint64_t i = 4 * keys - keys / 4; i < 4 * keys; i++) {
		known += stays(i, &recent) > 0;
		young += recent;
	}
	assert_true(known > keys / 4 * 99 / 100);
	assert_true(young > keys / 4 * 95 / 100);
	known = 0;
	for (uint64_t i = 0; i < keys; i++)
		known += stays(i, &recent) > 0;
	assert_true(known < keys / 50);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_memory_is_refused),  TEST(an_empty_list_knows_nobody),
		TEST(few_strangers_are_taken_for_known), TEST(stays_are_counted_up_to_15),
		TEST(old_keys_age_and_are_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
