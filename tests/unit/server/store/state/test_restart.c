/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects on flash over a clean stop: all of them are served again, and none that is stale. */
#include "tests/unit/server/store/state/restarting.h"

/* ---- warm ------------------------------------------------------------------------------------ */

static void what_lay_on_flash_is_served_again(void **state)
{
	struct harness *h = *state;
	struct store_status before, after;
	uint64_t cas;

	harness_open(h);
	fill(h);
	cas = get(h, "object-0").cas;
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "in memory", .value = "x", .length = 1).result,
			 STORE_STORED);
	store_get_status(h->store, &before);
	restart(h);
	store_get_status(h->store, &after);
	assert_int_equal(after.index.used, before.index.used);
	assert_int_equal(after.index.ghosts, before.index.ghosts);
	assert_int_equal(after.index.hot_bytes, before.index.hot_bytes);
	assert_int_equal(after.segments.live, before.segments.live);
	assert_int_equal(after.segments.newest_sequence, before.segments.newest_sequence);
	assert_int_equal(after.dram_items, 0);
	assert_int_not_equal(access(state_path, F_OK), 0); /* it is used once */
	assert_filled(h);
	assert_missing(h, "in memory");
	assert_int_equal(get(h, "object-0").cas, cas);
	assert_true(set(h, "object-0", "later").cas > cas);
	restart(h);
	assert_missing(h, "object-0");
	assert_value(h, "object-1", "object-1");
}

/* The order of segments goes on, and those of the last run are reclaimed like any other. */
static void the_flash_turns_on_after_a_warm_start(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	fill(h);
	for (int round = 0; round < 3; round++) {
		restart(h);
		store_get_status(h->store, &status);
		for (uint32_t n = 0; n < status.segments.total / 2 + 3; n++)
			set_on_flash(h, "key", "value");
		assert_value(h, "key", "value");
		assert_true(fidx_verify(h->store->index));
	}
}

static void large_objects_and_filters_come_back(void **state)
{
	struct harness *h = *state;
	static char large[3000];
	struct store_status before, after;

	memset(large, 'L', sizeof(large));
	h->config.filter_bits = 8;
	harness_open(h);
	fill(h);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "large", .value = large, .length = sizeof(large)).result,
			 STORE_STORED);
	move(h, "large");
	store_get_status(h->store, &before);
	assert_true(before.index.filter_bytes > 0 && before.index.extents_used == 1);
	restart(h);
	store_get_status(h->store, &after);
	assert_int_equal(after.index.filter_bytes, before.index.filter_bytes);
	assert_int_equal(after.index.extents_used, 1);
	assert_int_equal(get(h, "large").length, sizeof(large));
	assert_filled(h);
	/* Filters know their own number of bits, and new ones get another. */
	h->config.filter_bits = 3;
	restart(h);
	assert_filled(h);
}

static void two_tables_come_back(void **state)
{
	struct harness *h = *state;
	unsigned second;

	harness_open(h);
	fill(h);
	assert_int_equal(fidx_table_add(h->store->index, 100, &second), FS_OK);
	restart(h);
	struct fidx_table tables[FIDX_TABLES];
	fidx_tables(h->store->index, tables);
	assert_true(tables[0].live && tables[second].live && tables[second].slots == 100 * FIDX_BUCKET_SLOTS);
	assert_true(tables[second].id != tables[0].id);
	assert_filled(h);
}

/* A stop in the middle of a reclaim: that segment is given up, whatever slots it has left. */
static void a_segment_under_reclaim_is_left_out(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	harness_open(h);
	fill(h);
	set_on_flash(h, "key", "value");
	segment = segment_of(h, "key");
	seg_reclaim_begin(h->store->segments, segment);
	restart(h);
	assert_missing(h, "key");
	assert_int_equal(seg_sequence(h->store->segments, segment), 0);
	for (int n = 0; n < 20; n++)
		set_on_flash(h, "key", "again"); /* also where it was */
	assert_value(h, "key", "again");
}

static void the_uptime_is_this_process_s(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	seconds_pass(h, 1000);
	restart(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.now_seconds, 0);
	assert_int_equal(status.flash_seconds, 1000);
}

/* ---- never stale ----------------------------------------------------------------------------- */

static void what_was_changed_before_the_stop_does_not_come_back(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "set", "old");
	set_on_flash(h, "deleted", "old");
	set_on_flash(h, "appended", "old");
	set_on_flash(h, "touched", "old");
	set_on_flash(h, "number", "17");
	set_on_flash(h, "kept", "old");
	set(h, "set", "new");
	assert_int_equal(run(h, STORE_DELETE, "deleted").result, STORE_DELETED);
	assert_int_equal(run_with(h, STORE_APPEND, "appended", "er").result, STORE_STORED);
	assert_int_equal(run_expiry(h, STORE_TOUCH, "touched", 1000).result, STORE_TOUCHED);
	assert_int_equal(run_number(h, STORE_INCR, "number", 1).result, STORE_HIT);
	restart(h);
	assert_missing(h, "set");
	assert_missing(h, "deleted");
	assert_missing(h, "appended");
	assert_missing(h, "touched");
	assert_missing(h, "number");
	assert_value(h, "kept", "old");
}

static void a_clean_copy_in_memory_leaves_the_flash_s(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	make_clean_copy(h, "key");
	restart(h);
	assert_value(h, "key", "value");
}

static void set_expiring(struct harness *h, const char *key, int64_t exptime)
{
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = "v", .length = 1, .exptime = exptime).result,
			 STORE_STORED);
	move(h, key);
}

static void expiry_goes_on_over_the_stop(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	seconds_pass(h, 500); /* the store's seconds are not the process's */
	set_expiring(h, "short", 20);
	set_expiring(h, "long", 100);
	set_expiring(h, "absolute", clk_wall_seconds() + 100);
	seconds_pass(h, 10);
	stop_cleanly(h);
	seconds_pass(h, 30);
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_missing(h, "short");
	assert_value(h, "long", "v");
	assert_value(h, "absolute", "v");
	seconds_pass(h, 61);
	assert_missing(h, "long");
	assert_missing(h, "absolute");
}

static void what_was_flushed_stays_flushed(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "old", "value");
	store_flush_all(h->store, 0);
	set_on_flash(h, "new", "value");
	restart(h);
	assert_missing(h, "old");
	assert_value(h, "new", "value");
	restart(h);
	assert_missing(h, "old");
}

static void a_pending_flush_comes_after_the_stop(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	store_flush_all(h->store, 40);
	stop_cleanly(h);
	seconds_pass(h, 20);
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_value(h, "key", "value");
	seconds_pass(h, 21);
	assert_missing(h, "key");
}

static void a_flush_that_came_during_the_stop_holds(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "key", "value");
	store_flush_all(h->store, 10);
	stop_cleanly(h);
	seconds_pass(h, 20);
	assert_int_equal(start_again(h), STORE_START_WARM);
	assert_missing(h, "key");
	set_on_flash(h, "key", "later");
	assert_value(h, "key", "later");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESTART_TEST(what_lay_on_flash_is_served_again),
		RESTART_TEST(the_flash_turns_on_after_a_warm_start),
		RESTART_TEST(large_objects_and_filters_come_back),
		RESTART_TEST(two_tables_come_back),
		RESTART_TEST(a_segment_under_reclaim_is_left_out),
		RESTART_TEST(the_uptime_is_this_process_s),
		RESTART_TEST(what_was_changed_before_the_stop_does_not_come_back),
		RESTART_TEST(a_clean_copy_in_memory_leaves_the_flash_s),
		RESTART_TEST(expiry_goes_on_over_the_stop),
		RESTART_TEST(what_was_flushed_stays_flushed),
		RESTART_TEST(a_pending_flush_comes_after_the_stop),
		RESTART_TEST(a_flush_that_came_during_the_stop_holds),
	};

	return cmocka_run_group_tests_name("restart", tests, NULL, NULL);
}
