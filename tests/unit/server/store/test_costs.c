/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one command takes: locks by rank, and allocations, counted by debug builds. The promise:
 * a DRAM hit takes its key's stripe and nothing else (a key that is sampled, a leaf of the sampler's
 * too), and allocates nothing; a flash hit finds
 * lookup and read buffer in pools.
 */
#include "tests/unit/server/store/harness.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_dram_hit_takes_one_stripe_and_allocates_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(with_the_svm_a_sampled_key_takes_one_leaf_more, setup, teardown),
		cmocka_unit_test_setup_teardown(a_miss_takes_one_stripe_and_allocates_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flash_hit_allocates_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_set_allocates_its_object_alone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
