/* SPDX-License-Identifier: BSD-3-Clause */
/* When the cleaner writes, and what it does at each step beside that. */
#include "tests/unit/server/store/harness.h"

/* ---- whether to write ------------------------------------------------------------------------ */

static void fill_until(struct harness *h, int64_t free_bytes)
{
	static char value[500];
	char key[24];

	for (unsigned n = 0; store_free_bytes(h->store) >= free_bytes; n++) {
		snprintf(key, sizeof(key), "fill:%u", n);
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = key, .value = value, .length = sizeof(value)).result,
			STORE_STORED);
		context_settle(&h->worker[0]->context);
	}
}

static void without_flash_there_is_nothing_to_do(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	set(h, "key", "value");
	assert_false(cleaner_step(h->store));
	assert_false(cleaner_takes_writes(h->store));
	assert_false(cleaner_wants_to_write(h->store, INT64_MIN));
	assert_int_equal(cleaner_start(h->store), FS_OK); /* no thread */
	assert_false(h->store->cleaner->background.threaded);
	cleaner_stop(h->store);
}

static void while_memory_is_free_nothing_is_written(void **state)
{
	struct harness *h = *state;

	h->config.memory_bytes = MIB(3);
	harness_open(h);
	fill_until(h, (int64_t)(4 * h->store->segment_bytes));
	assert_true(candidate_total(h->store) > 4 * h->store->segment_bytes);
	assert_false(cleaner_wants_to_write(h->store, store_free_bytes(h->store)));
	assert_false(cleaner_step(h->store));
}

static void without_candidates_nothing_is_written_however_short_memory_is(void **state)
{
	struct harness *h = *state;

	h->config.admission = CLF_ADMIT_READ_ONCE;
	h->config.memory_bytes = MIB(3);
	harness_open(h);
	fill_until(h, (int64_t)(h->store->segment_bytes / 4));
	assert_int_equal(candidate_total(h->store), 0);
	assert_false(cleaner_wants_to_write(h->store, store_free_bytes(h->store)));
	assert_false(cleaner_step(h->store));
}

static void with_less_than_a_segment_free_one_is_written(void **state)
{
	struct harness *h = *state;
	uint64_t written = ctr_sum(CTR_segments_written);

	h->config.memory_bytes = MIB(3);
	harness_open(h);
	fill_until(h, (int64_t)h->store->segment_bytes);
	assert_true(cleaner_wants_to_write(h->store, store_free_bytes(h->store)));
	assert_true(cleaner_step(h->store));
	assert_int_equal(ctr_sum(CTR_segments_written), written + 1);
	assert_false(cleaner_is_writing(h->store));
}

static void without_tokens_a_segment_waits_and_the_keeper_is_told(void **state)
{
	struct harness *h = *state;

	h->config.memory_bytes = MIB(3);
	harness_open(h);
	fill_until(h, (int64_t)h->store->segment_bytes);
	atomic_store(&h->store->tuning.flash_write_limit, KIB(64));
	assert_false(cleaner_wants_to_write(h->store, store_free_bytes(h->store)));
	assert_false(cleaner_step(h->store));
	assert_true(h->store->cleaner->held_up);
	clk_scripted_advance(&h->clk, 1000000); /* a segment's worth of tokens */
	assert_true(cleaner_step(h->store));
	assert_true(h->store->cleaner->write_tokens <= 0);
	fill_until(h, (int64_t)h->store->segment_bytes);
	assert_false(cleaner_step(h->store));
}

static void after_a_write_that_failed_none_is_tried_for_a_second(void **state)
{
	struct harness *h = *state;

	h->config.memory_bytes = MIB(3);
	harness_open(h);
	fill_until(h, (int64_t)h->store->segment_bytes);
	h->ram->fail_writes = true;
	assert_false(cleaner_step(h->store));
	h->ram->fail_writes = false;
	assert_false(cleaner_takes_writes(h->store));
	assert_false(cleaner_step(h->store));
	clk_scripted_advance(&h->clk, 999000);
	assert_false(cleaner_takes_writes(h->store));
	clk_scripted_advance(&h->clk, 1000);
	assert_true(cleaner_takes_writes(h->store));
	assert_true(cleaner_step(h->store));
}

static void more_candidates_are_ranked_than_a_segment_holds_and_fewer_in_little_memory(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	assert_int_equal(cleaner_ranks(h->store), 3 * h->store->segment_bytes); /* of the two that are wanted */
	harness_close(h);
	h->config.memory_bytes = MIB(4);
	h->config.segment_bytes = MIB(1);
	h->config.flash_bytes = MIB(8);
	harness_open(h);
	assert_in_range(cleaner_ranks(h->store), MIB(1) + MIB(1) / 2, 3 * MIB(1) - 1);
}

/* A cleaner that may write and has not is late: candidates wait for it. Those that the budget holds back compete. */
static void eviction_spares_more_while_the_budget_is_not_used_up(void **state)
{
	struct harness *h = *state;

	h->config.admission = CLF_ADMIT_FREQ;
	h->config.flash_write_limit = MIB(1);
	harness_open(h);
	assert_int_equal(cleaner_spares(h->store), cleaner_ranks(h->store)); /* the budget begins empty */
	clk_scripted_advance(&h->clk, 1000000);
	(void)cleaner_step(h->store);
	assert_int_equal(cleaner_spares(h->store), store_item_budget(h->store) / 2);
	assert_true(cleaner_spares(h->store) > cleaner_ranks(h->store));
}

/* ---- signs of life --------------------------------------------------------------------------- */

static void a_keeper_or_a_cleaner_that_does_not_come_round_is_seen(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	store_clean_step(h->store);
	assert_true(store_alive_within(h->store, 0));
	seconds_pass(h, 5);
	assert_true(store_alive_within(h->store, 5));
	assert_false(store_alive_within(h->store, 4));
	keeper_step(h->store);
	assert_false(store_alive_within(h->store, 4)); /* the cleaner */
	cleaner_step(h->store);
	assert_true(store_alive_within(h->store, 0));
	seconds_pass(h, 5);
	atomic_store(&h->store->cleaner->beat_ms, clk_now_ms(&h->clk));
	assert_false(store_alive_within(h->store, 4)); /* the keeper */
}

static void without_a_thread_a_beat_does_the_keeper_s_step_too(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	seconds_pass(h, 5);
	cleaner_beat(h->store);
	assert_int_equal(h->store->cleaner->beat_ms, clk_now_ms(&h->clk));
	assert_int_equal(h->store->keeper->beat_ms, clk_now_ms(&h->clk));
	assert_true(store_alive_within(h->store, 0));
	cleaner_sleep(h->store, 1000000); /* not at all */
}

/* ---- the write limit ------------------------------------------------------------------------- */

static void tune(struct harness *h, uint64_t limit, enum clf_admission admission)
{
	store_set_tuning(h->store, &(struct store_tuning){ .hot_fraction = 0.5,
							   .flash_write_limit = limit,
							   .read_timeout_ms = 1000,
							   .admission = admission });
}

static void a_limit_counts_from_when_it_is_set(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (int i = 0; i < 20; i++)
		assert_true(write_one(h)); /* without a limit: nothing is to be paid for later */
	store_clean_step(h->store);
	tune(h, h->store->segment_bytes, CLF_ADMIT_ALL);
	seconds_pass(h, 2);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->write_tokens > 0);
}

static void a_lower_limit_cuts_what_was_saved_up(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	tune(h, MIB(100), CLF_ADMIT_ALL);
	seconds_pass(h, 100);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->write_tokens > (int64_t)MIB(500));
	tune(h, KIB(1), CLF_ADMIT_ALL);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->write_tokens <= (int64_t)h->store->segment_bytes);
}

#define GIB_WRITTEN ((uint64_t)1 << 30)

/* ---- the write ratio ------------------------------------------------------------------------- */

/* Applications write, as far as the counters know. */
static void app_writes(struct harness *h, uint64_t bytes)
{
	ctr_add(CTR_app_bytes_written, bytes);
	store_clean_step(h->store);
}

static void tune_ratio(struct harness *h, double ratio, enum clf_admission admission)
{
	store_set_tuning(h->store, &(struct store_tuning){ .hot_fraction = 0.5,
							   .flash_write_ratio = ratio,
							   .read_timeout_ms = 1000,
							   .admission = admission });
}

static void a_burst_is_allowed_and_then_a_share_of_what_applications_write(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	harness_end_fill(h);
	tune_ratio(h, 0.5, CLF_ADMIT_FREQ);
	store_clean_step(h->store);
	int64_t burst = h->store->cleaner->ratio_tokens;
	assert_true(burst >= (int64_t)h->store->segment_bytes && burst <= (int64_t)h->store->flash_capacity);
	atomic_store(&h->store->cleaner->ratio_tokens, 0);
	app_writes(h, 1000);
	assert_int_equal(h->store->cleaner->ratio_tokens, 500);
	app_writes(h, GIB_WRITTEN);
	assert_int_equal(h->store->cleaner->ratio_tokens, burst); /* no more is saved up */
}

static void beyond_the_ratio_a_segment_waits_and_the_keeper_is_told(void **state)
{
	struct harness *h = *state;
	uint64_t written = ctr_sum(CTR_segments_written);

	h->config.memory_bytes = MIB(3);
	harness_open(h);
	fill_until(h, (int64_t)h->store->segment_bytes); /* with candidates, as all are admitted */
	harness_end_fill(h);
	tune_ratio(h, 0.001, CLF_ADMIT_FREQ);
	atomic_store(&h->store->cleaner->ratio_tokens, -(int64_t)h->store->segment_bytes);
	assert_false(cleaner_wants_to_write(h->store, store_free_bytes(h->store)));
	assert_false(cleaner_step(h->store));
	assert_true(h->store->cleaner->held_up);
	assert_int_equal(ctr_sum(CTR_segments_written), written);
	ctr_add(CTR_app_bytes_written, GIB_WRITTEN);
	assert_true(cleaner_step(h->store));
	assert_int_equal(ctr_sum(CTR_segments_written), written + 1);
}

/* They know no budget but the limit by time, and -M has to keep all. */
static void rules_that_ask_at_reads_and_keep_all_are_not_held_up(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	tune_ratio(h, 0.001, CLF_ADMIT_ALL);
	atomic_store(&h->store->cleaner->ratio_tokens, -1);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->ratio_tokens > 0);
	tune_ratio(h, 0.001, CLF_ADMIT_FREQ);
	h->store->config.evict = false;
	atomic_store(&h->store->cleaner->ratio_tokens, -1);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->ratio_tokens > 0);
	h->store->config.evict = true;
}

/* ---- large segments in little memory --------------------------------------------------------- */

static char filler[KIB(4)];

static void store_sized(struct harness *h, const char *name, unsigned n, uint32_t length)
{
	char key[40];

	snprintf(key, sizeof(key), "%s:%u", name, n);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = length).result,
			 STORE_STORED);
}

static void segments_of_a_quarter_of_memory_are_written(void **state)
{
	struct harness *h = *state;
	uint64_t written = ctr_sum(CTR_segments_written);

	h->config.memory_bytes = MIB(4);
	h->config.segment_bytes = MIB(1);
	h->config.flash_bytes = MIB(16);
	harness_open(h);
	for (unsigned n = 0; n < 12000; n++) {
		store_sized(h, "object", n, 1000);
		clk_scripted_advance(&h->clk, 1000);
		if (n % 50 == 0)
			store_clean_step(h->store);
	}
	assert_true(ctr_sum(CTR_segments_written) >= written + 4);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void ids_are_reserved_before_they_are_given(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint64_t reserved = atomic_load(&h->store->cas_reserved);
	atomic_store(&h->store->cas_next, reserved - 1000);
	store_clean_step(h->store);
	assert_true(atomic_load(&h->store->cas_reserved) > reserved);
	assert_true(set(h, "key", "value").cas >= reserved - 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_flash_there_is_nothing_to_do),
		TEST(while_memory_is_free_nothing_is_written),
		TEST(without_candidates_nothing_is_written_however_short_memory_is),
		TEST(with_less_than_a_segment_free_one_is_written),
		TEST(without_tokens_a_segment_waits_and_the_keeper_is_told),
		TEST(after_a_write_that_failed_none_is_tried_for_a_second),
		TEST(more_candidates_are_ranked_than_a_segment_holds_and_fewer_in_little_memory),
		TEST(eviction_spares_more_while_the_budget_is_not_used_up),
		TEST(a_keeper_or_a_cleaner_that_does_not_come_round_is_seen),
		TEST(without_a_thread_a_beat_does_the_keeper_s_step_too),
		TEST(a_limit_counts_from_when_it_is_set),
		TEST(a_lower_limit_cuts_what_was_saved_up),
		TEST(a_burst_is_allowed_and_then_a_share_of_what_applications_write),
		TEST(beyond_the_ratio_a_segment_waits_and_the_keeper_is_told),
		TEST(rules_that_ask_at_reads_and_keep_all_are_not_held_up),
		TEST(segments_of_a_quarter_of_memory_are_written),
		TEST(ids_are_reserved_before_they_are_given),
	};

	return cmocka_run_group_tests_name("store: the cleaner", tests, NULL, NULL);
}
