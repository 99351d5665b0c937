/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's values and time-outs: a read that timed out keeps its buffer and its pin until it completes. */
#include "segments/segments_internal.h"
#include "tests/unit/server/store/harness.h"

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

/* ---- values ---------------------------------------------------------------------------------- */

static struct store_value held;

static void hold(struct store_request *request)
{
	held = request->value;
}

static void a_value_stays_valid_until_released_whatever_becomes_of_its_segment(void **state)
{
	struct harness *h = *state;
	struct store_request request = { .op = STORE_GET, .key = "k", .key_length = 1, .done = hold };

	harness_open(h);
	set_on_flash(h, "k", "the value");
	uint32_t segment = segment_of(h, "k");
	request.hash = store_hash(h->store, "k", 1);
	held.data = NULL;
	assert_false(store_execute(h->worker[0], &request));
	drain(h, 0);
	assert_true(held.from_flash);
	set(h, "k", "new");
	reclaim_of(h, segment);
	assert_memory_equal(held.data, "the value", 9);
	store_value_release(h->worker[0], &held);
	set(h, "k", "new");
	request.op = STORE_GET; /* and one from DRAM */
	assert_true(store_execute(h->worker[0], &request));
	run(h, STORE_DELETE, "k");
	assert_memory_equal(request.value.data, "new", 3);
	store_value_release(h->worker[0], &request.value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_read_that_is_too_slow_is_a_miss_and_its_late_completion_harmless),
		TEST(a_change_that_timed_out_is_true_afterwards),
		TEST(a_get_that_timed_out_does_not_answer_what_was_set_later),
		TEST(a_worker_with_abandoned_reads_can_be_destroyed),
		TEST(a_value_stays_valid_until_released_whatever_becomes_of_its_segment),
	};

	return cmocka_run_group_tests_name("store: workers", tests, NULL, NULL);
}
