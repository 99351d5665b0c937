/* SPDX-License-Identifier: BSD-3-Clause */
/* Durations: recorded by any thread, none lost with its end; a reset hides what was before, but not from who reads all. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics/latency.h"

#define THREADS 4
#define ROUNDS 10000

static struct hist *read_all(enum lat latency)
{
	struct hist *hist = hist_create();

	lat_read(latency, hist);
	return hist;
}

static struct hist *read_since_reset(enum lat latency)
{
	struct hist *hist = hist_create();

	lat_read_since_reset(latency, hist);
	return hist;
}

static void nothing_is_there_at_first(void **state)
{
	(void)state;
	for (int latency = 0; latency < LAT_COUNT; latency++) {
		struct hist *hist = read_all((enum lat)latency);

		assert_int_equal(hist->count, 0);
		assert_int_equal(hist_quantile(hist, 1), 0);
		hist_destroy(hist);
	}
}

static void none_of_a_duration_is_none(void **state)
{
	struct hist *hist;

	(void)state;
	lat_record(LAT_flash_hit, 77, 0);
	hist = read_all(LAT_flash_hit);
	assert_int_equal(hist->count, 0);
	assert_int_equal(hist->max, 0);
	hist_destroy(hist);
}

static void *record(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < ROUNDS; i++)
		lat_record(LAT_set, 1000 + i, 3);
	return NULL;
}

static void *record_and_read(void *unused)
{
	struct hist *hist = hist_create();
	uint64_t before = 0;

	(void)unused;
	for (unsigned i = 0; i < 200; i++) {
		hist_reset(hist);
		lat_read(LAT_set, hist);
		assert_true(hist->count >= before);
		before = hist->count;
		lat_record(LAT_miss, i, 1);
	}
	hist_destroy(hist);
	return NULL;
}

static void durations_of_ended_threads_stay(void **state)
{
	pthread_t threads[THREADS + 1];
	struct hist *hist;

	(void)state;
	for (int i = 0; i <= THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i < THREADS ? record : record_and_read, NULL), 0);
	for (int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	hist = read_all(LAT_set);
	assert_int_equal(hist->count, 3 * THREADS * ROUNDS);
	assert_int_equal(hist->sum, 3 * THREADS * (1000ull * ROUNDS + ROUNDS * (ROUNDS - 1ull) / 2));
	assert_int_equal(hist->max, 1000 + ROUNDS - 1);
	hist_destroy(hist);
	hist = read_all(LAT_miss);
	assert_int_equal(hist->count, 200);
	hist_destroy(hist);
}

static void a_reset_is_a_new_zero_but_for_all(void **state)
{
	struct hist *all, *since;

	(void)state;
	lat_record(LAT_dram_hit, 1000000, 10);
	lat_reset();
	since = read_since_reset(LAT_dram_hit);
	assert_int_equal(since->count, 0);
	assert_int_equal(hist_quantile(since, 1), 0);
	assert_true(hist_mean(since) == 0);
	hist_destroy(since);
	lat_record(LAT_dram_hit, 50, 4);
	lat_record(LAT_dram_hit, 40, 1);
	all = read_all(LAT_dram_hit);
	since = read_since_reset(LAT_dram_hit);
	assert_int_equal(all->count, 15);
	assert_int_equal(hist_quantile(all, 1), 1000000);
	assert_int_equal(since->count, 5);
	assert_int_equal(since->sum, 240);
	assert_int_equal(hist_quantile(since, 1), 50);
	assert_int_equal(hist_quantile(since, 0.1), 40);
	lat_reset(); /* a second one replaces the first, it adds nothing to it */
	hist_reset(since);
	lat_read_since_reset(LAT_dram_hit, since);
	assert_int_equal(since->count, 0);
	hist_destroy(since);
	hist_destroy(all);
}

static void each_is_described_once(void **state)
{
	(void)state;
	for (int i = 0; i < LAT_COUNT; i++) {
		const struct lat_info *info = lat_info((enum lat)i);

		assert_true(info->name[0] && info->label[0] && info->text[0]);
		assert_int_equal(metric_info(info->metric)->type, METRIC_TYPE_HISTOGRAM);
		assert_null(
			strchr(metric_info(info->metric)->labels, ',')); /* it has one label, and this is its value */
		assert_true(metric_info(info->metric)->labels[0]);
		for (int j = 0; j < i; j++) {
			const struct lat_info *other = lat_info((enum lat)j);

			assert_string_not_equal(info->name, other->name);
			assert_false(info->metric == other->metric && strcmp(info->label, other->label) == 0);
		}
	}
}

static void bounds_ascend(void **state)
{
	(void)state;
	assert_int_equal(lat_bounds_ns[0], 1000);
	assert_int_equal(lat_bounds_ns[1], 2500);
	assert_int_equal(lat_bounds_ns[LAT_BOUNDS - 1], 10000000000);
	for (unsigned i = 1; i < LAT_BOUNDS; i++)
		assert_true(lat_bounds_ns[i] >= 2 * lat_bounds_ns[i - 1] &&
			    2 * lat_bounds_ns[i] <= 5 * lat_bounds_ns[i - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_there_at_first),       cmocka_unit_test(none_of_a_duration_is_none),
		cmocka_unit_test(durations_of_ended_threads_stay), cmocka_unit_test(a_reset_is_a_new_zero_but_for_all),
		cmocka_unit_test(each_is_described_once),          cmocka_unit_test(bounds_ascend),
	};

	return cmocka_run_group_tests_name("latency", tests, NULL, NULL);
}
