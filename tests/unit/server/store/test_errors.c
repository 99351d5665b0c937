/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A failed write leaves the objects in DRAM; a failed or corrupt read is a miss
 * with its own counter; a read that timed out keeps its buffer and its pin until it completes.
 */
#include "harness.h"
#include "segments/segments_internal.h"

static void a_failed_write_leaves_the_objects_in_dram_and_readable(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set(h, "key", "value");
	uint64_t errors = ctr_sum(CTR_flash_write_errors);
	fault_arm(FAULT_device_write_eio, FAULT_ALWAYS, 0);
	assert_false(write_one(h));
	fault_disarm_all();
	assert_true(ctr_sum(CTR_flash_write_errors) > errors);
	assert_int_equal(where(h, "key"), DRAM);
	assert_value(h, "key", "value");
	assert_int_equal(atomic_load(&h->store->plan_bytes), 0);
	seconds_pass(h, 120);
	move(h, "key"); /* the place is retired, the next one takes it */
	assert_value(h, "key", "value");
}

static void a_failed_read_is_a_miss_with_its_own_counter(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	uint64_t errors = ctr_sum(CTR_flash_read_errors), misses = ctr_sum(CTR_get_misses);
	fault_arm(FAULT_device_read_eio, FAULT_AFTER, 0);
	assert_missing(h, "key");
	assert_int_equal(ctr_sum(CTR_flash_read_errors), errors + 1);
	assert_int_equal(ctr_sum(CTR_get_misses), misses + 1);
	assert_value(h, "key", "value");
}

static void a_corrupt_read_is_a_miss_with_its_own_counter(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	uint64_t errors = ctr_sum(CTR_flash_checksum_errors), bad = ctr_sum(CTR_false_matches), met = bad + errors;
	fault_arm(FAULT_device_read_corrupt, FAULT_ALWAYS, 0);
	assert_missing(h, "key");
	assert_true(ctr_sum(CTR_flash_checksum_errors) + ctr_sum(CTR_false_matches) > met);
	fault_disarm_all();
}

/* What an absent key was answered with must stay true: the value can't come back later. */
static void after_a_failed_read_no_command_brings_the_value_back(void **state)
{
	static const enum store_op ops[] = { STORE_DELETE, STORE_TOUCH, STORE_INCR, STORE_GAT };
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		set_on_flash(h, "key", "10");
		fault_arm(FAULT_device_read_eio, FAULT_AFTER, 0);
		assert_int_equal(run(h, ops[i], "key").result, STORE_MISS);
		assert_missing(h, "key");
	}
	set_on_flash(h, "key", "10");
	fault_arm(FAULT_device_read_eio, FAULT_AFTER, 0);
	assert_int_equal(run_with(h, STORE_ADD, "key", "new").result, STORE_STORED);
	assert_value(h, "key", "new");
}

/* ---- slow reads ------------------------------------------------------------------------------ */

/* The read is under way and held back; the clock passes the limit. */
static void time_out(struct harness *h, struct flight *f)
{
	uint64_t timeouts = ctr_sum(CTR_flash_read_timeouts);

	store_worker_flush(h->worker[0]);
	seconds_pass(h, 2);
	store_worker_poll(h->worker[0]);
	if (!f->done) /* it completed in this very poll, or the poll came first */
		turn(h, 0);
	assert_true(f->done);
	assert_int_equal(ctr_sum(CTR_flash_read_timeouts), timeouts + 1);
}

static void a_read_that_is_too_slow_is_a_miss_and_its_late_completion_harmless(void **state)
{
	struct harness *h = *state;
	struct flight f;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	uint32_t segment = segment_of(h, "key");
	fault_arm(FAULT_device_read_slow, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &f, STORE_GET, "key"));
	time_out(h, &f);
	assert_int_equal(f.reply.result, STORE_MISS);
	assert_int_equal(store_worker_pending(h->worker[0]), 0);
	assert_true(atomic_load(&h->store->segments->live[segment].pins) > 0); /* still held */
	fault_disarm_all();
	while (atomic_load(&h->store->segments->live[segment].pins) > 0)
		store_worker_poll(h->worker[0]);
	assert_value(h, "key", "value");
}

static void a_change_that_timed_out_is_true_afterwards(void **state)
{
	struct harness *h = *state;
	struct flight f;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	fault_arm(FAULT_device_read_slow, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &f, STORE_DELETE, "key"));
	time_out(h, &f);
	assert_int_equal(f.reply.result, STORE_MISS);
	fault_disarm_all();
	assert_missing(h, "key"); /* what was said to be absent does not come back */
	set_on_flash(h, "key", "value");
	fault_arm(FAULT_device_read_slow, FAULT_ALWAYS, 0);
	assert_false(start_with(h, 0, &f, .op = STORE_ADD, .key = "key", .value = "mine", .length = 4));
	time_out(h, &f);
	assert_int_equal(f.reply.result, STORE_STORED);
	fault_disarm_all();
	assert_value(h, "key", "mine");
}

static void a_get_that_timed_out_does_not_answer_what_was_set_later(void **state)
{
	struct harness *h = *state;
	struct flight f, other;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	fault_arm(FAULT_device_read_slow, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &f, STORE_GET, "key"));
	start_with(h, 1, &other, .op = STORE_SET, .key = "key", .value = "new", .length = 3);
	time_out(h, &f);
	assert_int_equal(f.reply.result, STORE_MISS);
	fault_disarm_all();
	assert_value(h, "key", "new");
}

static void a_worker_with_abandoned_reads_can_be_destroyed(void **state)
{
	struct harness *h = *state;
	struct flight f;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	fault_arm(FAULT_device_read_slow, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &f, STORE_GET, "key"));
	time_out(h, &f);
	harness_close(h);
}

static void a_device_that_fails_again_and_again_leaves_a_dram_cache(void **state)
{
	struct harness *h = *state;
	struct store_status status;
	char key[16];

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "key:%d", i);
		set(h, key, "value");
	}
	move(h, "key:39");
	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "key:%d", i);
		get(h, key);
		get(h, "key:39");
	}
	store_get_status(h->store, &status);
	assert_true(status.segments.offline);
	assert_int_equal(set(h, "key:39", "new").result, STORE_STORED);
	assert_value(h, "key:39", "new");
	assert_false(write_one(h));
	assert_value(h, "key:39", "new");
	fault_disarm_all();
	for (int i = 0; i < 100 && !write_one(h); i++)
		seconds_pass(h, 10); /* it tries again, with back-off */
	move(h, "key:39");
	assert_value(h, "key:39", "new");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_failed_write_leaves_the_objects_in_dram_and_readable),
		TEST(a_failed_read_is_a_miss_with_its_own_counter),
		TEST(a_corrupt_read_is_a_miss_with_its_own_counter),
		TEST(after_a_failed_read_no_command_brings_the_value_back),
		TEST(a_read_that_is_too_slow_is_a_miss_and_its_late_completion_harmless),
		TEST(a_change_that_timed_out_is_true_afterwards),
		TEST(a_get_that_timed_out_does_not_answer_what_was_set_later),
		TEST(a_worker_with_abandoned_reads_can_be_destroyed),
		TEST(a_device_that_fails_again_and_again_leaves_a_dram_cache),
	};

	return cmocka_run_group_tests_name("store: errors and slow reads", tests, NULL, NULL);
}
