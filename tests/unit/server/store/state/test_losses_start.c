/* SPDX-License-Identifier: BSD-3-Clause */
/* Which journal a start believes, and how it takes the time up. */
#include <stdlib.h>
#include <unistd.h>

#include "server/store/state/restart.h"
#include "tests/unit/server/store/crash.h"

static void cold_for(struct crash *c, enum store_start start)
{
	assert_int_equal(crash_open(c), start);
	assert_null(c->h.store->rebuild);
	assert_missing(&c->h, "key");
	set_on_flash(&c->h, "key", "new");
	assert_value(&c->h, "key", "new");
}

static void begin(struct crash *c)
{
	set_on_flash(&c->h, "key", "old");
	crash_down(c);
}

static void again_and_again(void **state)
{
	struct crash *c = *state;

	set_on_flash(&c->h, "key", "old");
	for (int i = 0; i < 4; i++) {
		assert_int_equal(crash(c), STORE_START_REBUILT);
		if (i != 2) /* a crash before the first step, too */
			crash_rebuild(c);
	}
	assert_value(&c->h, "key", "old");
}

static void too_long_ago(void **state)
{
	struct crash *c = *state;

	begin(c);
	crash_wall_advance(61);
	cold_for(c, STORE_START_DOWNTIME);
}

static void just_in_time(void **state)
{
	struct crash *c = *state;

	begin(c);
	crash_wall_advance(60);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
}

/* Starts that go down with the machine before they have served a client. */
static void starts_without_service(struct crash *c)
{
	c->h.serves_nobody = true;
	for (int start = 0; start < 2; start++) {
		crash_wall_advance(10);
		atomic_store(&c->h.clk.scripted_us,
			     1000000); /* a young boot: the clock begins behind the last service */
		assert_int_equal(crash_open(c), STORE_START_REBUILT);
		if (start == 1)
			crash_rebuild(c);
		crash_wall_advance(10);
		seconds_pass(&c->h, 10);
		store_tick(c->h.store);
		(void)losses_step(c->h.store->losses); /* a beat, with a time of its own */
		crash_down(c);
	}
	c->h.serves_nobody = false;
}

static void starts_that_go_down_do_not_end_the_pause(void **state)
{
	struct crash *c = *state;

	begin(c);
	starts_without_service(c);
	crash_wall_advance(20);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_value(&c->h, "key", "old");
	(void)losses_step(c->h.store->losses);
	crash_down(c);
	starts_without_service(c); /* the pause begins with the run that served */
	crash_wall_advance(21);
	cold_for(c, STORE_START_DOWNTIME);
}

static void the_wall_clock_was_set_back(void **state)
{
	struct crash *c = *state;

	begin(c);
	crash_wall_advance(-1);
	cold_for(c, STORE_START_CLOCK);
}

static void downtime_zero(void **state)
{
	struct crash *c = *state;

	begin(c);
	c->h.config.restart_max_downtime_us = 0;
	cold_for(c, STORE_START_OFF);
}

static void another_index(void **state)
{
	struct crash *c = *state;

	begin(c);
	c->h.config.tag_bits = 9;
	cold_for(c, STORE_START_OPTIONS);
}

static void a_damaged_journal(void **state)
{
	struct crash *c = *state;
	struct ram_file *file;

	set_on_flash(&c->h, "key", "old");
	assert_int_equal(run(&c->h, STORE_DELETE, "key").result, STORE_DELETED);
	set_on_flash(&c->h, "other", "old");
	assert_int_equal(run(&c->h, STORE_DELETE, "other").result, STORE_DELETED);
	crash_down(c);
	file = ram_journal_last(&c->journal);
	file->bytes[file->length - 1024] ^= 1; /* the block before the last */
	cold_for(c, STORE_START_JOURNAL);
}

static void a_start_without_the_journal_ends_it(void **state)
{
	struct crash *c = *state;

	begin(c);
	c->h.config.journal = false;
	assert_int_equal(crash_open(c), STORE_START_UNCLEAN);
	crash_down(c);
	c->h.config.journal = true;
	cold_for(c, STORE_START_NO_JOURNAL);
}

static void no_journal_can_be_made(void **state)
{
	struct crash *c = *state;

	begin(c);
	c->journal.fail_write = -28;
	assert_int_equal(crash_open(c), STORE_START_JOURNAL);
	assert_null(c->h.store->losses);
	assert_missing(&c->h, "key");
	set_on_flash(&c->h, "key", "new");
	assert_value(&c->h, "key", "new");
	c->journal.fail_write = 0;
	crash_down(c);
	cold_for(c, STORE_START_NO_JOURNAL);
}

/* What has expired by the wall clock is gone, and no object lives longer than it was to. */
static void expiries_go_on(void **state)
{
	struct crash *c = *state;

	run_full(&c->h, .op = STORE_SET, .key = "soon", .value = "s", .length = 1, .exptime = 20);
	move(&c->h, "soon");
	run_full(&c->h, .op = STORE_SET, .key = "late", .value = "l", .length = 1, .exptime = 100);
	move(&c->h, "late");
	crash_down(c);
	crash_wall_advance(30);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "soon");
	assert_value(&c->h, "late", "l");
	seconds_pass(&c->h, 70);
	assert_missing(&c->h, "late");
}

/* The last block was written late in the store's second and early in the wall clock's. The start comes late in that second of
   the wall clock's. */
static void fractions_of_seconds_let_nothing_live_longer(void **state)
{
	struct crash *c = *state;

	set_on_flash(&c->h, "other", "o");
	run_full(&c->h, .op = STORE_SET, .key = "soon", .value = "s", .length = 1, .exptime = 2);
	move(&c->h, "soon");
	clk_scripted_advance(&c->h.clk, 990000);
	seconds_pass(&c->h, 0);
	run(&c->h, STORE_DELETE, "other");
	(void)losses_step(c->h.store->losses);
	crash_down(c);
	clk_scripted_advance(&c->h.clk, 990000);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	crash_rebuild(c);
	clk_scripted_advance(&c->h.clk, 20000);
	seconds_pass(&c->h, 0);
	assert_missing(&c->h, "soon");
}

/* The machine's clock begins anew at a boot. */
static void a_young_boot(void **state)
{
	struct crash *c = *state;

	run_full(&c->h, .op = STORE_SET, .key = "key", .value = "k", .length = 1, .exptime = 5000);
	seconds_pass(&c->h, 4000);
	(void)losses_step(c->h.store->losses);
	crash_wall_advance(4000);
	seconds_pass(&c->h, 10);
	move(&c->h, "key");
	(void)losses_step(c->h.store->losses);
	crash_down(c);
	atomic_store(&c->h.clk.scripted_us, 3000000);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_true(store_now_seconds(c->h.store, clk_now_us(&c->h.clk)) >= 4000);
}

/* What was saved in a young boot is right too: the store's first second lies before that boot. */
static void a_clean_stop_in_a_young_boot(void **state)
{
	struct crash *c = *state;

	run_full(&c->h, .op = STORE_SET, .key = "key", .value = "k", .length = 1, .exptime = 5000);
	move(&c->h, "key");
	seconds_pass(&c->h, 4000);
	crash_wall_advance(4000);
	set_on_flash(&c->h, "other", "o"); /* a beat, too */
	(void)losses_step(c->h.store->losses);
	crash_down(c);
	atomic_store(&c->h.clk.scripted_us, 3000000);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	assert_true(c->h.store->origin_us > clk_now_us(&c->h.clk));
	assert_true(store_time_is_sound(clk_now_us(&c->h.clk), c->h.store->origin_us));
	assert_false(store_time_is_sound(clk_now_us(&c->h.clk), clk_now_us(&c->h.clk) + 1));
	restart_judge_downtime(c->h.store, clk_now_us(&c->h.clk), c->h.store->origin_us);
	assert_int_equal(c->h.store->start, STORE_START_REBUILT);
}

/* A flush that came due while the host was down is about everything that was on flash. */
static void a_flush_that_came_due_meanwhile(void **state)
{
	struct crash *c = *state;

	set_on_flash(&c->h, "key", "old");
	store_flush_all(c->h.store, 20);
	crash_down(c);
	crash_wall_advance(30);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "key");
	set_on_flash(&c->h, "key", "new");
	assert_value(&c->h, "key", "new");
}

/* ---- with a region --------------------------------------------------------------------------- */

static char folder[100], region[220];

static void with_a_region(struct crash *c)
{
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-losses-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(region, sizeof(region), "%s/%.80s.region", folder, strrchr(c->h.path, '/') + 1);
	c->h.config.region_dir = folder;
	(void)crash(c);
}

static void without_the_region(struct crash *c)
{
	crash_down(c);
	(void)unlink(region);
	assert_int_equal(rmdir(folder), 0);
}

/* The region of a machine that went down is gone with it, or of an earlier boot. */
static void the_region_went_down_too(void **state)
{
	struct crash *c = *state;

	with_a_region(c);
	set_on_flash(&c->h, "key", "old");
	crash_down(c);
	assert_int_equal(unlink(region), 0);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_value(&c->h, "key", "old");
	crash_down(c);
	c->h.config.boot_id = "another boot";
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_value(&c->h, "key", "old");
	without_the_region(c);
}

/* The region goes before the journal; from then on the old segments are not the journal's, because the process that was
   killed may have cleared slots without having written them down. */
static void a_kill_and_then_a_crash(void **state)
{
	struct crash *c = *state;

	with_a_region(c);
	set_on_flash(&c->h, "before", "old");
	set_on_flash(&c->h, "deleted", "old");
	assert_int_equal(crash(c), STORE_START_ATTACHED);
	assert_value(&c->h, "before", "old");
	set_on_flash(&c->h, "after", "new");
	assert_int_equal(run(&c->h, STORE_DELETE, "deleted").result, STORE_DELETED);
	crash_down(c);
	assert_int_equal(unlink(region), 0);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "before");
	assert_missing(&c->h, "deleted");
	assert_value(&c->h, "after", "new");
	without_the_region(c);
}

/* A kill in the middle of a rebuild: what was walked is served, and what a command has changed stays as it left it. */
static void a_kill_within_a_rebuild(void **state)
{
	struct crash *c = *state;

	with_a_region(c);
	set_on_flash(&c->h, "first", "old");
	set_on_flash(&c->h, "second", "old");
	crash_down(c);
	assert_int_equal(unlink(region), 0);
	assert_int_equal(crash_open(c), STORE_START_REBUILT);
	(void)run(&c->h, STORE_DELETE, "second");
	assert_true(cleaner_step(c->h.store));
	assert_non_null(c->h.store->rebuild);
	assert_int_equal(crash(c), STORE_START_ATTACHED);
	assert_true(fidx_verify(c->h.store->index));
	assert_null(c->h.store->rebuild);
	assert_missing(&c->h, "first");
	assert_missing(&c->h, "second");
	set_on_flash(&c->h, "first", "new");
	assert_value(&c->h, "first", "new");
	without_the_region(c);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, crash_setup, crash_teardown)
	const struct CMUnitTest tests[] = {
		CASE(again_and_again),
		CASE(too_long_ago),
		CASE(just_in_time),
		CASE(starts_that_go_down_do_not_end_the_pause),
		CASE(the_wall_clock_was_set_back),
		CASE(downtime_zero),
		CASE(another_index),
		CASE(a_damaged_journal),
		CASE(a_start_without_the_journal_ends_it),
		CASE(no_journal_can_be_made),
		CASE(expiries_go_on),
		CASE(fractions_of_seconds_let_nothing_live_longer),
		CASE(a_young_boot),
		CASE(a_clean_stop_in_a_young_boot),
		CASE(a_flush_that_came_due_meanwhile),
		CASE(the_region_went_down_too),
		CASE(a_kill_and_then_a_crash),
		CASE(a_kill_within_a_rebuild),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
