/* SPDX-License-Identifier: BSD-3-Clause */
/* What was written over the last 5 minutes, hour and day: by readings alone, and by a store under a scripted clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics/counters.h"
#include "server/store/state/window.h"

#define SECOND_MS 1000ull
#define HOUR_MS (3600 * SECOND_MS)
#define FLASH_RATE 7ull /* bytes a millisecond */
#define APP_RATE 3ull

static struct windows windows;
static struct store_window window[STORE_WINDOWS];

/* As if so much had been written at a steady rate. */
static struct window_reading steady(uint64_t ms)
{
	return (struct window_reading){ ms, 1000000 + ms * FLASH_RATE, 5000 + ms * APP_RATE };
}

static void begin_at(uint64_t ms)
{
	const struct window_reading now = steady(ms);

	windows_init(&windows, &now);
}

static void tick(uint64_t ms)
{
	const struct window_reading now = steady(ms);

	windows_tick(&windows, &now);
}

static void read_at(uint64_t ms)
{
	const struct window_reading now = steady(ms);

	windows_read(&windows, &now, window);
}

static int end(void **state)
{
	(void)state;
	windows_fini(&windows);
	return 0;
}

static void assert_steady(const struct store_window *one)
{
	uint64_t ms = (uint64_t)(one->seconds * 1000 + 0.5);

	assert_int_equal(one->flash_bytes, ms * FLASH_RATE);
	assert_int_equal(one->app_bytes, ms * APP_RATE);
}

static void nothing_at_first(void **state)
{
	(void)state;
	begin_at(77);
	read_at(77);
	for (unsigned i = 0; i < STORE_WINDOWS; i++) {
		assert_true(window[i].seconds == 0);
		assert_int_equal(window[i].flash_bytes, 0);
		assert_int_equal(window[i].app_bytes, 0);
	}
}

static void since_the_start_while_that_is_shorter(void **state)
{
	(void)state;
	begin_at(5000);
	for (uint64_t s = 1; s <= 250; s++)
		tick(5000 + s * SECOND_MS);
	read_at(5000 + 250500);
	for (unsigned i = 0; i < STORE_WINDOWS; i++) {
		assert_true(window[i].seconds == 250.5);
		assert_steady(&window[i]);
	}
}

/* Three days of ticks: each window is as long as its name, but for less than a step. */
static void long_as_their_names(void **state)
{
	static const double longest[STORE_WINDOWS] = { 300, 3600, 86400 }, steps[STORE_WINDOWS] = { 10, 60, 600 };
	uint64_t ms = 0;

	(void)state;
	begin_at(0);
	for (unsigned s = 1; s <= 3 * 86400; s++) {
		tick(ms = s * SECOND_MS + s % 7); /* now and then a little late */
		if (s < 86400 || s % 97)
			continue;
		read_at(ms + 500);
		for (unsigned i = 0; i < STORE_WINDOWS; i++) {
			assert_true(window[i].seconds <= longest[i] + 1.1);
			assert_true(window[i].seconds >= longest[i] - steps[i]);
			assert_steady(&window[i]);
		}
	}
}

/* What was written long ago is in the longer windows alone. */
static void a_burst_leaves_one_after_the_other(void **state)
{
	struct window_reading now = { 0, 0, 0 };

	(void)state;
	windows_init(&windows, &now);
	now = (struct window_reading){ 1000, 4096, 1024 };
	windows_tick(&windows, &now);
	for (; now.now_ms < 2 * HOUR_MS; now.now_ms += SECOND_MS) {
		windows_tick(&windows, &now);
		windows_read(&windows, &now, window);
		assert_int_equal(window[STORE_WINDOW_5M].flash_bytes, now.now_ms < 300 * SECOND_MS ? 4096 : 0);
		assert_int_equal(window[STORE_WINDOW_1H].flash_bytes, now.now_ms < HOUR_MS ? 4096 : 0);
		assert_int_equal(window[STORE_WINDOW_1H].app_bytes, now.now_ms < HOUR_MS ? 1024 : 0);
		assert_int_equal(window[STORE_WINDOW_1D].app_bytes, 1024);
	}
}

/* Without ticks for long, windows are longer, and say so; then they are as always. */
static void a_time_without_ticks(void **state)
{
	uint64_t ms = 0;

	(void)state;
	begin_at(0);
	for (; ms <= 400 * SECOND_MS; ms += SECOND_MS)
		tick(ms);
	ms += 3 * 24 * HOUR_MS;
	read_at(ms);
	for (unsigned i = 0; i < STORE_WINDOWS; i++) {
		assert_true(window[i].seconds >= 3 * 86400);
		assert_steady(&window[i]);
	}
	tick(ms);
	read_at(ms);
	assert_true(window[STORE_WINDOW_5M].seconds >= 3 * 86400);
	for (uint64_t end_ms = ms + 300 * SECOND_MS; ms <= end_ms; ms += SECOND_MS)
		tick(ms);
	read_at(ms);
	assert_true(window[STORE_WINDOW_5M].seconds <= 301);
	assert_steady(&window[STORE_WINDOW_5M]);
	assert_true(window[STORE_WINDOW_1H].seconds >= 3 * 86400);
}

/* A reader whose totals are of before the last tick sees nothing, not something huge. */
static void a_reader_that_was_overtaken(void **state)
{
	(void)state;
	begin_at(10000);
	read_at(9000);
	for (unsigned i = 0; i < STORE_WINDOWS; i++) {
		assert_int_equal(window[i].flash_bytes, 0);
		assert_int_equal(window[i].app_bytes, 0);
		assert_true(window[i].seconds == 0);
	}
}

/* ---- in a store --------------------------------------------------------------------------------- */

static struct clk clock_;
static struct store *store;

static int open_store(void **state)
{
	struct store_config config;
	char reason[256];

	(void)state;
	clk_scripted_init(&clock_, 1000000);
	store_config_init(&config);
	config.clock = &clock_;
	config.flash_write_limit = 12345;
	ctr_add(CTR_flash_bytes_written, 999); /* of an earlier store */
	return store_open(&store, &config, reason);
}

static int close_store(void **state)
{
	(void)state;
	store_close(store);
	return 0;
}

static void second(void)
{
	clk_scripted_advance(&clock_, 1000000);
	store_tick(store);
}

static void a_store_has_them(void **state)
{
	struct store_status status;

	(void)state;
	store_get_status(store, &status);
	assert_int_equal(status.write_limit, 12345);
	assert_int_equal(status.window[STORE_WINDOW_1D].flash_bytes, 0);
	for (unsigned s = 0; s < 100; s++) {
		ctr_add(CTR_flash_bytes_written, 1000);
		ctr_add(CTR_app_bytes_written, 500);
		second();
	}
	ctr_reset(); /* "stats reset" changes neither windows nor rates */
	second();
	store_get_status(store, &status);
	for (unsigned i = 0; i < STORE_WINDOWS; i++) {
		assert_int_equal(status.window[i].flash_bytes, 100000);
		assert_int_equal(status.window[i].app_bytes, 50000);
		assert_true(status.window[i].seconds == 101);
	}
	assert_true(status.write_rate > 800 && status.write_rate < 1000);
	for (unsigned s = 0; s < 400; s++)
		second();
	store_get_status(store, &status);
	assert_int_equal(status.window[STORE_WINDOW_5M].flash_bytes, 0);
	assert_int_equal(status.window[STORE_WINDOW_1H].flash_bytes, 100000);
	assert_true(status.write_rate < 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nothing_at_first, end),
		cmocka_unit_test_teardown(since_the_start_while_that_is_shorter, end),
		cmocka_unit_test_teardown(long_as_their_names, end),
		cmocka_unit_test_teardown(a_burst_leaves_one_after_the_other, end),
		cmocka_unit_test_teardown(a_time_without_ticks, end),
		cmocka_unit_test_teardown(a_reader_that_was_overtaken, end),
		cmocka_unit_test_setup_teardown(a_store_has_them, open_store, close_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
