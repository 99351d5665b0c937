/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request's first step: what needs flash and what does not, and what one command takes: locks by rank, and allocations,
 * counted by debug builds. The promise: a DRAM hit takes its key's stripe and nothing else (a key that is sampled, a leaf
 * of the sampler's too), and allocates nothing; a flash hit finds lookup and read buffer in pools.
 */
#include "tests/unit/server/store/harness.h"

/* ---- without a read -------------------------------------------------------------------------- */

static void a_key_that_is_nowhere_is_a_miss_without_a_read(void **state)
{
	struct harness *h = *state;
	uint64_t reads = ctr_sum(CTR_flash_reads);
	struct flight f;

	harness_open(h);
	assert_true(start(h, 0, &f, STORE_GET, "nothing"));
	assert_int_equal(f.reply.result, STORE_MISS);
	assert_int_equal(ctr_sum(CTR_flash_reads), reads);
}

static void a_set_needs_no_flash_read(void **state)
{
	struct harness *h = *state;
	struct flight f;

	harness_open(h);
	set_on_flash(h, "k", "old");
	uint64_t reads = ctr_sum(CTR_flash_reads);
	assert_true(start_with(h, 0, &f, .op = STORE_SET, .key = "k", .value = "new", .length = 3));
	assert_int_equal(f.reply.result, STORE_STORED);
	assert_int_equal(ctr_sum(CTR_flash_reads), reads);
	assert_int_equal(store_worker_pending(h->worker[0]), 0);
}

/* It clears what may be the key's, and so what is another key's too: that costs a miss, and never a wrong answer. */
static void a_delete_whose_answer_nobody_needs_reads_nothing(void **state)
{
	struct harness *h = *state;
	uint64_t reads, hits, misses;

	harness_open(h);
	set_on_flash(h, "k", "old");
	reads = ctr_sum(CTR_flash_reads), hits = ctr_sum(CTR_delete_hits), misses = ctr_sum(CTR_delete_misses);
	for (unsigned i = 0; i < 2; i++) {
		struct flight f;

		flight_prepare(h, 0, &f, STORE_DELETE, "k");
		f.request.has_options = f.request.options.blind = true;
		assert_true(flight_execute(h, &f));
		assert_int_equal(f.request.result, i == 0 ? STORE_DELETED : STORE_MISS);
		assert_int_equal(where(h, "k"), NOWHERE);
	}
	assert_int_equal(ctr_sum(CTR_flash_reads), reads);
	assert_int_equal(ctr_sum(CTR_delete_hits), hits + 1);
	assert_int_equal(ctr_sum(CTR_delete_misses), misses + 1);
	assert_missing(h, "k");
}

static void without_flash_it_is_a_dram_cache(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	assert_int_equal(store_worker_fds(h->worker[0]).completions, -1);
	assert_int_equal(store_worker_fds(h->worker[0]).timer, -1);
	set(h, "k", "val");
	assert_value(h, "k", "val");
	assert_int_equal(run(h, STORE_DELETE, "k").result, STORE_DELETED);
	assert_missing(h, "k");
	store_clean_step(h->store);
	assert_nothing_left(h);
}

/* ---- costs ----------------------------------------------------------------------------------- */

struct costs {
	unsigned long allocations, lock[LOCK_RANKS];
};

static struct costs costs_now(void)
{
	struct costs costs = { .allocations = mem_allocations() };

	for (int rank = 0; rank < LOCK_RANKS; rank++)
		costs.lock[rank] = lock_acquisitions((enum lock_rank)rank);
	return costs;
}

static struct costs costs_since(struct costs before)
{
	struct costs now = costs_now();

	now.allocations -= before.allocations;
	for (int rank = 0; rank < LOCK_RANKS; rank++)
		now.lock[rank] -= before.lock[rank];
	return now;
}

static void print(const char *what, const struct costs *costs)
{
	print_message("%-28s allocations %lu, key stripes %lu, index stripes %lu, segment table %lu, leaves %lu\n",
		      what, costs->allocations, costs->lock[LOCK_KEY_STRIPE], costs->lock[LOCK_INDEX_STRIPE],
		      costs->lock[LOCK_SEGMENT_TABLE], costs->lock[LOCK_LEAF]);
}

/* Costs of the last of some repetitions, as pools fill and a sampled key's first read is dearer. */
static struct costs costs_of(struct harness *h, enum store_op op, const char *key)
{
	struct costs costs = { 0 };

	for (int i = 0; i < 4; i++) {
		struct costs before = costs_now();

		run(h, op, key);
		costs = costs_since(before);
	}
	return costs;
}

static void needs_debug(void)
{
	if (lock_acquisitions(LOCK_LEAF) == 0 && mem_allocations() == 0)
		skip(); /* the counts are compiled into debug and sanitizer builds only */
}

static void a_dram_hit_takes_one_stripe_and_allocates_nothing(void **state)
{
	struct harness *h = *state;
	struct costs costs;

	harness_open(h);
	needs_debug();
	set(h, "key", "value");
	costs = costs_of(h, STORE_GET, "key");
	print("get, DRAM hit", &costs);
	assert_int_equal(costs.allocations, 0);
	assert_int_equal(costs.lock[LOCK_KEY_STRIPE], 1);
	assert_int_equal(costs.lock[LOCK_INDEX_STRIPE], 0);
	assert_int_equal(costs.lock[LOCK_SEGMENT_TABLE], 0);
	assert_int_equal(costs.lock[LOCK_LEAF], 0);
	assert_int_equal(costs.lock[LOCK_STATE], 0);
}

static void with_the_svm_a_sampled_key_takes_one_leaf_more(void **state)
{
	struct harness *h = *state;
	struct costs costs;

	h->config.admission = CLF_ADMIT_SVM;
	harness_open(h);
	needs_debug();
	set(h, "key", "value");
	costs = costs_of(h, STORE_GET, "key");
	print("get, DRAM hit, sampled", &costs);
	assert_int_equal(costs.allocations, 0);
	assert_int_equal(costs.lock[LOCK_KEY_STRIPE], 1);
	assert_int_equal(costs.lock[LOCK_SEGMENT_TABLE], 0);
	assert_true(costs.lock[LOCK_LEAF] <= 1); /* of the sampler's stripe of this key */
}

static void a_miss_takes_one_stripe_and_allocates_nothing(void **state)
{
	struct harness *h = *state;
	struct costs costs;

	harness_open(h);
	needs_debug();
	costs = costs_of(h, STORE_GET, "nobody");
	print("get, miss", &costs);
	assert_int_equal(costs.allocations, 0);
	assert_int_equal(costs.lock[LOCK_KEY_STRIPE], 1);
	assert_int_equal(costs.lock[LOCK_INDEX_STRIPE], 0);
}

static void a_flash_hit_allocates_nothing(void **state)
{
	struct harness *h = *state;
	struct costs costs;

	harness_open(h);
	needs_debug();
	set_on_flash(h, "key", "value");
	costs = costs_of(h, STORE_GET, "key");
	print("get, flash hit", &costs);
	assert_true(get(h, "key").from_flash);
	assert_int_equal(costs.allocations, 0);
	assert_int_equal(costs.lock[LOCK_KEY_STRIPE], 1);
	assert_int_equal(costs.lock[LOCK_SEGMENT_TABLE], 0);
}

static void a_set_allocates_its_object_alone(void **state)
{
	struct harness *h = *state;
	struct costs before, costs;

	harness_open(h);
	needs_debug();
	for (int i = 0; i < 4; i++)
		set(h, "key", "value");
	before = costs_now();
	set(h, "key", "value");
	costs = costs_since(before);
	print("set, replacing in DRAM", &costs);
	assert_int_equal(costs.allocations, 1);
	assert_int_equal(costs.lock[LOCK_KEY_STRIPE], 1);
	assert_int_equal(costs.lock[LOCK_INDEX_STRIPE], 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_key_that_is_nowhere_is_a_miss_without_a_read),
		TEST(a_set_needs_no_flash_read),
		TEST(a_delete_whose_answer_nobody_needs_reads_nothing),
		TEST(without_flash_it_is_a_dram_cache),
		TEST(a_dram_hit_takes_one_stripe_and_allocates_nothing),
		TEST(with_the_svm_a_sampled_key_takes_one_leaf_more),
		TEST(a_miss_takes_one_stripe_and_allocates_nothing),
		TEST(a_flash_hit_allocates_nothing),
		TEST(a_set_allocates_its_object_alone),
	};

	return cmocka_run_group_tests_name("store: the first step of a request", tests, NULL, NULL);
}
