/* SPDX-License-Identifier: BSD-3-Clause */
/* The state that a journal's entries make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "server/store/state/journal.h"

static struct journal_state s;

static int begin(void **state)
{
	(void)state;
	return journal_state_init(&s, 100);
}

static int end(void **state)
{
	(void)state;
	journal_state_fini(&s);
	return 0;
}

static bool take(enum journal_kind kind, uint16_t segment, uint32_t small, uint64_t value)
{
	return journal_state_take(
		&s,
		&(struct journal_entry){ .kind = (uint8_t)kind, .segment = segment, .small = small, .value = value });
}

static void marks_only_rise(void **state)
{
	(void)state;
	assert_true(take(JOURNAL_FLOOR, 0, 0, 10) && take(JOURNAL_FLOOR, 0, 0, 7));
	assert_int_equal(s.floor, 10);
	assert_true(take(JOURNAL_FLUSH, 0, 0, 10) && take(JOURNAL_FLUSH, 0, 0, 7));
	assert_int_equal(s.flush_cas, 10);
}

static void a_flush_ends_the_pending_one(void **state)
{
	(void)state;
	assert_true(take(JOURNAL_FLUSH_AT, 0, 0, 500));
	assert_int_equal(s.flush_at, 500);
	assert_true(take(JOURNAL_FLUSH, 0, 0, 1));
	assert_int_equal(s.flush_at, 0);
}

static void the_time_of_the_last_service_is_the_last_one_told(void **state)
{
	(void)state;
	assert_true(take(JOURNAL_SERVED, 0, 0, 500));
	assert_int_equal(s.served_s, 500);
	assert_true(take(JOURNAL_SERVED, 0, 0, 0));
	assert_int_equal(s.served_s, 0);
}

static void a_table_makes_room_for_another_when_no_segment_needs_it(void **state)
{
	(void)state;
	for (uint32_t id = 0; id < JOURNAL_TABLES_MOST; id++) {
		assert_true(take(JOURNAL_TABLE, 0, 64, id));
		assert_true(take(JOURNAL_COMMIT, (uint16_t)id, id, 10 + id));
	}
	assert_true(take(JOURNAL_TABLE, 0, 64, 3)); /* known */
	assert_false(take(JOURNAL_TABLE, 0, 65, 3)); /* a table never changes */
	assert_false(take(JOURNAL_TABLE, 0, 64, 99));
	assert_true(take(JOURNAL_FLOOR, 0, 0, 10)); /* the first one's segment is gone */
	assert_true(take(JOURNAL_TABLE, 0, 128, 99));
	assert_null(journal_state_table(&s, 0));
	assert_int_equal(journal_state_table(&s, 99)->buckets, 128);
	assert_int_equal(journal_state_table(&s, 7)->buckets, 64);
}

/* An index that was made anew, by a rebuild or empty, counts its tables from the newest one that it has needed. */
static void the_id_of_a_table_that_no_segment_needs_may_come_back(void **state)
{
	(void)state;
	assert_true(take(JOURNAL_TABLE, 0, 64, 3) && take(JOURNAL_COMMIT, 0, 3, 10));
	assert_true(take(JOURNAL_TABLE, 0, 128, 4) && take(JOURNAL_COMMIT, 1, 4, 11));
	assert_false(take(JOURNAL_TABLE, 0, 65, 4));
	assert_true(take(JOURNAL_UNCOMMIT, 1, 0, 11));
	assert_true(take(JOURNAL_TABLE, 0, 65, 4));
	assert_int_equal(journal_state_table(&s, 4)->buckets, 65);
	assert_int_equal(journal_state_table(&s, 3)->buckets, 64);
	assert_true(take(JOURNAL_COMMIT, 1, 4, 12));
	assert_false(take(JOURNAL_TABLE, 0, 64, 4));
}

static void a_segment_is_uncommitted_by_its_sequence(void **state)
{
	(void)state;
	assert_true(take(JOURNAL_COMMIT, 99, 0, 5));
	assert_true(take(JOURNAL_UNCOMMIT, 99, 0, 4));
	assert_int_equal(s.commit[99].sequence, 5);
	assert_true(take(JOURNAL_UNCOMMIT, 99, 0, 5));
	assert_int_equal(s.commit[99].sequence, 0);
	assert_false(take(JOURNAL_COMMIT, 100, 0, 5));
	assert_false(take(JOURNAL_UNCOMMIT, 100, 0, 5));
}

static void other_entries_are_none_of_it(void **state)
{
	(void)state;
	assert_false(take(JOURNAL_DEAD, 0, 0, 5));
	assert_false(take(JOURNAL_CHANGED, 0, 0, 5));
	assert_false(take(JOURNAL_FILE, 0, 1, 5));
	assert_false(take(JOURNAL_KINDS, 0, 0, 0));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(marks_only_rise),
		CASE(a_flush_ends_the_pending_one),
		CASE(the_time_of_the_last_service_is_the_last_one_told),
		CASE(a_table_makes_room_for_another_when_no_segment_needs_it),
		CASE(the_id_of_a_table_that_no_segment_needs_may_come_back),
		CASE(a_segment_is_uncommitted_by_its_sequence),
		CASE(other_entries_are_none_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
