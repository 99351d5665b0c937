/* SPDX-License-Identifier: BSD-3-Clause */
/* The reclaim of segments of bins: what comes back into DRAM, and what doesn't. */
#include "tests/unit/server/store/harness.h"

static int setup_frugal(void **state)
{
	int result = setup_in_memory(state);

	((struct harness *)*state)->config.index = STORE_INDEX_FRUGAL;
	harness_open(*state);
	return result;
}

static bool came_back(struct harness *h, const char *key)
{
	return item_in_dram(h, key) != NULL;
}

static void reclaim_now(struct harness *h, uint32_t segment)
{
	assert_true(reclaim_segment(h->store, segment));
	assert_false(frugal_is_open(h->store->frugal, segment, seg_sequence(h->store->segments, segment)));
}

static void what_was_read_on_flash_comes_back(void **state)
{
	struct harness *h = *state;
	uint64_t dropped = ctr_sum(CTR_flash_objects_dropped);
	uint32_t segment;

	set_on_flash(h, "read", "value");
	segment = segment_of(h, "read");
	assert_value(h, "read", "value");
	reclaim_now(h, segment);
	assert_true(came_back(h, "read"));
	assert_value(h, "read", "value");
	assert_true(ctr_sum(CTR_flash_objects_dropped) > dropped); /* the others */
}

static void what_was_not_read_goes(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	set_on_flash(h, "key", "value");
	segment = segment_of(h, "key");
	reclaim_now(h, segment);
	assert_false(came_back(h, "key"));
	assert_missing(h, "key");
}

static void what_was_overwritten_or_deleted_does_not_come_back(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	set_on_flash(h, "key", "one");
	segment = segment_of(h, "key");
	assert_value(h, "key", "one");
	set_on_flash(h, "key", "two");
	reclaim_now(h, segment);
	assert_false(came_back(h, "key"));
	assert_value(h, "key", "two");
	segment = segment_of(h, "key");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	reclaim_now(h, segment);
	assert_missing(h, "key");
}

static void what_came_back_and_was_changed_is_not_met_on_flash(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	set_on_flash(h, "key", "one");
	segment = segment_of(h, "key");
	assert_value(h, "key", "one");
	reclaim_now(h, segment);
	assert_true(came_back(h, "key"));
	assert_true(item_in_dram(h, "key")->state & ITEM_KEPT);
	assert_int_equal(set(h, "key", "two").result, STORE_STORED);
	assert_value(h, "key", "two");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_missing(h, "key");
	assert_true(write_one(h));
	assert_missing(h, "key");
}

static void a_copy_for_reading_becomes_the_object(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "key", "value");
	segment = segment_of(h, "key");
	make_clean_copy(h, "key");
	reclaim_now(h, segment);
	assert_int_equal(where(h, "key"), DRAM);
	assert_value(h, "key", "value");
}

static void a_walk_that_fails_loses_objects_and_finds_nothing_old(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "key", "one");
	segment = segment_of(h, "key");
	fault_arm(FAULT_reclaim_walk_fails, FAULT_ALWAYS, 0);
	reclaim_now(h, segment);
	fault_disarm_all();
	assert_true(where(h, "key") == NOWHERE || where(h, "key") == DRAM);
	set_on_flash(h, "key", "two");
	assert_value(h, "key", "two");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_read_on_flash_comes_back, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_was_not_read_goes, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_was_overwritten_or_deleted_does_not_come_back, setup_frugal,
						teardown),
		cmocka_unit_test_setup_teardown(what_came_back_and_was_changed_is_not_met_on_flash, setup_frugal,
						teardown),
		cmocka_unit_test_setup_teardown(a_copy_for_reading_becomes_the_object, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(a_walk_that_fails_loses_objects_and_finds_nothing_old, setup_frugal,
						teardown),
	};

	return cmocka_run_group_tests_name("store: reclaim of bins", tests, NULL, NULL);
}
