/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects on flash over a kill: acknowledged values come back right or not at all, older ones never. Kills in the middle of
 * something are in test_attach_killed.c, pairings that must start cold in test_attach_cold.c.
 */
#include <sys/stat.h>

#include "tests/unit/server/store/state/attaching.h"

/* ---- warm ------------------------------------------------------------------------------------ */

static void what_lay_on_flash_is_served_after_a_kill(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, open_and_fill);
	for (int turn = 0; turn < 3; turn++) {
		assert_start(h, ATTACHED);
		assert_filled(h);
		harness_close(h); /* no orderly end either: nothing is saved */
		run_in_killed_child(h, only_open);
	}
}

static void write_over(struct harness *h)
{
	harness_open(h);
	for (int n = 0; n < 40; n++)
		set_on_flash(h, "key", "value");
}

static void the_flash_turns_on(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, open_and_fill);
	for (int turn = 0; turn < 3; turn++) {
		run_in_killed_child(h, write_over);
		assert_start(h, ATTACHED);
		assert_value(h, "key", "value");
		set_on_flash(h, "key", "later");
		assert_value(h, "key", "later");
		harness_close(h);
	}
}

static void with_large_ones(struct harness *h)
{
	static char large[LARGE];
	unsigned second;

	open_and_fill(h);
	assert_int_equal(fidx_table_add(h->store->index, 100, &second), FS_OK);
	memset(large, 'L', sizeof(large));
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "large", .value = large, .length = sizeof(large)).result,
			 STORE_STORED);
	move(h, "large");
}

static void tables_and_extents_come_back(void **state)
{
	struct harness *h = *state;
	struct fidx_table tables[FIDX_TABLES];

	run_in_killed_child(h, with_large_ones);
	assert_start(h, ATTACHED);
	fidx_tables(h->store->index, tables);
	assert_true(tables[0].live && tables[1].live && tables[0].id != tables[1].id);
	assert_int_equal(tables[1].slots, 100 * FIDX_BUCKET_SLOTS);
	assert_int_equal(get(h, "large").length, LARGE);
	assert_filled(h);
}

/* ---- never stale ----------------------------------------------------------------------------- */

static void change_all(struct harness *h)
{
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
}

static void what_was_changed_before_the_kill_does_not_come_back(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, change_all);
	assert_start(h, ATTACHED);
	assert_missing(h, "set");
	assert_missing(h, "deleted");
	assert_missing(h, "appended");
	assert_missing(h, "touched");
	assert_missing(h, "number");
	assert_value(h, "kept", "old");
}

static void flush_and_set(struct harness *h)
{
	harness_open(h);
	set_on_flash(h, "old", "value");
	store_flush_all(h->store, 0);
	set_on_flash(h, "new", "value");
	store_flush_all(h->store, 40);
}

static void flushes_hold(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, flush_and_set);
	seconds_pass(h, 20);
	assert_start(h, ATTACHED);
	assert_missing(h, "old");
	assert_value(h, "new", "value");
	harness_close(h);
	seconds_pass(h, 21);
	assert_start(h, ATTACHED);
	assert_missing(h, "new");
	set_on_flash(h, "later", "value");
	assert_value(h, "later", "value");
}

static void ids_never_repeat(void **state)
{
	struct harness *h = *state;
	uint64_t before;

	run_in_killed_child(h, open_and_fill);
	assert_start(h, ATTACHED);
	before = get(h, "object-0").cas;
	for (int n = 1; n < OBJECTS; n++) {
		char key[KEY_BYTES];

		key_number(key, n);
		before = before > get(h, key).cas ? before : get(h, key).cas;
	}
	assert_true(set(h, "object-0", "later").cas > before);
}

/* Each start is killed at its next step, and the last one is warm all the same. */
static void killed_in_the_take_over(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	run_in_killed_child(h, open_and_fill);
	for (uint64_t pair = 0; pair < 5 * 5; pair++) { /* two in a row */
		fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, pair / 5);
		run_in_killed_child(h, only_open);
		fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, pair % 5);
		run_in_killed_child(h, only_open);
		fault_disarm_all();
		assert_start(h, ATTACHED);
		assert_filled(h);
		harness_close(h);
	}
	fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, 5);
	assert_start(h, ATTACHED); /* there is no further step */
	assert_filled(h);
}

static void only_tick(struct harness *h)
{
	harness_open(h);
	store_tick(h->store); /* the keeper would */
}

static void open_and_save(struct harness *h)
{
	harness_open(h);
	(void)store_save(h->store);
}

/* Starts that are killed before they serve, in the takeover and behind it, or that fail. The pause is that between the two
   runs that served. */
static void starts_without_service(struct harness *h)
{
	h->serves_nobody = true;
	for (uint64_t step = 0; HAVE_FAULTS && step < 5; step++) {
		seconds_pass(h, 5);
		fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, step);
		run_in_killed_child(h, only_open);
		fault_disarm_all();
	}
	if (!HAVE_FAULTS)
		seconds_pass(h, 25);
	seconds_pass(h, 15);
	run_in_killed_child(h, only_tick);
	seconds_pass(h, 10);
	run_in_killed_child(h, open_and_save);
	h->serves_nobody = false;
}

static void starts_that_are_killed_do_not_end_the_pause(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, open_and_fill);
	starts_without_service(h);
	seconds_pass(h, 10);
	assert_start(h, ATTACHED);
	assert_filled(h);
	harness_close(h);
	starts_without_service(h); /* the pause begins with the run that served */
	seconds_pass(h, 11);
	assert_cold(h, DOWNTIME);
}

/* The same, where the run that served ended cleanly: the region takes the time from the state file, and the state file from
   the region. */
static void the_pause_goes_from_file_to_region_and_back(void **state)
{
	struct harness *h = *state;

	h->config.state_dir = state_folder;
	for (int turn = 0; turn < 2; turn++) {
		unlink(h->path);
		open_and_fill(h);
		assert_true(store_save(h->store));
		harness_close(h);
		starts_without_service(h);
		seconds_pass(h, turn ? 11 : 10);
		if (turn) {
			assert_cold(h, DOWNTIME);
			continue;
		}
		assert_start(h, WARM); /* the start before has saved again */
		assert_filled(h);
		harness_close(h);
	}
}

/* ---- with a clean stop ----------------------------------------------------------------------- */

static void save(struct harness *h)
{
	open_and_fill(h);
	assert_true(store_save(h->store));
}

static void a_clean_stop_saves_and_empties_the_region(void **state)
{
	struct harness *h = *state;
	struct stat st;

	h->config.state_dir = state_folder;
	open_and_fill(h);
	assert_true(store_save(h->store));
	harness_close(h);
	assert_int_equal(stat(region_path, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_start(h, WARM);
	assert_filled(h);
	harness_close(h);
	assert_start(h, ATTACHED); /* that run wasn't saved */
	assert_filled(h);
}

static void the_region_does_for_a_clean_stop_without_a_state_directory(void **state)
{
	struct harness *h = *state;

	open_and_fill(h);
	assert_false(store_save(h->store));
	harness_close(h);
	assert_start(h, ATTACHED);
	assert_filled(h);
}

static void killed_in_the_stop_and_in_a_start_from_the_state_file(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	h->config.state_dir = state_folder;
	fault_arm(FAULT_killed_in_save, FAULT_ALWAYS, 0);
	run_in_killed_child(h, save);
	fault_disarm_all();
	assert_start(h, ATTACHED);
	assert_filled(h);
	for (uint64_t step = 0; step < 5; step++) {
		assert_true(store_save(h->store));
		harness_close(h);
		fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, step);
		run_in_killed_child(h, only_open);
		fault_disarm_all();
		assert_string_equal(store_start_word(start_again(h)), step < 2 ? "warm" : "attached");
		assert_filled(h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ATTACH_TEST(what_lay_on_flash_is_served_after_a_kill),
		ATTACH_TEST(the_flash_turns_on),
		ATTACH_TEST(tables_and_extents_come_back),
		ATTACH_TEST(what_was_changed_before_the_kill_does_not_come_back),
		ATTACH_TEST(flushes_hold),
		ATTACH_TEST(ids_never_repeat),
		ATTACH_TEST(killed_in_the_take_over),
		ATTACH_TEST(starts_that_are_killed_do_not_end_the_pause),
		ATTACH_TEST(the_pause_goes_from_file_to_region_and_back),
		ATTACH_TEST(a_clean_stop_saves_and_empties_the_region),
		ATTACH_TEST(the_region_does_for_a_clean_stop_without_a_state_directory),
		ATTACH_TEST(killed_in_the_stop_and_in_a_start_from_the_state_file),
	};

	return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
