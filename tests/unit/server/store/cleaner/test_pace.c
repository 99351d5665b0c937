/* SPDX-License-Identifier: BSD-3-Clause */
/* How early the cleaner begins, and in which pieces it works. */
#include "tests/unit/server/store/harness.h"

#define EVERY_GROUP ((1u << GROUPS) - 1)

static void store_small(struct harness *h, unsigned from, unsigned to)
{
	char key[24], value[100] = "";

	for (unsigned n = from; n < to; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = key, .value = value, .length = sizeof(value)).result,
			STORE_STORED);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		context_settle(&h->worker[i]->context);
}

/* Half a second passes in which so many are set. */
static void observe_sets(struct harness *h, unsigned from, unsigned to)
{
	pace_observe(h->store, clk_now_ms(&h->clk));
	store_small(h, from, to);
	clk_scripted_advance(&h->clk, 500000);
	pace_observe(h->store, clk_now_ms(&h->clk));
}

static void demand_rises_at_once_and_falls_slowly(void **state)
{
	struct harness *h = *state;
	struct pace *pace = &h->store->cleaner->pace;

	seconds_pass(h, 1);
	observe_sets(h, 0, 1000);
	double cost = (double)atomic_load(&h->store->item_bytes);
	double demand = pace->demand;
	assert_true(demand > 1.9 * cost && demand < 2.1 * cost);
	observe_sets(h, 0, 0);
	assert_true(pace->demand < demand && pace->demand > 0.9 * demand);
	for (int i = 0; i < 1000; i++)
		observe_sets(h, 0, 0);
	assert_true(pace->demand < 0.01 * demand);
}

static void objects_that_replace_others_are_no_demand(void **state)
{
	struct harness *h = *state;

	store_small(h, 0, 1000);
	seconds_pass(h, 1);
	pace_observe(h->store, clk_now_ms(&h->clk));
	h->store->cleaner->pace.demand = 0;
	observe_sets(h, 0, 1000);
	assert_true(h->store->cleaner->pace.demand < 0.1 * (double)atomic_load(&h->store->item_bytes));
}

/* What the cleaner itself takes away must not look like less demand. */
static void what_the_cleaner_frees_is_part_of_the_demand(void **state)
{
	struct harness *h = *state;
	uint64_t visited;

	store_small(h, 0, 1000);
	double cost = (double)atomic_load(&h->store->item_bytes);
	seconds_pass(h, 1);
	pace_observe(h->store, clk_now_ms(&h->clk));
	h->store->cleaner->pace.demand = 0;
	evict_dram(&h->store->cleaner->context, (uint64_t)cost, 10000, EVICT_ANY, false, &visited);
	context_settle(&h->store->cleaner->context);
	observe_sets(h, 0, 1000);
	assert_true(h->store->cleaner->pace.demand > 1.9 * cost);
}

static void a_longer_cycle_and_more_demand_want_a_larger_reserve(void **state)
{
	struct harness *h = *state;
	struct pace *pace = &h->store->cleaner->pace;

	pace->demand = 1e6;
	pace->cycle_ms = 100;
	assert_int_equal(pace_reserve(h->store), 200000);
	assert_false(pace_hurry(h->store)); /* 8 MiB are free, nearly */
	pace->demand = 1e8;
	assert_true(pace_hurry(h->store));
	pace->demand = 0;
	assert_false(pace_hurry(h->store));
	assert_int_equal(pace_reserve(h->store), 0);
}

/* ---- small pieces ---------------------------------------------------------------------------- */

/* What is done of a segment from one step to the next, in objects. */
struct pieces {
	struct store *store;
	uint64_t steps, inserts, used;
	int64_t candidates;
	uint64_t most_committed, most_reclaimed, most_gathered, most_released;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void note_piece(void *context)
{
	struct pieces *pieces = context;
	uint64_t inserts = ctr_sum(CTR_index_inserts), committed = inserts - pieces->inserts;
	int64_t candidates = atomic_load(&pieces->store->candidate_count), change = candidates - pieces->candidates;
	struct fidx_status status;

	fidx_get_status(pieces->store->index, &status);
	if (pieces->steps++ > 0) {
		pieces->most_committed = larger(pieces->most_committed, committed);
		pieces->most_reclaimed = larger(pieces->most_reclaimed, pieces->used + committed - status.used);
		pieces->most_gathered = larger(pieces->most_gathered, change < 0 ? (uint64_t)-change : 0);
		pieces->most_released = larger(pieces->most_released, change > 0 ? (uint64_t)change : 0);
	}
	pieces->inserts = inserts;
	pieces->used = status.used;
	pieces->candidates = candidates;
}

/* However many objects a segment has: it is gathered, committed, released and reclaimed in pieces of some dozens. */
static void the_work_on_a_segment_is_done_in_small_pieces(void **state)
{
	struct harness *h = *state;
	uint64_t written = ctr_sum(CTR_flash_objects_written), dropped = ctr_sum(CTR_flash_objects_dropped), steps = 0;
	struct pieces pieces;

	if (!HAVE_FAULTS)
		skip();
	harness_close(h);
	h->config.memory_bytes = MIB(64);
	h->config.segment_bytes = MIB(2);
	h->config.flash_bytes = MIB(7); /* three segments */
	h->config.placement = SEG_PLACE_SWEEP;
	harness_open(h);
	seg_set_step(h->store->segments, &(struct seg_step){ .call = pace_plan_step, .context = h->store });
	for (unsigned n = 0; n < 8; n++) {
		store_small(h, n * 30000, (n + 1) * 30000);
		pieces = (struct pieces){ .store = h->store };
		fault_call(FAULT_cleaner_step, note_piece, &pieces);
		fault_arm(FAULT_cleaner_step, FAULT_ALWAYS, 0);
		assert_true(write_segment(h->store, EVERY_GROUP));
		fault_arm(FAULT_cleaner_step, FAULT_OFF, 0);
		assert_in_range(pieces.most_committed, 1, 32);
		assert_in_range(pieces.most_gathered, 1, 64 * 8); /* of so many buckets */
		assert_in_range(pieces.most_released, 0, 64);
		assert_in_range(pieces.most_reclaimed, n < 3 ? 0 : 1, 32);
		steps += pieces.steps;
	}
	written = ctr_sum(CTR_flash_objects_written) - written;
	dropped = ctr_sum(CTR_flash_objects_dropped) - dropped;
	assert_true(written > 8 * 10000 && dropped > 5 * 10000);
	assert_true(steps > (2 * written + dropped) / 32); /* each record is written, committed, read back */
}

static int setup_open(void **state)
{
	int result = setup(state);

	harness_open(*state);
	return result;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_open, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(demand_rises_at_once_and_falls_slowly),
		TEST(objects_that_replace_others_are_no_demand),
		TEST(what_the_cleaner_frees_is_part_of_the_demand),
		TEST(a_longer_cycle_and_more_demand_want_a_larger_reserve),
		TEST(the_work_on_a_segment_is_done_in_small_pieces),
	};

	return cmocka_run_group_tests_name("store: pace", tests, NULL, NULL);
}
