/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes on whatever the device does, and how much of it at a time. */
#include "tests/unit/server/store/harness.h"

#include <sched.h>

#define WAIT_LOOKS 200000000u /* far more than it takes: a bound for what never comes */

static void store_some(struct harness *h, unsigned from, unsigned to, uint32_t length)
{
	static char value[4096];
	char key[24];

	for (unsigned n = from; n < to; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = value, .length = length).result,
				 STORE_STORED);
	}
}

static uint64_t reached_by_keeper(struct harness *h)
{
	return atomic_load(&h->store->keeper->beat_ms);
}

static void wait_for_keeper(struct harness *h)
{
	uint64_t now_ms = clk_now_ms(&h->clk);

	for (unsigned i = 0; i < WAIT_LOOKS && reached_by_keeper(h) < now_ms; i++)
		sched_yield();
	assert_true(reached_by_keeper(h) >= now_ms);
}

static void start_with_hung_writes(struct harness *h)
{
	unsigned n = 0;

	harness_use_ram(h);
	harness_open(h);
	h->ram->hold_writes = true;
	assert_int_equal(store_start(h->store), FS_OK);
	while (seg_busy_ms(h->store->segments) < 500) {
		assert_true(n < 2000000);
		store_some(h, n, n + 100, 500);
		clk_scripted_advance(&h->clk, 1000);
		n += 100;
	}
	assert_true(cleaner_is_writing(h->store));
}

static void end_hung_writes(struct harness *h)
{
	uint64_t written = ctr_sum(CTR_segments_written);

	h->ram->hold_writes = false;
	for (unsigned i = 0; i < WAIT_LOOKS && ctr_sum(CTR_segments_written) == written; i++)
		sched_yield();
	assert_true(ctr_sum(CTR_segments_written) > written);
	store_stop(h->store);
}

static void a_write_that_hangs_stops_neither_eviction_nor_the_watchdogs_food(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	start_with_hung_writes(h);
	store_some(h, 1000000, 1060000, 500); /* several times what DRAM holds */
	clk_scripted_advance(&h->clk, 100000000);
	wait_for_keeper(h);
	assert_true(store_alive_within(h->store, 1));
	store_get_status(h->store, &status);
	assert_true(status.segments.busy_ms >= 100000);
	assert_true(status.dram_bytes < status.memory_limit);
	assert_value(h, "object:1059999", "");
	end_hung_writes(h);
}

static void expired_objects_are_found_while_a_write_hangs(void **state)
{
	struct harness *h = *state;
	uint64_t reclaimed;

	start_with_hung_writes(h);
	reclaimed = ctr_sum(CTR_crawler_reclaimed);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "dies", .value = "", .exptime = 1).result, STORE_STORED);
	clk_scripted_advance(&h->clk, 2000000);
	assert_true(store_crawl(h->store));
	for (unsigned i = 0; i < WAIT_LOOKS && ctr_sum(CTR_crawler_reclaimed) == reclaimed; i++) {
		clk_scripted_advance(&h->clk, 1000);
		sched_yield();
	}
	assert_true(ctr_sum(CTR_crawler_reclaimed) > reclaimed);
	end_hung_writes(h);
}

static void a_cleaner_that_hangs_by_itself_is_seen(void **state)
{
	struct harness *h = *state;

	harness_use_ram(h);
	harness_open(h);
	keeper_step(h->store);
	cleaner_step(h->store);
	assert_true(store_alive_within(h->store, 1));
	seconds_pass(h, 10);
	keeper_step(h->store);
	assert_false(store_alive_within(h->store, 5)); /* the device has nothing of its */
	cleaner_step(h->store);
	assert_true(store_alive_within(h->store, 5));
	seconds_pass(h, 10);
	cleaner_step(h->store);
	assert_false(store_alive_within(h->store, 5));
}

/* ---- steps are bounded ----------------------------------------------------------------------- */

/* The machine was suspended for an hour: a pass and more is due. */
static void a_pass_that_is_overdue_goes_on_in_steps(void **state)
{
	struct harness *h = *state;
	uint64_t checked;

	h->config.memory_bytes = MIB(64);
	h->config.flash_path = NULL;
	harness_open(h);
	store_some(h, 0, 100000, 1);
	seconds_pass(h, 3600);
	for (unsigned step = 0; step < 5; step++) {
		checked = ctr_sum(CTR_crawler_items_checked);
		keeper_step(h->store);
		assert_in_range(ctr_sum(CTR_crawler_items_checked) - checked, 8000, 9000);
		seconds_pass(h, 60);
	}
}

/* Every stripe is met, although a step ends in the middle of one. */
static void a_pass_in_steps_misses_nothing(void **state)
{
	struct harness *h = *state;
	unsigned steps = 0;

	h->config.memory_bytes = MIB(64);
	h->config.flash_path = NULL;
	harness_open(h);
	store_some(h, 0, 50000, 1);
	store_some(h, 50000, 100000, 1);
	for (unsigned n = 0; n < 100000; n++) {
		char key[24];

		snprintf(key, sizeof(key), "object:%u", n);
		run_expiry(h, STORE_TOUCH, key, 1);
	}
	seconds_pass(h, 60);
	while (store_dram_items(h->store) > 0 && steps++ < 100) {
		keeper_step(h->store);
		seconds_pass(h, 60);
	}
	assert_in_range(steps, 100000 / 8192, 30);
	assert_nothing_left(h);
}

/* ---- -M under a rule that asks at eviction ------------------------------------------------------ */

#define KEPT 8000u
#define KEPT_BYTES 500u

static void open_keeping_all(struct harness *h, enum clf_admission admission)
{
	h->config.evict = false;
	h->config.admission = admission;
	h->config.memory_bytes = MIB(4);
	h->config.flash_bytes = MIB(8);
	harness_use_ram(h);
	harness_open(h);
}

static void steps(struct harness *h)
{
	for (unsigned i = 0; i < 8; i++) {
		clk_scripted_advance(&h->clk, 100000);
		set_threshold(h, 1000); /* nothing is worth so much */
		store_clean_step(h->store);
	}
}

static void assert_all_kept(struct harness *h)
{
	char key[24];

	for (unsigned n = 0; n < KEPT; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		struct reply reply = get(h, key);

		assert_int_equal(reply.result, STORE_HIT);
		assert_int_equal(reply.length, KEPT_BYTES);
	}
}

/* More than DRAM holds: no set is refused for want of worth, and each object is there afterwards. */
static void under_m_objects_are_offered_before_memory_is_full(void **state)
{
	static const enum clf_admission rules[] = { CLF_ADMIT_FREQ, CLF_ADMIT_SVM };
	struct harness *h = *state;

	for (unsigned rule = 0; rule < 2; rule++) {
		uint64_t written = ctr_sum(CTR_segments_written), evicted = ctr_sum(CTR_evictions);

		open_keeping_all(h, rules[rule]);
		for (unsigned n = 0; n < KEPT; n += 50) {
			store_some(h, n, n + 50, KEPT_BYTES);
			steps(h);
		}
		assert_true(ctr_sum(CTR_segments_written) > written);
		assert_int_equal(ctr_sum(CTR_evictions), evicted);
		assert_all_kept(h);
		harness_close(h);
	}
}

/* With room for two segments nobody is in a hurry; later offers may be better informed. */
static void under_m_nothing_is_offered_while_there_is_room(void **state)
{
	struct harness *h = *state;

	open_keeping_all(h, CLF_ADMIT_FREQ);
	store_some(h, 0, 100, KEPT_BYTES);
	seconds_pass(h, 2);
	for (unsigned i = 0; i < 20; i++)
		steps(h);
	assert_int_equal(h->store->candidate_count, 0);
}

static void tune_admission(struct harness *h, enum clf_admission admission)
{
	struct store_tuning tuning;

	store_get_tuning(h->store, &tuning);
	tuning.admission = admission;
	store_set_tuning(h->store, &tuning);
}

static void rules_that_change_at_run_time_lose_nothing(void **state)
{
	static const enum clf_admission turns[] = { CLF_ADMIT_ALL, CLF_ADMIT_FREQ, CLF_ADMIT_SVM };
	struct harness *h = *state;

	open_keeping_all(h, CLF_ADMIT_FREQ);
	for (unsigned n = 0; n < KEPT; n += 50) {
		store_some(h, n, n + 50, KEPT_BYTES);
		steps(h);
		if (n % 250 == 0)
			tune_admission(h, turns[n / 250 % 3]);
	}
	assert_all_kept(h);
}

/* Candidates of one kind of rule under the other: the accounts stay right, and no value is wrong. */
static void rules_that_change_while_objects_are_evicted_leave_the_accounts_right(void **state)
{
	struct harness *h = *state;
	char key[24];

	h->config.memory_bytes = MIB(4);
	h->config.admission = CLF_ADMIT_FREQ;
	harness_use_ram(h);
	harness_open(h);
	for (unsigned n = 0; n < 3 * KEPT; n += 50) {
		store_some(h, n, n + 50, KEPT_BYTES);
		for (unsigned i = 0; i < 4; i++) {
			clk_scripted_advance(&h->clk, 100000);
			store_clean_step(h->store);
		}
		if (n % 250 == 0)
			tune_admission(h, (enum clf_admission)(n / 250 % (CLF_ADMIT_LAST + 1)));
	}
	assert_true(fidx_verify(h->store->index));
	for (unsigned n = 0; n < 3 * KEPT; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		struct reply reply = get(h, key);

		assert_true(reply.result == STORE_MISS || reply.length == KEPT_BYTES);
		run(h, STORE_DELETE, key);
	}
	assert_nothing_left(h);
}

#define HUGE_BUCKETS 160000000u /* with 16 slots each */
#define SPARSE_BUCKETS (HUGE_BUCKETS / 128) /* in the first of them there is a slot now and then */
#define SPARSE_SLOTS 2000u
#define STEP_BUCKETS 300000u /* five million slots: some milliseconds */

/* A flash that would have 2.5 x 10^9 objects on it: of device and index there is as much memory as is used of them. */
static void open_huge(struct harness *h)
{
	h->config.memory_bytes = MIB(64);
	h->config.segment_bytes = 0;
	h->config.flash_bytes = MIB(64);
	h->config.hot_fraction = 0;
	harness_use_ram(h);
	h->config.flash_bytes = UINT64_C(100) << 30;
	h->config.flash_object_bytes = 1u << 30; /* the first table has next to nothing */
	h->ram->dev.bytes = h->config.flash_bytes;
	harness_open(h);
}

/* Objects of a mebibyte each, by what the index knows of them, a long way from one to the next. CLOCK stands at 3. */
static unsigned add_sparse_table(struct harness *h, struct fidx_key keys[SPARSE_SLOTS])
{
	struct fidx *index = h->store->index;
	unsigned table;

	assert_int_equal(fidx_table_add(index, HUGE_BUCKETS, &table), FS_OK);
	fidx_segment_open(index, 0, table, 1, 1u << 20, NULL, 0);
	for (unsigned n = 0; n < SPARSE_SLOTS;) {
		fidx_key_of(index, rng_next(&h->store->keeper->context.rng), &keys[n]);
		/* The hand must not come by it early, in its other bucket. */
		if (keys[n].bucket[table][0] < SPARSE_BUCKETS && keys[n].bucket[table][1] >= SPARSE_BUCKETS)
			assert_true(fidx_insert(index, &keys[n++], 0, 0, 3, FIDX_DROP_NONE));
	}
	return table;
}

/* The last bucket in which the hand has met an object. */
static uint32_t reached_by_hand(struct harness *h, const struct fidx_key keys[SPARSE_SLOTS], unsigned table)
{
	uint32_t farthest = 0;

	for (unsigned n = 0; n < SPARSE_SLOTS; n++) {
		struct fidx_match match = { .segment = 0, .sequence = 1, .function = 0 };

		assert_true(fidx_find(h->store->index, &keys[n], &match));
		if (match.clock < 3 && keys[n].bucket[table][0] > farthest)
			farthest = keys[n].bucket[table][0];
	}
	return farthest;
}

/* However few of the slots that it looks at are any object's. */
static void a_step_looks_at_a_bounded_number_of_slots(void **state)
{
	static struct fidx_key keys[SPARSE_SLOTS];
	struct harness *h = *state;
	uint32_t before = 0, now;
	unsigned table;

	open_huge(h);
	table = add_sparse_table(h, keys);
	assert_true(store_hot_bytes(h->store) > store_hot_threshold(h->store) + h->store->segment_bytes);
	for (unsigned step = 0; step < 3; step++) {
		assert_true(evict_excess_hot(h->store)); /* and there is more to do */
		now = reached_by_hand(h, keys, table);
		assert_in_range(now - before, 1, STEP_BUCKETS);
		before = now;
	}
	fidx_segment_close(h->store->index, 0);
	fidx_destroy(h->store->index); /* without being verified, which would look at all of it */
	h->store->index = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_write_that_hangs_stops_neither_eviction_nor_the_watchdogs_food),
		TEST(expired_objects_are_found_while_a_write_hangs),
		TEST(a_cleaner_that_hangs_by_itself_is_seen),
		TEST(a_pass_that_is_overdue_goes_on_in_steps),
		TEST(a_pass_in_steps_misses_nothing),
		TEST(under_m_objects_are_offered_before_memory_is_full),
		TEST(under_m_nothing_is_offered_while_there_is_room),
		TEST(rules_that_change_at_run_time_lose_nothing),
		TEST(rules_that_change_while_objects_are_evicted_leave_the_accounts_right),
		TEST(a_step_looks_at_a_bounded_number_of_slots),
	};

	return cmocka_run_group_tests_name("store: the keeper", tests, NULL, NULL);
}
