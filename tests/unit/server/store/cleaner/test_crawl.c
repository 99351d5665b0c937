/* SPDX-License-Identifier: BSD-3-Clause */
/* The crawler that can be asked and set, and -m that changes at run time. */
#include "tests/unit/server/store/harness.h"

static struct store_crawler_status crawler(struct harness *h)
{
	struct store_crawler_status status;

	store_get_crawler_status(h->store, &status);
	return status;
}

static void set_crawler(struct harness *h, bool enabled, uint32_t sleep_us, uint32_t to_crawl)
{
	store_set_crawler(h->store,
			  &(struct store_crawler){ .enabled = enabled, .sleep_us = sleep_us, .to_crawl = to_crawl });
}

/* So many, which expire after ten seconds, and as many that never do. */
static void set_pairs(struct harness *h, unsigned count)
{
	char key[24];

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "expires:%u", n);
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = key, .value = "value", .length = 5, .exptime = 10).result,
			STORE_STORED);
		snprintf(key, sizeof(key), "stays:%u", n);
		assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = "value", .length = 5).result,
				 STORE_STORED);
	}
}

/* Steps of the cleaner, the clock standing still, until the asked-for crawl is over; at most so many. */
static unsigned steps_of_crawl(struct harness *h, unsigned most)
{
	unsigned steps = 0;

	while (crawler(h).running && steps < most) {
		store_clean_step(h->store);
		steps++;
	}
	return steps;
}

/* No pass by itself is due for a while after this. */
static void let_ten_seconds_pass(struct harness *h)
{
	set_crawler(h, false, 0, 0);
	seconds_pass(h, 10);
	store_clean_step(h->store);
}

static void dram_only(struct harness *h)
{
	h->config.flash_path = NULL;
	harness_open(h);
}

/* ---- crawls ---------------------------------------------------------------------------------- */

static void nothing_runs_that_was_not_asked_for(void **state)
{
	struct harness *h = *state;

	dram_only(h);
	assert_false(crawler(h).running);
	store_clean_step(h->store);
	assert_false(crawler(h).running);
}

static void a_crawl_that_runs_is_not_begun_again(void **state)
{
	struct harness *h = *state;
	uint64_t starts;

	dram_only(h);
	starts = crawler(h).starts;
	assert_true(store_crawl(h->store));
	assert_true(crawler(h).running);
	assert_false(store_crawl(h->store));
	assert_in_range(steps_of_crawl(h, 1000), 1, 999);
	assert_int_equal(crawler(h).starts, starts + 1);
	assert_true(store_crawl(h->store));
}

static void a_crawl_frees_what_is_expired_at_once(void **state)
{
	struct harness *h = *state;
	struct store_crawler_status before;

	dram_only(h);
	set_pairs(h, 3000);
	let_ten_seconds_pass(h);
	assert_int_equal(store_dram_items(h->store), 6000);
	before = crawler(h);
	assert_true(store_crawl(h->store));
	assert_in_range(steps_of_crawl(h, 1000), 1, 999);
	assert_int_equal(store_dram_items(h->store), 3000);
	assert_int_equal(crawler(h).checked - before.checked, 6000);
	assert_int_equal(crawler(h).reclaimed - before.reclaimed, 3000);
}

static void to_crawl_limits_the_objects_of_a_class(void **state)
{
	struct harness *h = *state;
	struct store_crawler_status before;

	dram_only(h);
	set_pairs(h, 500);
	run_full(h, .op = STORE_SET, .key = "larger",
		 .value = "a value that is in a class of its own, longer than what the others have", .length = 71);
	let_ten_seconds_pass(h);
	set_crawler(h, false, 0, 100);
	before = crawler(h);
	assert_true(store_crawl(h->store));
	assert_in_range(steps_of_crawl(h, 1000), 1, 999);
	assert_int_equal(crawler(h).checked - before.checked, 101);
	assert_in_range(store_dram_items(h->store), 901, 1000);
}

static void pauses_hold_a_crawl_up_until_time_has_passed(void **state)
{
	struct harness *h = *state;
	uint32_t last = STORE_CRAWL_SLEEP_MAX_US;
	struct store_crawler now;

	dram_only(h);
	set_pairs(h, 3000);
	let_ten_seconds_pass(h);
	set_crawler(h, false, UINT32_MAX, 0);
	store_get_crawler(h->store, &now);
	assert_int_equal(now.sleep_us, last);
	assert_true(store_crawl(h->store));
	steps_of_crawl(h, 100);
	assert_true(crawler(h).running);
	assert_true(store_dram_items(h->store) > 3000);
	for (unsigned n = 0; n < 6 && crawler(h).running; n++) {
		clk_scripted_advance(&h->clk, 2 * last);
		steps_of_crawl(h, 1);
	}
	assert_false(crawler(h).running);
	assert_int_equal(store_dram_items(h->store), 3000);
}

static void disabled_no_pass_frees_anything_by_itself(void **state)
{
	struct harness *h = *state;
	uint64_t starts;

	dram_only(h);
	set_pairs(h, 100);
	let_ten_seconds_pass(h);
	starts = crawler(h).starts;
	seconds_pass(h, 120);
	store_clean_step(h->store);
	assert_int_equal(store_dram_items(h->store), 200);
	assert_int_equal(crawler(h).starts, starts);
	set_crawler(h, true, 0, 0);
	seconds_pass(h, 120);
	store_clean_step(h->store);
	assert_int_equal(store_dram_items(h->store), 100);
	assert_true(crawler(h).starts > starts);
}

static void the_cleaners_thread_crawls_when_it_is_asked(void **state)
{
	struct harness *h = *state;
	uint64_t until = clk_now_ms(clk_boot()) + 20000;

	dram_only(h);
	set_pairs(h, 1000);
	set_crawler(h, false, STORE_CRAWL_SLEEP_US, 0);
	seconds_pass(h, 10);
	assert_int_equal(store_start(h->store), FS_OK);
	assert_true(store_crawl(h->store));
	while (crawler(h).running && clk_now_ms(clk_boot()) < until)
		sched_yield();
	store_stop(h->store);
	assert_false(crawler(h).running);
	assert_int_equal(store_dram_items(h->store), 1000);
}

/* ---- the limit ------------------------------------------------------------------------------- */

static char value[KIB(32)];

static void set_values(struct harness *h, unsigned from, unsigned to, uint32_t bytes)
{
	char key[24];

	for (unsigned n = from; n < to; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = value, .length = bytes).result,
				 STORE_STORED);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		context_settle(&h->worker[i]->context);
}

static void clean(struct harness *h)
{
	for (int i = 0; i < 10000 && store_clean_step(h->store); i++)
		;
}

static uint64_t limit_shown(struct harness *h)
{
	struct store_status status;

	store_get_status(h->store, &status);
	return status.memory_limit;
}

static void less_than_a_mebibyte_is_refused(void **state)
{
	struct harness *h = *state;

	dram_only(h);
	assert_int_equal(store_set_memory_limit(h->store, 0), FS_ERANGE);
	assert_int_equal(store_set_memory_limit(h->store, MIB(1) - 1), FS_ERANGE);
	assert_int_equal(limit_shown(h), MIB(8));
	assert_int_equal(store_set_memory_limit(h->store, MIB(1)), FS_OK);
	assert_int_equal(limit_shown(h), MIB(1));
}

static void less_than_index_and_segments_need_is_refused(void **state)
{
	struct harness *h = *state;
	uint64_t fixed;

	h->config.segment_bytes = KIB(512);
	h->config.flash_bytes = MIB(9);
	harness_open(h);
	fixed = h->store->fixed_bytes + atomic_load(&h->store->index_bytes) + atomic_load(&h->store->table_bytes);
	assert_int_equal(store_set_memory_limit(h->store, fixed + KIB(1000)), FS_ERANGE);
	assert_int_equal(store_set_memory_limit(h->store, fixed + KIB(1600)), FS_OK);
	assert_int_equal(store_set_memory_limit(h->store, MIB(8)), FS_OK);
}

static void lowered_it_is_evicted_down_to_by_the_cleaner(void **state)
{
	struct harness *h = *state;
	uint64_t evictions = ctr_sum(CTR_evictions);

	dram_only(h);
	set_values(h, 0, 200, sizeof(value));
	clean(h);
	assert_int_equal(ctr_sum(CTR_evictions), evictions);
	assert_int_equal(store_set_memory_limit(h->store, MIB(4)), FS_OK);
	assert_true(store_free_bytes(h->store) < 0);
	clean(h);
	assert_true(ctr_sum(CTR_evictions) > evictions);
	assert_in_range(atomic_load(&h->store->item_bytes), MIB(3), MIB(4));
	set_values(h, 200, 400, sizeof(value));
	assert_in_range(atomic_load(&h->store->item_bytes), MIB(3), MIB(4));
}

/* What stays is moved together: with its value, and not while a client is being sent it. */
static void what_is_left_is_moved_and_stays_what_it_was(void **state)
{
	struct harness *h = *state;
	struct store_request request = { .op = STORE_GET, .key = "object:7999", .key_length = 11 };
	char key[24], text[400];
	unsigned left = 0;

	dram_only(h);
	for (unsigned n = 0; n < 8000; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		memset(text, 'a' + (int)(n % 26), sizeof(text));
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = key, .value = text, .length = sizeof(text), .flags = n)
				.result,
			STORE_STORED);
	}
	request.hash = store_hash(h->store, request.key, request.key_length);
	assert_true(store_execute(h->worker[0], &request));
	assert_int_equal(request.result, STORE_HIT);
	for (unsigned i = 0; i < WORKERS; i++)
		context_settle(&h->worker[i]->context);
	assert_false(compaction_pending(h->store));
	assert_int_equal(store_set_memory_limit(h->store, MIB(2)), FS_OK);
	assert_true(compaction_pending(h->store));
	clean(h);
	assert_false(compaction_pending(h->store));
	for (uint32_t i = 0; i < request.value.length; i++)
		assert_int_equal(request.value.data[i], 'a' + 7999 % 26);
	store_value_release(h->worker[0], &request.value);
	for (unsigned n = 0; n < 8000; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		struct reply reply = get(h, key);

		if (reply.result == STORE_MISS)
			continue;
		memset(text, 'a' + (int)(n % 26), sizeof(text));
		assert_int_equal(reply.flags, n);
		assert_int_equal(reply.length, sizeof(text));
		assert_true(reply.value_hash == hash64(text, sizeof(text), 0));
		left++;
	}
	assert_in_range(left, 2000, 6000);
	for (unsigned n = 0; n < 8000; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		run(h, STORE_DELETE, key);
	}
	assert_nothing_left(h);
}

static void a_set_that_comes_before_the_cleaner_is_not_refused(void **state)
{
	struct harness *h = *state;

	dram_only(h);
	set_values(h, 0, 5000, 1000);
	assert_int_equal(store_set_memory_limit(h->store, MIB(1)), FS_OK);
	set_values(h, 5000, 5100, 1000);
	clean(h);
	assert_true(store_free_bytes(h->store) >= 0);
	assert_int_equal(get(h, "object:5099").result, STORE_HIT);
}

static void raised_it_is_filled(void **state)
{
	struct harness *h = *state;

	h->config.memory_bytes = MIB(2);
	dram_only(h);
	uint64_t evictions = ctr_sum(CTR_evictions);
	assert_int_equal(store_set_memory_limit(h->store, MIB(8)), FS_OK);
	set_values(h, 0, 200, sizeof(value));
	assert_int_equal(ctr_sum(CTR_evictions), evictions);
	assert_true(atomic_load(&h->store->item_bytes) > (int64_t)MIB(6));
}

static void lowered_below_a_flash_objects_go_there_or_away(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_values(h, 0, 1500, 1000);
	assert_int_equal(store_set_memory_limit(h->store, h->store->fixed_bytes + MIB(1)), FS_OK);
	clean(h);
	assert_true(store_free_bytes(h->store) >= 0);
	assert_true(ctr_sum(CTR_segments_written) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_runs_that_was_not_asked_for),
		TEST(a_crawl_that_runs_is_not_begun_again),
		TEST(a_crawl_frees_what_is_expired_at_once),
		TEST(to_crawl_limits_the_objects_of_a_class),
		TEST(pauses_hold_a_crawl_up_until_time_has_passed),
		TEST(disabled_no_pass_frees_anything_by_itself),
		TEST(the_cleaners_thread_crawls_when_it_is_asked),
		TEST(less_than_a_mebibyte_is_refused),
		TEST(less_than_index_and_segments_need_is_refused),
		TEST(lowered_it_is_evicted_down_to_by_the_cleaner),
		TEST(what_is_left_is_moved_and_stays_what_it_was),
		TEST(a_set_that_comes_before_the_cleaner_is_not_refused),
		TEST(raised_it_is_filled),
		TEST(lowered_below_a_flash_objects_go_there_or_away),
	};

	return cmocka_run_group_tests_name("store: crawler and limit", tests, NULL, NULL);
}
