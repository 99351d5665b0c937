/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each command has the same answer and effect whether the object lies in DRAM, as a clean copy there, or on flash; and so
 * has its absence.
 */
#include "tests/unit/server/store/operations.h"

/* ---- absent keys ----------------------------------------------------------------------------- */

static void assert_absent(struct harness *h, const struct operation *operation, const char *key)
{
	struct flight f;
	bool object = operation->op == STORE_SET || operation->op == STORE_ADD || operation->op == STORE_REPLACE ||
		      operation->op == STORE_APPEND || operation->op == STORE_PREPEND || operation->op == STORE_CAS;

	if (object)
		start_with(h, 0, &f, .op = operation->op, .key = key, .value = "n", .length = 1, .cas = 1);
	else
		start(h, 0, &f, operation->op, key);
	assert_int_equal(finish(h, &f).result, operation->when_absent);
	if (operation->when_absent == STORE_STORED)
		assert_value(h, key, "n");
	else
		assert_missing(h, key);
}

static void each_command_on_a_key_that_never_was(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (unsigned n = 0; n < OPERATION_COUNT; n++) {
		assert_absent(h, &OPERATIONS[n], "k");
		run(h, STORE_DELETE, "k");
	}
	assert_nothing_left(h);
}

static void each_command_on_a_key_that_was_deleted_on_flash(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (unsigned n = 0; n < OPERATION_COUNT; n++) {
		set_on_flash(h, "k", "old");
		run(h, STORE_DELETE, "k");
		assert_absent(h, &OPERATIONS[n], "k");
	}
}

static void each_command_on_an_expired_object(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (unsigned n = 0; n < 2 * OPERATION_COUNT; n++) {
		run_full(h, .op = STORE_SET, .key = "k", .value = "old", .length = 3, .exptime = 5);
		if (n % 2)
			move(h, "k");
		seconds_pass(h, 5);
		assert_absent(h, &OPERATIONS[n / 2], "k");
	}
}

static void each_command_on_a_flushed_object(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (unsigned n = 0; n < 2 * OPERATION_COUNT; n++) {
		set(h, "k", "old");
		if (n % 2)
			move(h, "k");
		store_flush_all(h->store, 0);
		assert_absent(h, &OPERATIONS[n / 2], "k");
	}
}

/* ---- the same everywhere --------------------------------------------------------------------- */

static void put_in(struct harness *h, enum where place, const char *key)
{
	if (place != DRAM)
		move(h, key);
	if (place == CLEAN_COPY)
		make_clean_copy(h, key);
	assert_int_equal(where(h, key), place);
}

static void run_everything(struct harness *h, enum where place)
{
	struct subject subjects[SUBJECTS];

	for (unsigned n = 0; n < OPERATION_COUNT; n++) {
		const struct operation *operation = &OPERATIONS[n];

		subjects_make(h, subjects, n);
		for (unsigned i = 0; i < SUBJECTS; i++)
			put_in(h, place, subjects[i].key);
		for (unsigned i = 0; i < SUBJECTS; i++) {
			operation->act(h, &subjects[i]);
			if (!operation->reads_only && operation->value)
				assert_int_equal(where(h, subjects[i].key), DRAM);
			if (!operation->reads_only)
				assert_int_equal(slots_of(h, subjects[i].key), 0);
			subject_check(h, operation, &subjects[i]);
		}
		for (unsigned i = 0; i < SUBJECTS; i += 2) /* and after its (next) way to flash */
			if (where(h, subjects[i].key) == DRAM)
				move(h, subjects[i].key);
		for (unsigned i = 0; i < SUBJECTS; i++)
			subject_check(h, operation, &subjects[i]);
		subjects_expire(h, operation, subjects);
	}
}

static void each_command_on_an_object_in_dram(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_everything(h, DRAM);
}

static void each_command_on_an_object_on_flash(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_everything(h, FLASH);
}

static void each_command_on_a_clean_copy(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	run_everything(h, CLEAN_COPY);
}

static void each_command_with_reads_from_the_submitter_thread(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	fault_arm(FAULT_device_read_again, FAULT_ALWAYS, 0);
	run_everything(h, FLASH);
}

/* ---- clean copies ---------------------------------------------------------------------------- */

static void a_clean_copy_keeps_its_slot_and_is_dropped_not_rewritten_by_eviction(void **state)
{
	struct harness *h = *state;
	uint64_t visited, evictions = ctr_sum(CTR_evictions);

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "val");
	make_clean_copy(h, "k");
	assert_int_equal(slots_of(h, "k"), 1);
	uint64_t written = ctr_sum(CTR_flash_objects_written);
	for (int i = 0; i < 6 && where(h, "k") == CLEAN_COPY; i++)
		evict_dram(&h->store->cleaner->context, UINT64_MAX / 2, 1 << 20, EVICT_SPARE_CANDIDATES, false,
			   &visited);
	assert_int_equal(where(h, "k"), FLASH);
	assert_int_equal(ctr_sum(CTR_flash_objects_written), written);
	assert_int_equal(ctr_sum(CTR_evictions), evictions);
	assert_true(get(h, "k").from_flash);
	assert_value(h, "k", "val");
}

static void any_change_of_a_clean_copy_clears_its_slots_first_touch_included(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "val");
	make_clean_copy(h, "k");
	assert_int_equal(run_expiry(h, STORE_TOUCH, "k", 50).result, STORE_TOUCHED);
	assert_int_equal(slots_of(h, "k"), 0);
	assert_int_equal(where(h, "k"), DRAM);
	assert_value(h, "k", "val");
}

static void an_expired_clean_copy_takes_its_slot_along_when_met(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "k", .value = "val", .length = 3, .exptime = 10);
	move(h, "k");
	make_clean_copy(h, "k");
	seconds_pass(h, 10);
	assert_missing(h, "k");
	assert_int_equal(where(h, "k"), NOWHERE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_command_on_a_key_that_never_was),
		TEST(each_command_on_a_key_that_was_deleted_on_flash),
		TEST(each_command_on_an_expired_object),
		TEST(each_command_on_a_flushed_object),
		TEST(each_command_on_an_object_in_dram),
		TEST(each_command_on_an_object_on_flash),
		TEST(each_command_on_a_clean_copy),
		TEST(each_command_with_reads_from_the_submitter_thread),
		TEST(a_clean_copy_keeps_its_slot_and_is_dropped_not_rewritten_by_eviction),
		TEST(any_change_of_a_clean_copy_clears_its_slots_first_touch_included),
		TEST(an_expired_clean_copy_takes_its_slot_along_when_met),
	};

	return cmocka_run_group_tests_name("store: commands, wherever the object lies", tests, NULL, NULL);
}
