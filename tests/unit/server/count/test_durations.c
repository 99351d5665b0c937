/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker records of its batches: as many as its thread has counted, each with the duration of its batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics/counters.h"
#include "server/count/durations.h"
#include "server/store/store.h"

static struct clk clock_;
static struct store *store;
static struct store_worker *worker;
static struct durations durations;
static struct hist *seen[LAT_COUNT]; /* what was recorded before */

static int begin(void **state)
{
	struct store_config config;
	char reason[256];

	(void)state;
	clk_scripted_init(&clock_, 1000000);
	store_config_init(&config);
	config.clock = &clock_;
	if (store_open(&store, &config, reason) != FS_OK || store_worker_create(&worker, store) != FS_OK)
		return -1;
	durations = (struct durations){ .since_ns = store_worker_turn(worker) };
	durations_done(&durations, worker, durations.since_ns);
	durations_sent(&durations, worker); /* what the thread counted in other tests */
	durations.since_ns = store_worker_turn(worker);
	for (int i = 0; i < LAT_COUNT; i++) {
		seen[i] = hist_create();
		lat_read((enum lat)i, seen[i]);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	store_worker_destroy(worker);
	store_close(store);
	for (int i = 0; i < LAT_COUNT; i++)
		hist_destroy(seen[i]);
	return 0;
}

/* Since begin: so many of them, and how long they took together. */
static void assert_recorded(enum lat kind, uint64_t count, uint64_t sum_us)
{
	struct hist *hist = hist_create();

	lat_read(kind, hist);
	hist_subtract(hist, seen[kind]);
	assert_int_equal(hist->count, count);
	assert_int_equal(hist->sum, sum_us * 1000);
	hist_destroy(hist);
}

static void nothing_was_counted(void **state)
{
	(void)state;
	clk_scripted_advance(&clock_, 5);
	durations_sent(&durations, worker);
	for (int i = 0; i < LAT_COUNT; i++)
		assert_recorded((enum lat)i, 0, 0);
}

/* Commands that have no histogram leave none, and don't end a batch. */
static void others_are_not_recorded(void **state)
{
	(void)state;
	ctr_add(CTR_delete_hits, 3);
	ctr_add(CTR_touch_hits, 3);
	clk_scripted_advance(&clock_, 5);
	durations_sent(&durations, worker);
	durations_done(&durations, worker, durations.since_ns);
	ctr_add(CTR_dram_hits, 1);
	clk_scripted_advance(&clock_, 2);
	durations_sent(&durations, worker);
	assert_recorded(LAT_dram_hit, 1, 7);
	assert_recorded(LAT_miss, 0, 0);
	assert_recorded(LAT_set, 0, 0);
}

static void a_batch_has_one_duration(void **state)
{
	(void)state;
	ctr_add(CTR_dram_hits, 3);
	ctr_add(CTR_get_misses, 2);
	ctr_add(CTR_cmd_set, 1);
	clk_scripted_advance(&clock_, 10);
	durations_sent(&durations, worker);
	assert_recorded(LAT_dram_hit, 3, 30);
	assert_recorded(LAT_miss, 2, 20);
	assert_recorded(LAT_set, 1, 10);
	assert_recorded(LAT_flash_hit, 0, 0);
}

/* Of one turn: the second begins when the first was sent. */
static void a_second_batch_begins_later(void **state)
{
	(void)state;
	ctr_add(CTR_dram_hits, 1);
	clk_scripted_advance(&clock_, 100);
	durations_sent(&durations, worker);
	ctr_add(CTR_dram_hits, 1);
	clk_scripted_advance(&clock_, 3);
	durations_sent(&durations, worker);
	assert_recorded(LAT_dram_hit, 2, 103);
	durations_sent(&durations, worker); /* all is recorded by now */
	assert_recorded(LAT_dram_hit, 2, 103);
}

/* What waited for the flash counts from its own turn, and not once more among the turn's in which it was done. */
static void late_ones_are_recorded_each(void **state)
{
	uint64_t since_ns = durations.since_ns;

	(void)state;
	clk_scripted_advance(&clock_, 500);
	durations.since_ns = store_worker_turn(worker);
	ctr_add(CTR_flash_hits, 1);
	durations_done(&durations, worker, since_ns);
	ctr_add(CTR_get_misses, 1);
	durations_done(&durations, worker, since_ns + 100000);
	ctr_add(CTR_cmd_set, 1);
	durations_done(&durations, worker, since_ns + 200000);
	ctr_add(CTR_dram_hits, 1); /* a get that found in DRAM what was set meanwhile */
	durations_done(&durations, worker, since_ns + 300000);
	assert_recorded(LAT_flash_hit, 0, 0); /* they are not sent yet */
	ctr_add(CTR_dram_hits, 2);
	clk_scripted_advance(&clock_, 20);
	durations_sent(&durations, worker);
	assert_recorded(LAT_flash_hit, 1, 520);
	assert_recorded(LAT_miss, 1, 420);
	assert_recorded(LAT_set, 1, 320);
	assert_recorded(LAT_dram_hit, 3, 220 + 2 * 20);
}

/* One command may count several: it is recorded once, as what took longest. */
static void a_late_one_of_several_kinds_is_recorded_as_one(void **state)
{
	uint64_t since_ns = durations.since_ns;

	(void)state;
	clk_scripted_advance(&clock_, 10);
	ctr_add(CTR_dram_hits, 1);
	ctr_add(CTR_get_misses, 1);
	durations_done(&durations, worker, since_ns);
	ctr_add(CTR_get_misses, 1);
	ctr_add(CTR_cmd_set, 1);
	durations_done(&durations, worker, since_ns);
	ctr_add(CTR_cmd_set, 1);
	ctr_add(CTR_flash_hits, 1);
	durations_done(&durations, worker, since_ns);
	durations_sent(&durations, worker);
	assert_recorded(LAT_dram_hit, 1, 10);
	assert_recorded(LAT_miss, 1, 10);
	assert_recorded(LAT_set, 0, 0);
	assert_recorded(LAT_flash_hit, 1, 10);
}

/* More than there is room for, with nothing else in the turn. */
static void many_late_ones(void **state)
{
	uint64_t since_ns = durations.since_ns;

	(void)state;
	for (unsigned i = 0; i < 3 * DURATIONS_LATE + 5; i++) {
		ctr_add(CTR_flash_hits, 1);
		clk_scripted_advance(&clock_, 1);
		durations_done(&durations, worker, since_ns);
	}
	durations_sent(&durations, worker);
	durations_sent(&durations, worker);
	struct hist *hist = hist_create();
	lat_read(LAT_flash_hit, hist);
	hist_subtract(hist, seen[LAT_flash_hit]);
	assert_int_equal(hist->count, 3 * DURATIONS_LATE + 5);
	assert_true(hist_quantile(hist, 0) >= DURATIONS_LATE * 1000);
	assert_true(hist_quantile(hist, 1) >= (3 * DURATIONS_LATE + 5) * 1000);
	hist_destroy(hist);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_was_counted, begin, end),
		cmocka_unit_test_setup_teardown(others_are_not_recorded, begin, end),
		cmocka_unit_test_setup_teardown(a_batch_has_one_duration, begin, end),
		cmocka_unit_test_setup_teardown(a_second_batch_begins_later, begin, end),
		cmocka_unit_test_setup_teardown(late_ones_are_recorded_each, begin, end),
		cmocka_unit_test_setup_teardown(a_late_one_of_several_kinds_is_recorded_as_one, begin, end),
		cmocka_unit_test_setup_teardown(many_late_ones, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
