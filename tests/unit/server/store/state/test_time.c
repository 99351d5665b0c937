/* SPDX-License-Identifier: BSD-3-Clause */
/* Expiry, flush_all and CAS ids, in DRAM and on flash. */
#include "tests/unit/server/store/harness.h"

#define DAY (24 * 60 * 60)

/* ---- expiry ---------------------------------------------------------------------------------- */

static void a_negative_exptime_is_now(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	assert_int_equal(
		run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .exptime = -1).result,
		STORE_STORED);
	assert_missing(h, "key");
	assert_int_equal(
		run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .exptime = INT64_MIN).result,
		STORE_STORED);
	assert_missing(h, "key");
}

static void zero_is_for_ever(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	assert_int_equal(store_expiry(h->store, 0), 0);
	set(h, "key", "value");
	seconds_pass(h, 400ull * DAY);
	assert_value(h, "key", "value");
}

static void up_to_thirty_days_are_relative(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "short", .value = "value", .length = 5, .exptime = 1);
	run_full(h, .op = STORE_SET, .key = "long", .value = "value", .length = 5, .exptime = 30 * DAY);
	assert_value(h, "short", "value");
	seconds_pass(h, 1);
	assert_missing(h, "short");
	seconds_pass(h, 30ull * DAY - 2);
	assert_value(h, "long", "value");
	seconds_pass(h, 1);
	assert_missing(h, "long");
}

static void more_than_thirty_days_is_wall_clock_time(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "past", .value = "value", .length = 5, .exptime = 30 * DAY + 1);
	assert_missing(h, "past");
	run_full(h, .op = STORE_SET, .key = "future", .value = "value", .length = 5,
		 .exptime = clk_wall_seconds() + 100);
	assert_value(h, "future", "value");
	seconds_pass(h, 98);
	assert_value(h, "future", "value");
	seconds_pass(h, 3);
	assert_missing(h, "future");
	assert_int_equal(store_expiry(h->store, INT64_MAX), UINT32_MAX);
}

static void an_expired_object_is_gone_on_flash_as_in_dram(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .exptime = 100);
	move(h, "key");
	seconds_pass(h, 99);
	assert_true(get(h, "key").from_flash);
	seconds_pass(h, 1);
	assert_missing(h, "key");
}

static void the_crawler_frees_what_expired_in_dram(void **state)
{
	struct harness *h = *state;
	char key[16];

	harness_open(h);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "key:%d", i);
		run_full(h, .op = STORE_SET, .key = key, .value = "value", .length = 5, .exptime = 10);
	}
	seconds_pass(h, 10);
	assert_int_equal(store_dram_items(h->store), 100);
	seconds_pass(h, 60); /* a pass takes a minute */
	store_clean_step(h->store);
	assert_nothing_left(h);
}

/* ---- flush_all ------------------------------------------------------------------------------- */

static void flush_all_invalidates_everything_before_it_and_nothing_after(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "dram", "value");
	set_on_flash(h, "flash", "value");
	set(h, "dram", "value");
	store_flush_all(h->store, 0);
	set(h, "after", "value");
	assert_missing(h, "dram");
	assert_missing(h, "flash");
	assert_value(h, "after", "value");
}

static void a_negative_delay_is_now(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	store_flush_all(h->store, -5);
	assert_missing(h, "key");
	set(h, "key", "value");
	seconds_pass(h, 100);
	assert_value(h, "key", "value");
}

static void a_delayed_flush_takes_all_that_was_stored_before_it_is_due(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "flash", "value");
	set(h, "before", "value");
	store_flush_all(h->store, 10);
	set(h, "meanwhile", "value");
	seconds_pass(h, 9);
	assert_value(h, "flash", "value");
	assert_value(h, "before", "value");
	assert_value(h, "meanwhile", "value");
	seconds_pass(h, 1);
	assert_missing(h, "flash");
	assert_missing(h, "before");
	assert_missing(h, "meanwhile");
	set(h, "after", "value");
	seconds_pass(h, 20);
	assert_value(h, "after", "value");
}

static void a_later_call_replaces_a_pending_flush(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	store_flush_all(h->store, 10);
	store_flush_all(h->store, 100);
	seconds_pass(h, 50);
	assert_value(h, "key", "value");
	seconds_pass(h, 50);
	assert_missing(h, "key");
	store_flush_all(h->store, 10);
	store_flush_all(h->store, 0);
	set(h, "key", "value");
	seconds_pass(h, 20);
	assert_value(h, "key", "value");
}

static void a_delayed_flush_is_done_by_the_tick_where_no_worker_runs(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	store_flush_all(h->store, 10);
	clk_scripted_advance(&h->clk, 10 * 1000000);
	store_tick(h->store);
	assert_int_equal(atomic_load(&h->store->flush_at), 0);
	assert_missing(h, "key");
}

static void what_is_made_from_a_flushed_object_does_not_survive(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (int on_flash = 0; on_flash < 2; on_flash++) {
		set(h, "key", "10");
		if (on_flash)
			move(h, "key");
		store_flush_all(h->store, 0);
		assert_int_equal(run_number(h, STORE_INCR, "key", 1).result, STORE_MISS);
		assert_int_equal(run_with(h, STORE_APPEND, "key", "1").result, STORE_NOT_STORED);
		assert_int_equal(run_expiry(h, STORE_TOUCH, "key", 10).result, STORE_MISS);
		assert_missing(h, "key");
	}
}

/* ---- CAS ids --------------------------------------------------------------------------------- */

static uint64_t highest_id(struct harness *h, uint64_t above)
{
	static const enum store_op ops[] = { STORE_SET, STORE_REPLACE, STORE_APPEND, STORE_PREPEND };

	for (unsigned i = 0; i < 40; i++) {
		struct reply reply = run_with(h, ops[i % 4], "key", "1");

		assert_int_equal(reply.result, STORE_STORED);
		assert_true(reply.cas > above && reply.cas < 1ull << 63);
		above = reply.cas;
		if (i % 10 == 5)
			move(h, "key");
		assert_int_equal(get(h, "key").cas, above);
	}
	return above;
}

static void ids_strictly_increase_over_a_new_start_of_the_same_flash_too(void **state)
{
	struct harness *h = *state;
	uint64_t last = 0;

	for (int start_number = 0; start_number < 3; start_number++) {
		harness_open(h);
		assert_missing(h, "key"); /* every start is cold */
		last = highest_id(h, last);
		harness_close(h);
	}
}

static void ids_are_given_without_cas_too_but_none_is_the_same(void **state)
{
	struct harness *h = *state;

	h->config.cas = false;
	harness_open(h);
	uint64_t last = highest_id(h, 0);
	assert_int_equal(
		run_full(h, .op = STORE_CAS, .key = "key", .value = "new", .length = 3, .cas = last + 99).result,
		STORE_EXISTS);
	assert_int_equal(run_full(h, .op = STORE_CAS, .key = "key", .value = "new", .length = 3, .cas = last).result,
			 STORE_EXISTS);
	assert_int_equal(run_full(h, .op = STORE_CAS, .key = "key", .value = "new", .length = 3).result, STORE_EXISTS);
	store_flush_all(h->store, 0); /* works by ids */
	assert_missing(h, "key");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_negative_exptime_is_now),
		TEST(zero_is_for_ever),
		TEST(up_to_thirty_days_are_relative),
		TEST(more_than_thirty_days_is_wall_clock_time),
		TEST(an_expired_object_is_gone_on_flash_as_in_dram),
		TEST(the_crawler_frees_what_expired_in_dram),
		TEST(flush_all_invalidates_everything_before_it_and_nothing_after),
		TEST(a_negative_delay_is_now),
		TEST(a_delayed_flush_takes_all_that_was_stored_before_it_is_due),
		TEST(a_later_call_replaces_a_pending_flush),
		TEST(a_delayed_flush_is_done_by_the_tick_where_no_worker_runs),
		TEST(what_is_made_from_a_flushed_object_does_not_survive),
		cmocka_unit_test_setup_teardown(ids_strictly_increase_over_a_new_start_of_the_same_flash_too, setup,
						teardown),
		TEST(ids_are_given_without_cas_too_but_none_is_the_same),
	};

	return cmocka_run_group_tests_name("store: expiry and flush_all", tests, NULL, NULL);
}
