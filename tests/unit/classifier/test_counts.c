/* SPDX-License-Identifier: BSD-3-Clause */
/* Aged counts: rounding, ageing, which count a full bucket forgets, and how seldom one key is taken for another. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/resident.h"
#include "classifier/classifier_internal.h"

#define BYTES (64u << 10) /* 1024 buckets, 32 768 keys */
#define KEYS (BYTES / 2)
#define MOST 8192.0 /* the largest count */

static struct counts counts;

static int setup(void **state)
{
	(void)state;
	memset(&counts, 0, sizeof(counts));
	return counts_init(&counts, BYTES);
}

/* A single bucket, which all keys share. */
static int setup_bucket(void **state)
{
	(void)state;
	memset(&counts, 0, sizeof(counts));
	return counts_init(&counts, 64);
}

static int teardown(void **state)
{
	(void)state;
	counts_fini(&counts);
	return 0;
}

static double count_of(uint64_t i)
{
	return counts_get(&counts, mix64(i));
}

/* ---- refusals and strangers ------------------------------------------------------------------- */

static void less_memory_than_a_bucket_is_refused(void **state)
{
	(void)state;
	struct counts none = { 0 };

	assert_int_equal(counts_init(&none, 0), FS_EINVAL);
	assert_int_equal(counts_init(&none, 63), FS_EINVAL);
	counts_fini(&none);
}

static void a_large_table_takes_no_memory_before_its_use(void **state)
{
	const uint64_t bytes = 1ull << 30;
	struct counts large = { 0 };

	(void)state;
	if (!resident_is_exact())
		skip(); /* another allocator */
	assert_int_equal(counts_init(&large, bytes), FS_OK);
	assert_true(resident_untouched(large.bucket, bytes) > bytes - (1 << 20));
	counts_fini(&large);
}

static void an_empty_table_knows_no_key(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		assert_true(count_of(i) == 0);
}

/* 32 fingerprints of 2047 in each full bucket: 1.6 %. */
static void few_strangers_are_taken_for_a_known_key(void **state)
{
	(void)state;
	unsigned taken = 0;

	for (uint64_t i = 0; i < 200000; i++)
		counts_add(&counts, mix64(i), 1);
	for (uint64_t i = 1000000; i < 1100000; i++)
		taken += count_of(i) > 0;
	assert_in_range(taken, 1000, 2000);
}

/* The sampler takes the keys with the lowest hashes; their counts must not crowd into few buckets. */
static void keys_with_low_hashes_have_as_much_room_as_others(void **state)
{
	(void)state;
	unsigned known = 0;

	for (uint64_t key = 0; key < KEYS / 4; key++)
		counts_set(&counts, key, 1);
	for (uint64_t key = 0; key < KEYS / 4; key++)
		known += counts_get(&counts, key) > 0;
	assert_true(known > KEYS / 4 * 99 / 100);
}

/* ---- rounding ----------------------------------------------------------------------------------- */

static void a_count_comes_back_within_a_step(void **state)
{
	(void)state;
	for (double count = 0.25; count < MOST; count *= 1.03) {
		counts_set(&counts, 5, count);
		double got = counts_get(&counts, 5);
		assert_true(got >= count / M_SQRT2 * 0.999 && got <= count * M_SQRT2 * 1.001);
	}
}

static void powers_of_the_step_come_back_exactly(void **state)
{
	(void)state;
	for (int i = 0; i <= 15; i++) {
		counts_set(&counts, 5, exp2(i - 2));
		assert_true(counts_get(&counts, 5) == exp2(i - 2));
	}
}

static void a_count_beyond_the_largest_stays_there(void **state)
{
	(void)state;
	counts_set(&counts, 5, 1e12);
	assert_true(counts_get(&counts, 5) == MOST);
	counts_add(&counts, 5, 1e12);
	assert_true(counts_get(&counts, 5) == MOST);
}

static void the_mean_of_many_roundings_is_right(void **state)
{
	(void)state;
	static const double tried[] = { 0.3, 1.2, 3, 5, 100, 777 };
	const unsigned times = 20000;

	for (unsigned t = 0; t < sizeof(tried) / sizeof(tried[0]); t++) {
		double sum = 0;

		for (unsigned i = 0; i < times; i++) {
			counts_set(&counts, 5, tried[t]);
			sum += counts_get(&counts, 5);
		}
		assert_true(fabs(sum / times / tried[t] - 1) < 0.01);
	}
}

/* Each add is rounded anew; the errors must not pile up. */
static void the_mean_of_many_rounded_adds_is_right(void **state)
{
	(void)state;
	const unsigned keys = 2000, adds = 50;
	double sum = 0;

	for (unsigned i = 0; i < adds; i++)
		for (uint64_t key = 0; key < keys; key++)
			counts_add(&counts, mix64(key), 1);
	for (uint64_t key = 0; key < keys; key++)
		sum += count_of(key);
	assert_true(fabs(sum / keys / adds - 1) < 0.05);
}

/* ---- forgetting ----------------------------------------------------------------------------------- */

static void a_key_set_to_nothing_is_forgotten(void **state)
{
	(void)state;
	counts_set(&counts, 5, 8);
	counts_set(&counts, 5, 0.1);
	assert_true(counts_get(&counts, 5) == 0);
	counts_set(&counts, 5, 8);
	counts_set(&counts, 5, 0);
	assert_true(counts_get(&counts, 5) == 0);
}

/* The keys of different fingerprints among the first, so that each has an entry of its own. */
static unsigned fill_bucket(uint64_t keys[COUNTS_ENTRIES], double count)
{
	unsigned n = 0;

	for (uint64_t i = 0; n < COUNTS_ENTRIES; i++)
		if (count_of(i) <= 0) {
			keys[n++] = mix64(i);
			counts_set(&counts, mix64(i), count);
		}
	return n;
}

static uint64_t stranger(uint64_t from)
{
	while (count_of(from) > 0)
		from++;
	return mix64(from);
}

static void a_full_bucket_forgets_the_key_that_was_seen_least(void **state)
{
	(void)state;
	uint64_t keys[COUNTS_ENTRIES], new = 0;

	fill_bucket(keys, 4);
	counts_set(&counts, keys[17], 2);
	new = stranger(1000);
	counts_add(&counts, new, 1);
	assert_true(counts_get(&counts, new) == 1);
	assert_true(counts_get(&counts, keys[17]) == 0);
	for (unsigned i = 0; i < COUNTS_ENTRIES; i++)
		assert_true(i == 17 || counts_get(&counts, keys[i]) == 4);
}

/* A scan of keys that are seen once must not cost a key that is seen often its count. */
static void keys_seen_once_push_each_other_out(void **state)
{
	(void)state;
	uint64_t keys[COUNTS_ENTRIES], last = 0;

	fill_bucket(keys, 1);
	for (unsigned i = 0; i < COUNTS_ENTRIES - 1; i++)
		counts_set(&counts, keys[i], 8);
	for (unsigned i = 0; i < 1000; i++) {
		last = stranger(10000 + 100 * i);
		counts_add(&counts, last, 1);
		assert_true(counts_get(&counts, last) == 1);
	}
	for (unsigned i = 0; i < COUNTS_ENTRIES - 1; i++)
		assert_true(counts_get(&counts, keys[i]) == 8);
}

static void among_equal_counts_the_one_changed_longest_ago_goes(void **state)
{
	(void)state;
	uint64_t keys[COUNTS_ENTRIES];

	fill_bucket(keys, 1);
	counts_set(&counts, keys[0], 1); /* changed again: keys[1] is the oldest now */
	counts_add(&counts, stranger(1000), 1);
	assert_true(counts_get(&counts, keys[0]) == 1);
	assert_true(counts_get(&counts, keys[1]) == 0);
	assert_true(counts_get(&counts, keys[2]) == 1);
}

static void a_count_of_nothing_takes_no_other_keys_place(void **state)
{
	(void)state;
	uint64_t keys[COUNTS_ENTRIES];

	fill_bucket(keys, 1);
	counts_set(&counts, stranger(1000), 0);
	counts_add(&counts, stranger(1000), 0.05);
	for (unsigned i = 0; i < COUNTS_ENTRIES; i++)
		assert_true(counts_get(&counts, keys[i]) == 1);
}

/* ---- ageing ----------------------------------------------------------------------------------------- */

static void counts_halve_in_a_half_life_and_are_forgotten_in_the_end(void **state)
{
	(void)state;
	for (uint64_t key = 0; key < 1000; key++)
		counts_set(&counts, mix64(key), 64);
	for (double expected = 32; expected >= 0.25; expected /= 2) {
		counts_age(&counts, 1);
		for (uint64_t key = 0; key < 1000; key++)
			assert_true(count_of(key) <= 0 || fabs(count_of(key) - expected) < 1e-9);
	}
	assert_true(count_of(999) > 0);
	counts_age(&counts, 1);
	for (uint64_t key = 0; key < 1000; key++)
		assert_true(count_of(key) == 0);
}

/* A tick of a second is a small part of a half-life: the parts add up, and each bucket has its turn. */
static void small_parts_of_a_half_life_add_up(void **state)
{
	(void)state;
	double sum = 0;

	for (uint64_t key = 0; key < 2000; key++)
		counts_set(&counts, mix64(key), 64);
	for (unsigned i = 0; i < 1000; i++)
		counts_age(&counts, 0.0005);
	for (uint64_t key = 0; key < 2000; key++)
		sum += count_of(key);
	assert_true(fabs(sum / 2000 / 64 - M_SQRT1_2) < 0.01);
}

static void ageing_by_nothing_changes_nothing_and_by_ages_forgets_all(void **state)
{
	(void)state;
	counts_set(&counts, 5, MOST);
	counts_age(&counts, 0);
	assert_true(counts_get(&counts, 5) == MOST);
	counts_age(&counts, 1e30);
	assert_true(counts_get(&counts, 5) == 0);
}

/* ---- threads ------------------------------------------------------------------------------------------ */

static void *add_and_read(void *argument)
{
	uint64_t first = (uint64_t)(uintptr_t)argument;

	for (unsigned turn = 0; turn < 20; turn++)
		for (uint64_t key = 0; key < 500; key++) {
			counts_add(&counts, mix64(key), 1);
			counts_set(&counts, mix64(1000 * (first + 1) + key), 4);
			assert_true(counts_get(&counts, mix64(key)) > 0);
		}
	return NULL;
}

static void threads_lose_no_adds(void **state)
{
	(void)state;
	pthread_t thread[3];
	double sum = 0;

	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_and_read, (void *)i), 0);
	for (unsigned i = 0; i < 100; i++)
		counts_age(&counts, 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (uint64_t key = 0; key < 500; key++)
		sum += count_of(key);
	assert_true(fabs(sum / 500 / 60 - 1) < 0.1);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define BUCKET(test) cmocka_unit_test_setup_teardown(test, setup_bucket, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(less_memory_than_a_bucket_is_refused),
		cmocka_unit_test(a_large_table_takes_no_memory_before_its_use),
		TEST(an_empty_table_knows_no_key),
		TEST(few_strangers_are_taken_for_a_known_key),
		TEST(keys_with_low_hashes_have_as_much_room_as_others),
		TEST(a_count_comes_back_within_a_step),
		TEST(powers_of_the_step_come_back_exactly),
		TEST(a_count_beyond_the_largest_stays_there),
		TEST(the_mean_of_many_roundings_is_right),
		TEST(the_mean_of_many_rounded_adds_is_right),
		TEST(a_key_set_to_nothing_is_forgotten),
		BUCKET(a_full_bucket_forgets_the_key_that_was_seen_least),
		BUCKET(keys_seen_once_push_each_other_out),
		BUCKET(among_equal_counts_the_one_changed_longest_ago_goes),
		BUCKET(a_count_of_nothing_takes_no_other_keys_place),
		TEST(counts_halve_in_a_half_life_and_are_forgotten_in_the_end),
		TEST(small_parts_of_a_half_life_add_up),
		TEST(ageing_by_nothing_changes_nothing_and_by_ages_forgets_all),
		TEST(threads_lose_no_adds),
	};

	return cmocka_run_group_tests_name("counts", tests, NULL, NULL);
}
