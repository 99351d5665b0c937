/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's values and time-outs: a read that timed out keeps its buffer and its pin until it completes. */
#include <errno.h>

#include "segments/segments_internal.h"
#include "tests/unit/server/store/harness.h"

/* ---- objects and the clock ------------------------------------------------------------------- */

static void without_flash_no_descriptor_and_no_work(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	struct store_worker_fds fds = store_worker_fds(h->worker[0]);
	assert_int_equal(fds.completions, -1);
	assert_int_equal(fds.timer, -1);
	store_worker_poll(h->worker[0]);
	store_worker_flush(h->worker[0]);
	assert_false(store_worker_has_work(h->worker[0]));
	assert_int_equal(store_worker_pending(h->worker[0]), 0);
}

/* The kernel has no context for asynchronous reads left. */
static void a_worker_without_a_reader_is_none(void **state)
{
	struct harness *h = *state;
	struct store_worker *worker;

	if (!HAVE_FAULTS)
		skip();
	assert_int_equal(harness_try_open(h), FS_OK);
	fault_arm(FAULT_aio_setup, FAULT_ALWAYS, 0);
	assert_int_equal(store_worker_create(&worker, h->store), FS_ESYS);
	assert_int_equal(errno, EAGAIN);
	assert_null(worker);
	fault_disarm_all();
	assert_int_equal(store_worker_create(&worker, h->store), FS_OK);
	store_worker_destroy(worker);
}

static void an_object_is_refused_with_the_reason_and_costs_nothing(void **state)
{
	struct harness *h = *state;
	enum store_result why = STORE_HIT;

	h->config.flash_path = NULL;
	h->config.evict = false;
	h->config.memory_bytes = MIB(2);
	h->config.max_item_bytes = MIB(4);
	harness_open(h);
	assert_null(store_item_create(h->worker[0], "key", 3, 0, 0, MIB(4), &why));
	assert_int_equal(why, STORE_TOO_LARGE);
	uint32_t half = (uint32_t)(store_free_bytes(h->store) / 3 * 2);
	struct item *item = store_item_create(h->worker[0], "key", 3, 0, 0, half, &why);
	assert_non_null(item);
	assert_null(store_item_create(h->worker[0], "key", 3, 0, 0, half, &why));
	assert_int_equal(why, STORE_NO_MEMORY);
	struct store_class_status status;
	store_get_class(h->store, size_class(store_item_bytes(h->store, 3, 0, half)), &status);
	assert_int_equal(status.out_of_memory, 1);
	store_item_drop(h->worker[0], item); /* it counted at once, and does no more */
	item = store_item_create(h->worker[0], "key", 3, 0, 0, half, &why);
	assert_non_null(item);
	store_item_drop(h->worker[0], item);
	assert_nothing_left(h);
}

static void a_turn_has_one_time_and_a_look_at_the_clock_leaves_it(void **state)
{
	struct harness *h = *state;
	struct store_worker *worker;

	harness_open(h);
	worker = h->worker[0];
	uint64_t turn_ns = store_worker_turn(worker);
	clk_scripted_advance(&h->clk, 3000000);
	assert_int_equal(store_worker_now_ns(worker), turn_ns + 3000000000ull);
	assert_int_equal(worker->now_us, turn_ns / 1000);
	assert_int_equal(store_worker_turn(worker), turn_ns + 3000000000ull);
	assert_int_equal(worker->now_seconds, 2 + 3); /* they begin at 2 */
}

static void a_turn_does_a_flush_whose_second_has_come(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	store_flush_all(h->store, 2);
	clk_scripted_advance(&h->clk, 1999999);
	store_worker_turn(h->worker[0]);
	assert_value(h, "key", "value");
	clk_scripted_advance(&h->clk, 1);
	store_worker_turn(h->worker[0]);
	assert_missing(h, "key");
}

static void what_a_request_reads_is_in_the_account_until_its_worker_ends(void **state)
{
	struct harness *h = *state;
	struct flight f;

	harness_open(h);
	set_on_flash(h, "key", "value");
	store_worker_flush(h->worker[1]);
	uint64_t before = h->store->reader_bytes;
	assert_false(start(h, 1, &f, STORE_GET, "key"));
	assert_int_equal(store_worker_pending(h->worker[1]), 1);
	store_worker_flush(h->worker[1]);
	assert_true(h->store->reader_bytes >= before + sizeof(struct store_lookup) + sizeof(struct flash_read));
	assert_int_equal(finish(h, &f).result, STORE_HIT);
	assert_int_equal(store_worker_pending(h->worker[1]), 0);
}

static void a_released_value_is_zeroed_and_may_be_released_again(void **state)
{
	struct harness *h = *state;
	struct store_request request = { .op = STORE_GET, .key = "key", .key_length = 3 };

	harness_open(h);
	set(h, "key", "value");
	request.hash = store_hash(h->store, "key", 3);
	assert_true(store_execute(h->worker[0], &request));
	struct item *item = request.value.item;
	assert_int_equal(item->refs, 2);
	for (int i = 0; i < 2; i++) {
		store_value_release(h->worker[0], &request.value);
		assert_int_equal(item->refs, 1);
		assert_null(request.value.data);
		assert_int_equal(request.value.length, 0);
	}
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

	harness_open(h);
	set_on_flash(h, "key", "value");
	uint32_t segment = segment_of(h, "key");
	h->ram->hold = true;
	assert_false(start(h, 0, &f, STORE_GET, "key"));
	time_out(h, &f);
	assert_int_equal(f.reply.result, STORE_MISS);
	assert_int_equal(store_worker_pending(h->worker[0]), 0);
	assert_true(atomic_load(&h->store->segments->live[segment].pins) > 0); /* still held */
	h->ram->hold = false;
	while (atomic_load(&h->store->segments->live[segment].pins) > 0)
		store_worker_poll(h->worker[0]);
	assert_value(h, "key", "value");
}

static void a_change_that_timed_out_is_true_afterwards(void **state)
{
	struct harness *h = *state;
	struct flight f;

	harness_open(h);
	set_on_flash(h, "key", "value");
	h->ram->hold = true;
	assert_false(start(h, 0, &f, STORE_DELETE, "key"));
	time_out(h, &f);
	assert_int_equal(f.reply.result, STORE_MISS);
	h->ram->hold = false;
	assert_missing(h, "key"); /* what was said to be absent does not come back */
	set_on_flash(h, "key", "value");
	h->ram->hold = true;
	assert_false(start_with(h, 0, &f, .op = STORE_ADD, .key = "key", .value = "mine", .length = 4));
	time_out(h, &f);
	assert_int_equal(f.reply.result, STORE_STORED);
	h->ram->hold = false;
	assert_value(h, "key", "mine");
}

static void a_get_that_timed_out_does_not_answer_what_was_set_later(void **state)
{
	struct harness *h = *state;
	struct flight f, other;

	harness_open(h);
	set_on_flash(h, "key", "value");
	h->ram->hold = true;
	assert_false(start(h, 0, &f, STORE_GET, "key"));
	start_with(h, 1, &other, .op = STORE_SET, .key = "key", .value = "new", .length = 3);
	time_out(h, &f);
	assert_int_equal(f.reply.result, STORE_MISS);
	h->ram->hold = false;
	assert_value(h, "key", "new");
}

static void a_worker_with_abandoned_reads_can_be_destroyed(void **state)
{
	struct harness *h = *state;
	struct flight f;

	harness_open(h);
	set_on_flash(h, "key", "value");
	h->ram->hold = true;
	assert_false(start(h, 0, &f, STORE_GET, "key"));
	time_out(h, &f);
	h->ram->hold = false;
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
/* With a drive that answers when the test lets it. */
#define HELD(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_flash_no_descriptor_and_no_work),
		TEST(a_worker_without_a_reader_is_none),
		TEST(an_object_is_refused_with_the_reason_and_costs_nothing),
		TEST(a_turn_has_one_time_and_a_look_at_the_clock_leaves_it),
		TEST(a_turn_does_a_flush_whose_second_has_come),
		TEST(what_a_request_reads_is_in_the_account_until_its_worker_ends),
		TEST(a_released_value_is_zeroed_and_may_be_released_again),
		HELD(a_read_that_is_too_slow_is_a_miss_and_its_late_completion_harmless),
		HELD(a_change_that_timed_out_is_true_afterwards),
		HELD(a_get_that_timed_out_does_not_answer_what_was_set_later),
		HELD(a_worker_with_abandoned_reads_can_be_destroyed),
		TEST(a_value_stays_valid_until_released_whatever_becomes_of_its_segment),
	};

	return cmocka_run_group_tests_name("store: workers", tests, NULL, NULL);
}
