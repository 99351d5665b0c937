/* SPDX-License-Identifier: BSD-3-Clause */
/* CLOCK in DRAM: what was just written stays, what is planned stays, and a search in vain ends. */
#include "tests/unit/server/store/harness.h"

static char filler[KIB(4)];

static void store_sized(struct harness *h, const char *name, unsigned n, uint32_t length)
{
	char key[40];

	snprintf(key, sizeof(key), "%s:%u", name, n);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = length).result,
			 STORE_STORED);
}

static bool is_there(struct harness *h, const char *name, unsigned n)
{
	char key[40];

	snprintf(key, sizeof(key), "%s:%u", name, n);
	return where(h, key) != NOWHERE;
}

static void settle(struct harness *h)
{
	for (unsigned i = 0; i < WORKERS; i++)
		context_settle(&h->worker[i]->context);
}

/* ---- eviction by a worker -------------------------------------------------------------------- */

static void open_dram(struct harness *h)
{
	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(2);
	harness_open(h);
}

/* Items of all sorts until so many bytes are free. */
static void leave_free(struct harness *h, int64_t bytes)
{
	for (unsigned n = 0; store_free_bytes(h->store) > bytes + 2000; n++) {
		store_sized(h, "object", n, 1000);
		clk_scripted_advance(&h->clk, 10000);
		settle(h);
	}
	seconds_pass(h, 2); /* none was written just now */
}

static void what_would_not_fit_into_an_empty_cache_evicts_nothing(void **state)
{
	struct harness *h = *state;

	open_dram(h);
	leave_free(h, 0);
	uint64_t items = store_dram_items(h->store);
	assert_false(evict_inline(&h->worker[0]->context, store_item_budget(h->store) + 1));
	assert_int_equal(store_dram_items(h->store), items);
}

static void under_m_only_what_is_dead_makes_room(void **state)
{
	struct harness *h = *state;

	h->config.evict = false;
	open_dram(h);
	leave_free(h, 0);
	uint64_t items = store_dram_items(h->store);
	assert_false(evict_inline(&h->worker[0]->context, KIB(4)));
	assert_int_equal(store_dram_items(h->store), items);
	store_flush_all(h->store, 0);
	assert_true(evict_inline(&h->worker[0]->context, KIB(4)));
	assert_in_range(store_dram_items(h->store), 1, items - 1);
}

static void where_enough_is_free_nothing_goes(void **state)
{
	struct harness *h = *state;

	open_dram(h);
	leave_free(h, (int64_t)KIB(64));
	uint64_t items = store_dram_items(h->store);
	assert_true(evict_inline(&h->worker[0]->context, KIB(64)));
	assert_int_equal(store_dram_items(h->store), items);
}

/* For itself and a little more: values that are being sent may hold the rest. */
static void a_set_evicts_what_it_needs_and_not_much_more(void **state)
{
	struct harness *h = *state;

	open_dram(h);
	leave_free(h, 0);
	int64_t before = store_free_bytes(h->store);
	atomic_store(&h->store->excess_bytes, KIB(512)); /* far more is missing */
	assert_true(evict_inline(&h->worker[0]->context, KIB(1)));
	atomic_store(&h->store->excess_bytes, 0);
	settle(h);
	assert_in_range(store_free_bytes(h->store) - before, KIB(1), KIB(32));
}

/* ---- the hand -------------------------------------------------------------------------------- */

static void each_way_to_evict_takes_what_it_may(void **state)
{
	struct harness *h = *state;
	struct store_context *context;
	uint64_t visited;

	open_dram(h);
	context = &h->store->keeper->context;
	store_sized(h, "read", 0, 100);
	store_sized(h, "young", 0, 100);
	get(h, "read:0");
	clk_scripted_advance(&h->clk, 1000);
	atomic_store(&h->store->recent.since_ms, (uint32_t)clk_now_ms(&h->clk));
	clk_scripted_advance(&h->clk, 1000);
	store_sized(h, "young", 1, 100); /* behind the mark: spared, whatever its CLOCK is */
	clk_scripted_advance(&h->clk, 1000);
	assert_int_equal(evict_dram(context, UINT64_MAX / 2, 1000, EVICT_DEAD, false, &visited), 0);
	assert_int_equal(visited, 3);
	assert_true(evict_dram(context, UINT64_MAX / 2, 1000, EVICT_ANY, false, &visited) > 0);
	assert_true(is_there(h, "young", 1));
	assert_int_equal(store_dram_items(h->store), 1);
	assert_true(evict_dram(context, UINT64_MAX / 2, 1000, EVICT_ALL, false, &visited) > 0);
	assert_int_equal(store_dram_items(h->store), 0);
}

static void an_object_that_was_read_goes_at_its_fourth_visit(void **state)
{
	struct harness *h = *state;
	uint64_t visited;

	open_dram(h);
	store_sized(h, "read", 0, 100);
	get(h, "read:0"); /* CLOCK 3 */
	seconds_pass(h, 2);
	for (unsigned visit = 0; visit < 3; visit++) {
		assert_int_equal(evict_dram(&h->store->keeper->context, 1, 1, EVICT_AT_ZERO, false, &visited), 0);
		assert_int_equal(visited, 1);
		assert_true(is_there(h, "read", 0));
	}
	assert_true(evict_dram(&h->store->keeper->context, 1, 1, EVICT_AT_ZERO, false, &visited) > 0);
	assert_false(is_there(h, "read", 0));
}

static void candidates_are_spared_on_demand(void **state)
{
	struct harness *h = *state;
	uint64_t visited;

	harness_open(h); /* everything is a candidate ... */
	store_sized(h, "candidate", 0, 100);
	store_sized(h, "large", 0, 4000);
	clf_set_admission(h->store->classifier, CLF_ADMIT_SECOND_HIT);
	store_sized(h, "other", 0, 100); /* ... but this one */
	seconds_pass(h, 2);
	for (unsigned turn = 0; turn < 4; turn++)
		evict_dram(&h->store->keeper->context, UINT64_MAX / 2, 1000, EVICT_SPARE_CANDIDATES, false, &visited);
	assert_false(is_there(h, "other", 0));
	assert_true(is_there(h, "candidate", 0));
	assert_true(mostly_candidates(h->store));
	evict_dram(&h->store->keeper->context, UINT64_MAX / 2, 1000, EVICT_AT_ZERO, false, &visited);
	assert_int_equal(store_dram_items(h->store), 0);
	context_settle(&h->store->keeper->context);
	settle(h);
	assert_false(mostly_candidates(h->store)); /* of nothing */
}

/* ---- under a rule that asks at eviction ------------------------------------------------------- */

static void open_freq(struct harness *h)
{
	h->config.admission = CLF_ADMIT_FREQ;
	harness_open(h);
}

static uint64_t visit_all(struct harness *h, enum evict_how how)
{
	uint64_t visited, freed;

	h->store->keeper->context.hand_stripe = h->store->keeper->context.hand_line = 0;
	freed = evict_dram(&h->store->keeper->context, UINT64_MAX / 2, 1000, how, false, &visited);
	context_settle(&h->store->keeper->context);
	return freed;
}

static bool is_candidate(struct harness *h, const char *key)
{
	return item_in_dram(h, key)->state & ITEM_CANDIDATE;
}

static void at_clock_zero_the_worthy_are_marked_and_the_unworthy_go(void **state)
{
	struct harness *h = *state;

	open_freq(h);
	store_sized(h, "worthy", 0, 100);
	store_sized(h, "unworthy", 0, 100);
	for (unsigned i = 0; i < 4; i++)
		get(h, "worthy:0");
	seconds_pass(h, 2);
	/* Within two octaves of the threshold CLOCK alone decides when an object is asked about. */
	set_threshold(h, worth_of(h, "unworthy:0") + 1);
	assert_true(worth_of(h, "worthy:0") > worth_of(h, "unworthy:0") + 1);
	item_set_clock(item_in_dram(h, "worthy:0"), 1);
	item_set_clock(item_in_dram(h, "unworthy:0"), 1);
	assert_int_equal(visit_all(h, EVICT_SPARE_CANDIDATES), 0);
	assert_false(is_candidate(h, "worthy:0"));
	assert_true(visit_all(h, EVICT_SPARE_CANDIDATES) > 0);
	assert_true(is_candidate(h, "worthy:0"));
	assert_false(is_there(h, "unworthy", 0));
	assert_int_equal(h->store->candidate_count, 1);
	assert_int_equal(visit_all(h, EVICT_SPARE_CANDIDATES), 0); /* it waits for its segment */
	assert_true(visit_all(h, EVICT_AT_ZERO) > 0); /* unless there is none */
	assert_false(is_there(h, "worthy", 0));
	assert_int_equal(h->store->candidate_count, 0);
}

static void an_object_far_below_the_threshold_goes_whatever_its_clock_says(void **state)
{
	struct harness *h = *state;

	open_freq(h);
	store_sized(h, "read", 0, 100);
	get(h, "read:0");
	seconds_pass(h, 2);
	assert_int_equal(item_clock(item_in_dram(h, "read:0")), 3);
	set_threshold(h, worth_of(h, "read:0") + 1.9);
	assert_int_equal(visit_all(h, EVICT_SPARE_CANDIDATES), 0);
	assert_int_equal(item_clock(item_in_dram(h, "read:0")), 2);
	set_threshold(h, worth_of(h, "read:0") + 2.1);
	assert_true(visit_all(h, EVICT_SPARE_CANDIDATES) > 0);
	assert_false(is_there(h, "read", 0));
}

/* The threshold has risen since it was admitted; it is still one of the best when its segment is gathered, or not. */
static void a_candidate_far_below_the_threshold_waits_all_the_same(void **state)
{
	struct harness *h = *state;

	open_freq(h);
	store_sized(h, "object", 0, 100);
	seconds_pass(h, 2);
	for (unsigned turn = 0; turn < 2; turn++)
		assert_int_equal(visit_all(h, EVICT_SPARE_CANDIDATES), 0);
	assert_true(is_candidate(h, "object:0"));
	set_threshold(h, 1000);
	assert_int_equal(visit_all(h, EVICT_SPARE_CANDIDATES), 0);
	assert_true(is_candidate(h, "object:0"));
}

static void a_rule_that_asks_at_reads_knows_no_unworthy_objects(void **state)
{
	struct harness *h = *state;

	open_freq(h);
	store_sized(h, "object", 0, 100);
	seconds_pass(h, 2);
	set_threshold(h, 1000);
	clf_set_admission(h->store->classifier, CLF_ADMIT_READ_ONCE);
	assert_int_equal(visit_all(h, EVICT_SPARE_CANDIDATES), 0); /* CLOCK 1 */
	assert_true(is_there(h, "object", 0));
}

static void what_is_evicted_leaves_its_count_for_the_next_write(void **state)
{
	struct harness *h = *state;

	open_freq(h);
	store_sized(h, "object", 0, 100);
	for (unsigned i = 0; i < 4; i++)
		get(h, "object:0");
	double worth = worth_of(h, "object:0");
	set_threshold(h, 1000);
	assert_true(visit_all(h, EVICT_ALL) > 0);
	store_sized(h, "object", 0, 100);
	assert_int_equal(item_features(item_in_dram(h, "object:0")).reads.count, 0);
	assert_true(worth_of(h, "object:0") > worth - 0.6); /* a rounding and a code */
}

/* Under -M: nothing alive goes, the objects at CLOCK zero and those that are worth little are asked about. */
static void an_offer_evicts_nothing_but_the_dead(void **state)
{
	struct harness *h = *state;

	h->config.evict = false;
	open_freq(h);
	store_sized(h, "object", 0, 100);
	store_sized(h, "read", 0, 100);
	get(h, "read:0");
	run_full(h, .op = STORE_SET, .key = "dead", .value = "", .exptime = 1);
	seconds_pass(h, 2);
	assert_true(visit_all(h, EVICT_OFFER) > 0);
	assert_int_equal(where(h, "dead"), NOWHERE);
	assert_false(is_candidate(h, "object:0"));
	assert_int_equal(visit_all(h, EVICT_OFFER), 0);
	assert_true(is_candidate(h, "object:0"));
	assert_false(is_candidate(h, "read:0"));
	set_threshold(h, 1000);
	assert_int_equal(visit_all(h, EVICT_OFFER), 0);
	assert_true(is_candidate(h, "read:0"));
	assert_int_equal(store_dram_items(h->store), 2);
}

/* ---- hot data -------------------------------------------------------------------------------- */

static void the_hot_threshold_is_dram_and_a_share_of_the_flash(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint64_t dram = store_item_budget(h->store) - KIB(32); /* less half a segment */
	atomic_store(&h->store->tuning.hot_fraction, 0.0);
	assert_int_equal(store_hot_threshold(h->store), dram);
	atomic_store(&h->store->tuning.hot_fraction, 1.0);
	assert_int_equal(store_hot_threshold(h->store), dram + MIB(1));
	atomic_store(&h->store->tuning.hot_fraction, 0.5);
	assert_int_equal(store_hot_threshold(h->store), dram + KIB(512));
	assert_false(evict_excess_hot(h->store)); /* there is none */
}

static void hot_bytes_are_items_and_what_is_no_ghost_on_flash(void **state)
{
	struct harness *h = *state;
	struct fidx_status status;

	harness_open(h);
	assert_int_equal(store_hot_bytes(h->store), 0);
	set_on_flash(h, "k", "value");
	settle(h);
	context_settle(&h->store->cleaner->context);
	fidx_get_status(h->store->index, &status);
	assert_true(status.hot_bytes > 0);
	assert_int_equal(store_hot_bytes(h->store), (uint64_t)(atomic_load(&h->store->item_bytes) + status.hot_bytes));
}

/* ---- what is planned ------------------------------------------------------------------------- */

static void evict_everything(struct harness *h)
{
	uint64_t visited;

	assert_int_equal(where(h, "k"), PLANNED);
	for (int i = 0; i < 6; i++)
		evict_dram(&h->worker[0]->context, UINT64_MAX / 2, 1 << 20, EVICT_AT_ZERO, false, &visited);
	assert_int_equal(where(h, "k"), PLANNED);
	assert_value(h, "k", "value");
}

static void a_planned_item_is_not_evicted(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "k", "value");
	while_planned(h, "k", PHASE_WRITTEN, evict_everything);
	assert_value(h, "k", "value");
}

/* ---- what was just written ------------------------------------------------------------------- */

static void fill_memory(struct harness *h)
{
	for (unsigned n = 0; n < 4000; n++) {
		store_sized(h, "old", n, 1000);
		clk_scripted_advance(&h->clk, 1000);
	}
}

/* The hand comes by each object three times: CLOCK begins at 1, and a turn may end within a chain. */
static uint64_t evict_all_at_zero(struct harness *h)
{
	uint64_t visited, freed = 0;

	for (unsigned turn = 0; turn < 3; turn++)
		freed +=
			evict_dram(&h->store->keeper->context, UINT64_MAX / 2, 1 << 20, EVICT_AT_ZERO, false, &visited);
	return freed;
}

static void what_was_just_written_is_spared(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(2);
	harness_open(h);
	fill_memory(h);
	for (unsigned n = 0; n < 50; n++)
		store_sized(h, "new", n, 1000);
	settle(h);
	clk_scripted_advance(&h->clk, 10000);
	assert_true(evict_all_at_zero(h) > MIB(1));
	for (unsigned n = 0; n < 50; n++)
		assert_true(is_there(h, "new", n));
}

/* A fast client writes more than an eighth of the budget in a millisecond, and reads what it wrote last in the next. */
static void what_was_written_in_one_millisecond_is_spared(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(2);
	harness_open(h);
	fill_memory(h);
	for (unsigned n = 0; n < 400; n++)
		store_sized(h, "new", n, 1000);
	settle(h);
	clk_scripted_advance(&h->clk, 1000);
	assert_true(evict_all_at_zero(h) > MIB(1) / 2);
	for (unsigned n = 350; n < 400; n++)
		assert_true(is_there(h, "new", n));
}

/* ... by how much came after it, and not longer than a second. */
static void what_was_written_before_an_eighth_of_the_budget_is_not_spared(void **state)
{
	struct harness *h = *state;
	unsigned left = 0;

	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(2);
	harness_open(h);
	fill_memory(h);
	(void)evict_all_at_zero(h);
	for (unsigned n = 0; n < 4000; n++)
		left += is_there(h, "old", n);
	assert_in_range(left * 1000, 1, store_item_budget(h->store) / 5);
	seconds_pass(h, 2);
	(void)evict_all_at_zero(h);
	assert_int_equal(store_dram_items(h->store), 0);
}

/* Where nothing else is left a set takes the place of what was just written. */
static void a_set_is_not_refused_for_what_was_just_written(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(2);
	harness_open(h);
	fill_memory(h);
	for (unsigned n = 0; n < 4000; n++) /* all in the same millisecond */
		store_sized(h, "new", n, 1000);
	settle(h);
	assert_in_range(atomic_load(&h->store->item_bytes), 1, store_item_budget(h->store) + MIB(2) / 8);
}

/* ---- chains, and searches in vain ------------------------------------------------------------ */

static void chains_shrink_with_their_objects(void **state)
{
	struct harness *h = *state;
	uint64_t full, visited;
	char key[40];

	h->config.flash_path = NULL;
	harness_open(h);
	for (unsigned n = 0; n < 20000; n++)
		store_sized(h, "object", n, 1);
	full = atomic_load(&h->store->table_bytes);
	for (unsigned n = 100; n < 20000; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		run(h, STORE_DELETE, key);
	}
	for (unsigned turn = 0; turn < 1000; turn++) /* the hand has to come by each chain */
		evict_dram(&h->store->keeper->context, 1 << 20, 100000, EVICT_DEAD, false, &visited);
	assert_in_range(atomic_load(&h->store->table_bytes), 1, full / 4);
	for (unsigned n = 0; n < 100; n++)
		assert_true(is_there(h, "object", n));
}

/* A keeper that finds nothing but what is spared sleeps, instead of looking again and again. */
static void a_keeper_that_finds_nothing_rests(void **state)
{
	struct harness *h = *state;
	unsigned steps = 0;

	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(2);
	harness_open(h);
	for (unsigned n = 0; n < 1000; n++)
		store_sized(h, "new", n, 1000);
	settle(h);
	keeper_step(h->store);
	atomic_store(&h->store->recent.since_ms, (uint32_t)clk_now_ms(&h->clk) - 500); /* all are spared ... */
	atomic_store(&h->store->excess_bytes, MIB(2) - MIB(2) / 4); /* ... and much is missing */
	assert_true(store_free_bytes(h->store) < 0);
	while (keeper_step(h->store) && steps++ < 1000)
		;
	assert_in_range(steps, 0, 100);
	assert_int_equal(store_dram_items(h->store), 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_would_not_fit_into_an_empty_cache_evicts_nothing),
		TEST(under_m_only_what_is_dead_makes_room),
		TEST(where_enough_is_free_nothing_goes),
		TEST(a_set_evicts_what_it_needs_and_not_much_more),
		TEST(each_way_to_evict_takes_what_it_may),
		TEST(an_object_that_was_read_goes_at_its_fourth_visit),
		TEST(candidates_are_spared_on_demand),
		TEST(at_clock_zero_the_worthy_are_marked_and_the_unworthy_go),
		TEST(an_object_far_below_the_threshold_goes_whatever_its_clock_says),
		TEST(a_candidate_far_below_the_threshold_waits_all_the_same),
		TEST(a_rule_that_asks_at_reads_knows_no_unworthy_objects),
		TEST(what_is_evicted_leaves_its_count_for_the_next_write),
		TEST(an_offer_evicts_nothing_but_the_dead),
		TEST(the_hot_threshold_is_dram_and_a_share_of_the_flash),
		TEST(hot_bytes_are_items_and_what_is_no_ghost_on_flash),
		TEST(a_planned_item_is_not_evicted),
		TEST(what_was_just_written_is_spared),
		TEST(what_was_written_in_one_millisecond_is_spared),
		TEST(what_was_written_before_an_eighth_of_the_budget_is_not_spared),
		TEST(a_set_is_not_refused_for_what_was_just_written),
		TEST(chains_shrink_with_their_objects),
		TEST(a_keeper_that_finds_nothing_rests),
	};

	return cmocka_run_group_tests_name("store: eviction", tests, NULL, NULL);
}
