/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts without the objects on flash: pauses, options, boots, and runs in between that make the last state worthless. */
#include "tests/unit/server/store/state/restarting.h"

/* ---- cold ------------------------------------------------------------------------------------ */

static void a_run_that_was_killed_leaves_nothing(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	harness_close(h);
	assert_cold(h, UNCLEAN);
	harness_close(h);
	one_run(h);
	assert_int_equal(start_again(h), STORE_START_WARM);
	harness_close(h);
	assert_cold(h, UNCLEAN);
}

static void options_may_forbid_it(void **state)
{
	struct harness *h = *state;

	assert_cold(h, NEW);
	assert_true(store_save(h->store));
	harness_close(h);
	h->config.state_dir = NULL;
	assert_cold(h, NO_STATE_DIR);
	assert_false(store_save(h->store));
	harness_close(h);
	h->config.state_dir = folder;
	one_run(h);
	h->config.restart_max_downtime_us = 0;
	assert_cold(h, OFF);
	assert_int_not_equal(access(state_path, F_OK), 0);
	assert_false(store_save(h->store));
	harness_close(h);
	h->config.restart_max_downtime_us = MINUTE_US;
	assert_cold(h, UNCLEAN);
}

static void a_long_stop_starts_cold(void **state)
{
	struct harness *h = *state;

	one_run(h);
	seconds_pass(h, 60);
	assert_int_equal(start_again(h), STORE_START_WARM);
	stop_cleanly(h);
	seconds_pass(h, 61);
	assert_cold(h, DOWNTIME);
	assert_non_null(strstr(h->store->start_text, "61.0 s of 60.0 s"));
}

/* Two starts end before they have served a client: the pause is that between the two runs that served. */
static void starts_that_fail_do_not_end_the_pause(void **state)
{
	struct harness *h = *state;

	for (uint64_t last_s = 20; last_s <= 21; last_s++) {
		one_run(h);
		h->serves_nobody = true;
		for (int start = 0; start < 2; start++) {
			seconds_pass(h, 20);
			assert_int_equal(start_again(h), STORE_START_WARM);
			store_tick(h->store);
			stop_cleanly(h);
		}
		h->serves_nobody = false;
		seconds_pass(h, last_s);
		if (last_s == 21)
			break;
		assert_int_equal(start_again(h), STORE_START_WARM);
		assert_value(h, "key", "value");
		stop_cleanly(h);
		seconds_pass(h, 60); /* the last one has served */
		assert_int_equal(start_again(h), STORE_START_WARM);
		harness_close(h);
	}
	assert_cold(h, DOWNTIME);
	assert_non_null(strstr(h->store->start_text, "61.0 s of 60.0 s"));
}

static void a_clock_that_was_set_back_starts_cold(void **state)
{
	struct harness *h = *state;

	seconds_pass(h, 1000);
	one_run(h);
	atomic_fetch_sub(&h->clk.scripted_us, 500000000);
	assert_cold(h, CLOCK);
}

static void another_boot_starts_cold(void **state)
{
	struct harness *h = *state;

	one_run(h);
	h->config.boot_id = "another boot";
	assert_cold(h, BOOT);
}

static void changed_options_start_cold(void **state)
{
	struct harness *h = *state;
	struct store_config config = h->config;

	one_run(h);
	h->config.segment_bytes *= 2;
	assert_cold(h, LAYOUT);
	harness_close(h);
	h->config = config;
	assert_cold(h, LAYOUT);
	stop_cleanly(h);
	h->config.flash_bytes += MIB(1);
	assert_cold(h, LAYOUT);
	stop_cleanly(h);
	h->config.functions = 8;
	assert_cold(h, LAYOUT);
	stop_cleanly(h);
	h->config.tag_bits = 10;
	assert_cold(h, OPTIONS);
	stop_cleanly(h);
	h->config.clock_mode = h->config.clock_mode == FIDX_CLOCK_LRU ? FIDX_CLOCK_MFU : FIDX_CLOCK_LRU;
	assert_cold(h, OPTIONS);
	stop_cleanly(h);
	h->config.workers++; /* of no matter */
	h->config.hot_fraction = 0.5;
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_value(h, "key", "new");
}

static void another_kind_of_index_starts_cold(void **state)
{
	struct harness *h = *state;

	h->config.index = STORE_INDEX_SLOTS;
	one_run(h);
	h->config.index = STORE_INDEX_FRUGAL;
	assert_cold(h, OPTIONS);
	stop_cleanly(h);
	h->config.index = STORE_INDEX_SLOTS;
	assert_cold(h, OPTIONS);
}

static void less_memory_than_the_index_needs_starts_cold(void **state)
{
	struct harness *h = *state;
	unsigned table;

	h->config.flash_bytes = MIB(16);
	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_int_equal(fidx_table_add(h->store->index, MIB(2) / 64, &table), FS_OK);
	stop_cleanly(h);
	h->config.memory_bytes = MIB(3);
	assert_cold(h, MEMORY);
	assert_int_equal(h->store->origin_us, h->store->opened_us);
	stop_cleanly(h);
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_value(h, "key", "new");
}

static void without_the_file_it_starts_cold(void **state)
{
	struct harness *h = *state;

	one_run(h);
	unlink(state_path);
	assert_cold(h, NO_FILE);
	stop_cleanly(h);
	unlink(state_path);
	assert_int_equal(symlink("/dev/null", state_path), 0);
	assert_cold(h, UNREADABLE);
}

static void a_state_that_can_not_be_saved_is_told(void **state)
{
	struct harness *h = *state;

	h->config.state_dir = "/nowhere/at/all";
	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_false(store_save(h->store));
	harness_close(h);
	h->config.state_dir = folder;
	assert_cold(h, UNCLEAN);
}

/* The flash takes no write then, not even that of the mark that makes a state file valid. */
static void a_stop_while_the_flash_is_offline_keeps_nothing_of_it(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	for (unsigned n = 0; n < 100 && !seg_offline(h->store->segments); n++)
		seg_report_corrupt(h->store->segments, 0, 0);
	assert_true(seg_offline(h->store->segments));
	assert_false(store_save(h->store));
	assert_int_not_equal(access(state_path, F_OK), 0);
	harness_close(h);
	assert_cold(h, UNCLEAN);
}

/* ---- runs in between --------------------------------------------------------------------------- */

/* A run that serves without the flash changes values that it doesn't see. */
static void a_run_without_the_flash_makes_it_cold(void **state)
{
	struct harness *h = *state;
	const char *path = h->config.flash_path;

	harness_open(h);
	store_claim(h->store, "daemon");
	set_on_flash(h, "key", "value");
	stop_cleanly(h);
	h->config.flash_path = NULL;
	harness_open(h);
	store_claim(h->store, "daemon");
	set(h, "key", "changed");
	harness_close(h);
	h->config.flash_path = path;
	assert_cold(h, NO_FILE);
	store_claim(h->store, "daemon");
	stop_cleanly(h);
	/* With the flash alone it is kept. */
	assert_int_equal(start_again(h), STORE_START_WARM);
	store_claim(h->store, "daemon");
	assert_value(h, "key", "new");
	stop_cleanly(h);
	/* And another daemon's runs don't matter. */
	h->config.flash_path = NULL;
	harness_open(h);
	store_claim(h->store, "another daemon");
	harness_close(h);
	h->config.flash_path = path;
	assert_int_equal(start_again(h), STORE_START_WARM);
}

/* As when the file was to be longer, and there was no room. */
static void a_run_that_fell_back_to_memory_makes_it_cold(void **state)
{
	struct harness *h = *state;
	uint64_t bytes = h->config.flash_bytes;

	one_run(h);
	h->config.flash_bytes += MIB(1);
	h->config.flash_min_free = 1ull << 60;
	harness_open(h);
	assert_null(h->store->index);
	store_claim(h->store, "daemon");
	set(h, "key", "changed");
	harness_close(h);
	assert_int_not_equal(access(state_path, F_OK), 0);
	h->config.flash_bytes = bytes;
	assert_cold(h, NO_FILE);
}

static void another_state_directory_in_between_makes_it_cold(void **state)
{
	struct harness *h = *state;
	char other[120], file[220];

	snprintf(other, sizeof(other), "%s-other", folder);
	snprintf(file, sizeof(file), "%s%s", other, strrchr(state_path, '/'));
	assert_int_equal(mkdir(other, 0700), 0);
	one_run(h);
	h->config.state_dir = other;
	assert_cold(h, NO_FILE);
	assert_true(store_save(h->store));
	harness_close(h);
	h->config.state_dir = folder;
	assert_cold(h, OTHER_START);
	stop_cleanly(h);
	h->config.state_dir = other;
	assert_cold(h, OTHER_START);
	assert_int_not_equal(access(file, F_OK), 0);
	assert_int_equal(rmdir(other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESTART_TEST(a_run_that_was_killed_leaves_nothing),
		RESTART_TEST(options_may_forbid_it),
		RESTART_TEST(a_long_stop_starts_cold),
		RESTART_TEST(starts_that_fail_do_not_end_the_pause),
		RESTART_TEST(a_clock_that_was_set_back_starts_cold),
		RESTART_TEST(another_boot_starts_cold),
		RESTART_TEST(changed_options_start_cold),
		RESTART_TEST(another_kind_of_index_starts_cold),
		RESTART_TEST(less_memory_than_the_index_needs_starts_cold),
		RESTART_TEST(without_the_file_it_starts_cold),
		RESTART_TEST(a_state_that_can_not_be_saved_is_told),
		RESTART_TEST(a_stop_while_the_flash_is_offline_keeps_nothing_of_it),
		RESTART_TEST(a_run_without_the_flash_makes_it_cold),
		RESTART_TEST(a_run_that_fell_back_to_memory_makes_it_cold),
		RESTART_TEST(another_state_directory_in_between_makes_it_cold),
	};

	return cmocka_run_group_tests_name("restart: cold", tests, NULL, NULL);
}
