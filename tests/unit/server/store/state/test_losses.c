/* SPDX-License-Identifier: BSD-3-Clause */
/* What is written down while the store runs. */
#include "tests/unit/server/store/crash.h"

static uint64_t newest(const struct crash *c)
{
	return journal_newest(c->h.store->losses->journal);
}

static void a_set_of_a_key_without_a_slot_writes_nothing_down(void **state)
{
	struct crash *c = *state;
	struct flight f;

	assert_true(start_with(&c->h, 0, &f, .op = STORE_SET, .key = "key", .value = "1", .length = 1));
	assert_true(start_with(&c->h, 0, &f, .op = STORE_SET, .key = "key", .value = "2", .length = 1));
	assert_true(start(&c->h, 0, &f, STORE_GET, "key"));
	assert_int_equal(newest(c), 0);
}

static void every_change_of_an_object_on_flash_outlives_a_crash(void **state)
{
	struct crash *c = *state;
	static const char *const keys[] = {
		"set-key", "delete-key", "append-key", "incr-key", "touch-key", "same-key"
	};

	for (unsigned i = 0; i < 6; i++)
		set_on_flash(&c->h, keys[i], "10");
	set(&c->h, "set-key", "20");
	assert_int_equal(run(&c->h, STORE_DELETE, "delete-key").result, STORE_DELETED);
	assert_int_equal(run_with(&c->h, STORE_APPEND, "append-key", "1").result, STORE_STORED);
	assert_int_equal(run_number(&c->h, STORE_INCR, "incr-key", 1).number, 11);
	assert_int_equal(run_expiry(&c->h, STORE_TOUCH, "touch-key", 1).result, STORE_TOUCHED);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	for (unsigned i = 0; i < 5; i++)
		assert_missing(&c->h, keys[i]);
	assert_value(&c->h, "same-key", "10");
}

static void change(struct harness *h)
{
	set(h, "key", "new");
}

/* The record in the segment under way is of no worth, although the segment is committed. */
static void an_object_that_changes_while_it_is_written(void **state)
{
	struct crash *c = *state;

	set(&c->h, "key", "old");
	while_planned(&c->h, "key", PHASE_WRITTEN, change);
	assert_value(&c->h, "key", "new");
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "key");
}

static void a_large_object_is_written_down_by_its_offset(void **state)
{
	struct crash *c = *state;
	static char large[6000];

	memset(large, 'l', sizeof(large));
	run_full(&c->h, .op = STORE_SET, .key = "large", .value = large, .length = sizeof(large));
	run_full(&c->h, .op = STORE_SET, .key = "other", .value = large, .length = sizeof(large));
	move(&c->h, "large");
	if (where(&c->h, "other") != FLASH)
		move(&c->h, "other");
	assert_int_equal(run(&c->h, STORE_DELETE, "large").result, STORE_DELETED);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "large");
	assert_int_equal(get(&c->h, "other").length, sizeof(large));
}

static void an_object_that_reclaim_has_brought_back(void **state)
{
	struct crash *c = *state;

	set_on_flash(&c->h, "key", "old");
	assert_value(&c->h, "key", "old"); /* read, hence reinserted */
	reclaim_of(&c->h, segment_of(&c->h, "key"));
	set(&c->h, "key", "new");
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_int_not_equal(get(&c->h, "key").result == STORE_HIT && get(&c->h, "key").value[0] == 'o', 1);
}

static void a_flush_outlives_a_crash(void **state)
{
	struct crash *c = *state;

	set_on_flash(&c->h, "key", "old");
	store_flush_all(c->h.store, 0);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "key");
}

static void a_pending_flush_comes_after_the_crash(void **state)
{
	struct crash *c = *state;

	set_on_flash(&c->h, "key", "old");
	store_flush_all(c->h.store, 30);
	crash_wall_advance(10);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_value(&c->h, "key", "old");
	seconds_pass(&c->h, 21);
	assert_missing(&c->h, "key");
}

static void a_pending_flush_that_was_due_meanwhile(void **state)
{
	struct crash *c = *state;

	set_on_flash(&c->h, "key", "old");
	store_flush_all(c->h.store, 5);
	crash_wall_advance(10);
	assert_int_equal(crash(c), STORE_START_REBUILT);
	crash_rebuild(c);
	assert_missing(&c->h, "key");
}

static void a_journal_that_fails_ends_before_the_answer(void **state)
{
	struct crash *c = *state;

	set_on_flash(&c->h, "key", "old");
	c->journal.fail_sync = -5;
	set(&c->h, "key", "new");
	assert_int_equal(ram_journal_count(&c->journal), 0);
	c->journal.fail_sync = 0;
	assert_int_equal(crash(c), STORE_START_NO_JOURNAL);
	assert_missing(&c->h, "key");
}

static void a_journal_that_cannot_even_be_removed(void **state)
{
	struct crash *c = *state;
	struct flight f;

	set_on_flash(&c->h, "key", "old");
	c->journal.fail_sync = c->journal.fail_remove = -5;
	assert_false(start_with(&c->h, 0, &f, .op = STORE_SET, .key = "key", .value = "new", .length = 3));
	turn(&c->h, 0);
	turn(&c->h, 0);
	assert_false(f.done);
	(void)cleaner_step(c->h.store); /* the flash gets another epoch */
	assert_int_equal(finish(&c->h, &f).result, STORE_STORED);
	c->journal.fail_sync = c->journal.fail_remove = 0;
	assert_int_equal(crash(c), STORE_START_NO_JOURNAL);
	assert_missing(&c->h, "key");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, crash_setup, crash_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_set_of_a_key_without_a_slot_writes_nothing_down),
		CASE(every_change_of_an_object_on_flash_outlives_a_crash),
		CASE(an_object_that_changes_while_it_is_written),
		CASE(a_large_object_is_written_down_by_its_offset),
		CASE(an_object_that_reclaim_has_brought_back),
		CASE(a_flush_outlives_a_crash),
		CASE(a_pending_flush_comes_after_the_crash),
		CASE(a_pending_flush_that_was_due_meanwhile),
		CASE(a_journal_that_fails_ends_before_the_answer),
		CASE(a_journal_that_cannot_even_be_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
