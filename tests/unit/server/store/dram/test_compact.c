/* SPDX-License-Identifier: BSD-3-Clause */
/* Small objects are moved together, so that the memory between them is free. */
#include "base/resident.h"
#include "tests/unit/server/store/harness.h"

#define STRIPES 64u /* the least that a store has */

static char filler[KIB(4)];

static void store_sized(struct harness *h, const char *name, unsigned n, uint32_t length)
{
	char key[40];

	snprintf(key, sizeof(key), "%s:%u", name, n);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = length).result,
			 STORE_STORED);
}

static struct item *item_of(struct harness *h, const char *key)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));

	return stripe_find(store_stripe(h->store, hash), hash, key, strlen(key));
}

static void open_dram(struct harness *h, unsigned objects)
{
	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(8);
	harness_open(h);
	for (unsigned n = 0; n < objects; n++)
		store_sized(h, "object", n, 300);
}

static unsigned steps_to_the_end(struct harness *h)
{
	unsigned steps = 0;

	while (keeper_compact(h->store, clk_now_ms(&h->clk)))
		assert_true(++steps < 1000);
	return steps;
}

static void what_nobody_asked_for_is_not_begun(void **state)
{
	struct harness *h = *state;
	uint64_t compactions = ctr_sum(CTR_memory_compactions);

	open_dram(h, 100);
	assert_false(compaction_pending(h->store));
	assert_false(keeper_compact(h->store, clk_now_ms(&h->clk)));
	assert_int_equal(ctr_sum(CTR_memory_compactions), compactions);
}

static void a_pass_waits_until_items_are_within_the_limit_or_half_a_minute(void **state)
{
	struct harness *h = *state;
	uint64_t compactions = ctr_sum(CTR_memory_compactions);

	open_dram(h, 100);
	compaction_ask(h->store);
	atomic_fetch_add(&h->store->item_bytes, (int64_t)MIB(8));
	assert_true(store_free_bytes(h->store) < 0);
	assert_false(keeper_compact(h->store, clk_now_ms(&h->clk)));
	assert_true(compaction_pending(h->store));
	clk_scripted_advance(&h->clk, 29999000);
	assert_false(keeper_compact(h->store, clk_now_ms(&h->clk)));
	clk_scripted_advance(&h->clk, 1000);
	assert_true(steps_to_the_end(h) > 0);
	assert_int_equal(ctr_sum(CTR_memory_compactions), compactions + 1);
	compaction_ask(h->store);
	atomic_fetch_sub(&h->store->item_bytes, (int64_t)MIB(8));
	assert_true(steps_to_the_end(h) > 0); /* at once */
	assert_false(compaction_pending(h->store));
	assert_int_equal(ctr_sum(CTR_memory_compactions), compactions + 2);
}

static void a_pass_is_made_in_bounded_steps_and_a_question_meanwhile_brings_another(void **state)
{
	struct harness *h = *state;
	uint64_t compactions = ctr_sum(CTR_memory_compactions);
	char key[24];

	open_dram(h, 10000);
	compaction_ask(h->store);
	assert_true(keeper_compact(h->store, clk_now_ms(&h->clk)));
	assert_true(compaction_pending(h->store)); /* 10,000 objects are more than one step's */
	compaction_ask(h->store);
	assert_true(steps_to_the_end(h) >= 6);
	assert_int_equal(ctr_sum(CTR_memory_compactions), compactions + 2);
	assert_false(compaction_pending(h->store));
	for (unsigned n = 0; n < 10000; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_non_null(item_of(h, key));
	}
	assert_int_equal(store_dram_items(h->store), 10000);
}

/* A sender or a plan holds the address. */
static void an_object_that_somebody_else_refers_to_stays_where_it_is(void **state)
{
	struct harness *h = *state;
	struct item *held[100];
	char key[24];

	open_dram(h, 6000);
	for (unsigned n = 0; n < 6000; n++) { /* holes to move into */
		snprintf(key, sizeof(key), "object:%u", n);
		if (n % 60)
			run(h, STORE_DELETE, key);
	}
	for (unsigned i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "object:%u", i * 60);
		held[i] = item_of(h, key);
		if (i % 2)
			item_ref(held[i]);
		else
			held[i]->state |= ITEM_PLANNED;
	}
	compaction_ask(h->store);
	assert_true(steps_to_the_end(h) > 0);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "object:%u", i * 60);
		assert_ptr_equal(item_of(h, key), held[i]);
		if (i % 2)
			item_release(&h->worker[0]->context, held[i]);
		else
			held[i]->state &= (uint8_t)~ITEM_PLANNED;
	}
	compaction_ask(h->store);
	assert_true(steps_to_the_end(h) > 0);
	for (unsigned i = 0; i < 100; i++) { /* wherever they are now */
		snprintf(key, sizeof(key), "object:%u", i * 60);
		assert_int_equal(get(h, key).value_hash, hash64(filler, 300, 0));
	}
}

static void objects_are_moved_together_when_most_of_a_size_have_gone(void **state)
{
	struct harness *h = *state;
	bool sparse[MEM_CLASSES];
	uint64_t compactions = ctr_sum(CTR_memory_compactions), holes;
	uint64_t coarse = mem_coarse_bytes(); /* so much of holes is taken for unavoidable */
	unsigned objects = 6000 + (unsigned)(coarse / 500);
	char key[40];

	if (!resident_is_exact())
		skip();
	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(8) + 3 * coarse;
	harness_open(h);
	for (unsigned n = 0; n < objects; n++)
		store_sized(h, "object", n, 1000);
	for (unsigned n = 0; n < objects; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		if (n % 8)
			run(h, STORE_DELETE, key);
	}
	holes = mem_holes(sparse);
	assert_true(holes > MIB(3) + coarse);
	assert_true(sparse[mem_class(store_item_bytes(h->store, strlen("object:10"), 0, 1000))]);
	for (unsigned i = 0; i < 100 && ctr_sum(CTR_memory_compactions) == compactions; i++) {
		keeper_step(h->store);
		clk_scripted_advance(&h->clk, 300000);
	}
	assert_true(ctr_sum(CTR_memory_compactions) > compactions);
	assert_in_range(mem_holes(sparse), 0, holes / 3);
	for (unsigned n = 0; n < objects; n += 8) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(get(h, key).value_hash, hash64(filler, 1000, 0));
	}
}

static void tables_move_too_and_keep_their_links(void **state)
{
	const struct link_line *lines[STRIPES];
	struct harness *h = *state;
	char key[24];

	open_dram(h, 10000);
	for (uint32_t n = 0; n < STRIPES; n++)
		lines[n] = h->store->stripes[n].lines;
	compaction_ask(h->store);
	assert_true(steps_to_the_end(h) > 0);
	for (uint32_t n = 0; n < STRIPES; n++) {
		assert_ptr_not_equal(h->store->stripes[n].lines, lines[n]);
		assert_int_equal((uintptr_t)h->store->stripes[n].lines % sizeof(struct link_line), 0);
	}
	for (unsigned n = 0; n < 10000; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_non_null(item_of(h, key));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_nobody_asked_for_is_not_begun),
		TEST(a_pass_waits_until_items_are_within_the_limit_or_half_a_minute),
		TEST(a_pass_is_made_in_bounded_steps_and_a_question_meanwhile_brings_another),
		TEST(an_object_that_somebody_else_refers_to_stays_where_it_is),
		TEST(tables_move_too_and_keep_their_links),
		TEST(objects_are_moved_together_when_most_of_a_size_have_gone),
	};

	return cmocka_run_group_tests_name("store: compaction", tests, NULL, NULL);
}
