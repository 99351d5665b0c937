/* SPDX-License-Identifier: BSD-3-Clause */
/* What a small -m is for: what was just written stays, holes are closed, chains shrink, large segments get written. */
#include "base/resident.h"
#include "harness.h"

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

/* ---- memory that comes back ------------------------------------------------------------------ */

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

static void objects_are_moved_together_when_most_of_a_size_have_gone(void **state)
{
	struct harness *h = *state;
	bool sparse[MEM_CLASSES];
	uint64_t compactions = ctr_sum(CTR_memory_compactions), holes;
	char key[40];

	if (!resident_is_exact())
		skip();
	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(8);
	harness_open(h);
	for (unsigned n = 0; n < 6000; n++)
		store_sized(h, "object", n, 1000);
	for (unsigned n = 0; n < 6000; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		if (n % 8)
			run(h, STORE_DELETE, key);
	}
	holes = mem_holes(sparse);
	assert_true(holes > MIB(3));
	assert_true(sparse[mem_class(1000 + sizeof(struct item))]);
	for (unsigned i = 0; i < 100 && ctr_sum(CTR_memory_compactions) == compactions; i++) {
		keeper_step(h->store);
		clk_scripted_advance(&h->clk, 300000);
	}
	assert_true(ctr_sum(CTR_memory_compactions) > compactions);
	assert_in_range(mem_holes(sparse), 0, holes / 3);
	for (unsigned n = 0; n < 6000; n += 8) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(get(h, key).value_hash, hash64(filler, 1000, 0));
	}
}

/* ---- large segments in little memory --------------------------------------------------------- */

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_just_written_is_spared),
		TEST(what_was_written_in_one_millisecond_is_spared),
		TEST(what_was_written_before_an_eighth_of_the_budget_is_not_spared),
		TEST(a_set_is_not_refused_for_what_was_just_written),
		TEST(chains_shrink_with_their_objects),
		TEST(objects_are_moved_together_when_most_of_a_size_have_gone),
		TEST(segments_of_a_quarter_of_memory_are_written),
		TEST(a_keeper_that_finds_nothing_rests),
	};

	return cmocka_run_group_tests_name("store: little memory", tests, NULL, NULL);
}
