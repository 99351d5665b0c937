/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads of small objects with the frugal index: what they find, what they cost, and what damage does. */
#include "tests/unit/server/store/harness.h"

static int setup_frugal(void **state)
{
	int result = setup_in_memory(state);

	((struct harness *)*state)->config.index = STORE_INDEX_FRUGAL;
	harness_open(*state);
	keep_no_reads(*state);
	return result;
}

static void a_hit_costs_one_read(void **state)
{
	struct harness *h = *state;
	uint64_t reads;

	set_on_flash(h, "key", "value");
	assert_int_equal(slots_of(h, "key"), 1);
	assert_int_equal(h->store->index ? fidx_segment_slots(h->store->index, segment_of(h, "key")) : 0, 0);
	reads = ctr_sum(CTR_flash_reads);
	assert_value(h, "key", "value");
	assert_int_equal(ctr_sum(CTR_flash_reads), reads + 1);
}

static void of_two_records_the_newer_is_answered(void **state)
{
	struct harness *h = *state;

	set_on_flash(h, "key", "one");
	set_on_flash(h, "key", "two");
	assert_value(h, "key", "two");
	assert_int_equal(run_with(h, STORE_APPEND, "key", "+").result, STORE_STORED);
	assert_value(h, "key", "two+");
	move(h, "key");
	assert_value(h, "key", "two+");
}

static void what_was_deleted_is_gone_and_stays_so(void **state)
{
	struct harness *h = *state;
	uint64_t reads;

	set_on_flash(h, "key", "one");
	set_on_flash(h, "key", "two");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	reads = ctr_sum(CTR_flash_reads);
	assert_missing(h, "key");
	assert_int_equal(ctr_sum(CTR_flash_reads), reads);
	for (int i = 0; i < 5; i++) {
		assert_true(write_one(h));
		assert_missing(h, "key");
	}
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_MISS);
}

static void damage_in_the_newest_bin_is_a_miss_and_no_older_value(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "key", "one");
	set_on_flash(h, "key", "two");
	fault_arm(FAULT_device_read_eio, FAULT_AFTER, 0);
	assert_missing(h, "key");
	fault_disarm_all();
	assert_missing(h, "key");
	assert_true(write_one(h));
	assert_missing(h, "key");
	set_on_flash(h, "key", "three");
	assert_value(h, "key", "three");
}

static void keys_that_were_never_set_cost_few_reads(void **state)
{
	struct harness *h = *state;
	uint64_t reads;
	char key[24];

	set_on_flash(h, "key", "value");
	reads = ctr_sum(CTR_flash_reads);
	for (int n = 0; n < 2000; n++) {
		snprintf(key, sizeof(key), "absent-%d", n);
		assert_missing(h, key);
	}
	assert_true(ctr_sum(CTR_flash_reads) - reads < 100);
}

static void an_expired_record_hides_older_ones(void **state)
{
	struct harness *h = *state;

	set_on_flash(h, "key", "one");
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "key", .value = "two", .length = 3, .exptime = 100).result,
			 STORE_STORED);
	move(h, "key");
	assert_value(h, "key", "two");
	seconds_pass(h, 101);
	assert_missing(h, "key");
	assert_missing(h, "key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_hit_costs_one_read, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(of_two_records_the_newer_is_answered, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_was_deleted_is_gone_and_stays_so, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(damage_in_the_newest_bin_is_a_miss_and_no_older_value, setup_frugal,
						teardown),
		cmocka_unit_test_setup_teardown(keys_that_were_never_set_cost_few_reads, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(an_expired_record_hides_older_ones, setup_frugal, teardown),
	};

	return cmocka_run_group_tests_name("store: lookup in bins", tests, NULL, NULL);
}
