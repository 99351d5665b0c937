/* SPDX-License-Identifier: BSD-3-Clause */
/* Clean copies of what is read from flash, which a fault point or a rule asks for. */
#include "tests/unit/server/store/harness.h"

static void a_slow_get_promotes_nothing_that_was_overwritten(void **state)
{
	struct harness *h = *state;
	struct flight slow, f;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "old");
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &slow, STORE_GET, "k"));
	start_with(h, 1, &f, .op = STORE_SET, .key = "k", .value = "new", .length = 3);
	finish(h, &slow);
	assert_value(h, "k", "new");
	assert_false(start(h, 0, &slow, STORE_GET, "k") && slow.reply.from_flash);
	start(h, 1, &f, STORE_DELETE, "k");
	assert_missing(h, "k");
}

static void a_slow_get_promotes_nothing_that_was_deleted(void **state)
{
	struct harness *h = *state;
	struct flight slow, f;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "old");
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &slow, STORE_GET, "k"));
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	start(h, 1, &f, STORE_DELETE, "k");
	assert_int_equal(finish(h, &f).result, STORE_DELETED);
	finish(h, &slow);
	assert_int_equal(where(h, "k"), NOWHERE);
	assert_missing(h, "k");
}

/* Under -M a slot must lead to its own key alone, and a copy's change could not tell. */
static void under_m_nothing_is_promoted(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	h->config.evict = false;
	harness_open(h);
	set_on_flash(h, "k", "val");
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), FLASH);
}

static void a_large_object_is_not_promoted(void **state)
{
	static char value[9000];
	struct harness *h = *state;
	uint64_t promotions = ctr_sum(CTR_flash_promotions);

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "k", .value = value, .length = sizeof(value));
	move(h, "k");
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), FLASH);
	assert_int_equal(ctr_sum(CTR_flash_promotions), promotions);
}

static void a_copy_has_all_that_its_object_has_and_the_slot_stays(void **state)
{
	struct harness *h = *state;
	struct fidx_match before, after;
	uint64_t promotions = ctr_sum(CTR_flash_promotions);

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	uint64_t cas =
		run_full(h, .op = STORE_SET, .key = "k", .value = "value", .length = 5, .flags = 7, .exptime = 100).cas;
	move(h, "k");
	assert_true(slot_of(h, "k", &before));
	make_clean_copy(h, "k");
	assert_int_equal(ctr_sum(CTR_flash_promotions), promotions + 1);
	assert_true(slot_of(h, "k", &after));
	assert_true(fidx_same(&before, &after));
	struct reply reply = get(h, "k");
	assert_false(reply.from_flash);
	assert_string_equal(reply.value, "value");
	assert_int_equal(reply.flags, 7);
	assert_int_equal(reply.cas, cas);
	seconds_pass(h, 99);
	assert_value(h, "k", "value");
	seconds_pass(h, 1);
	assert_missing(h, "k");
}

static void two_gets_of_one_object_make_one_copy(void **state)
{
	struct harness *h = *state;
	struct flight one, two;
	uint64_t promotions = ctr_sum(CTR_flash_promotions);

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "val");
	uint64_t items = store_dram_items(h->store);
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &one, STORE_GET, "k"));
	assert_false(start(h, 1, &two, STORE_GET, "k"));
	assert_string_equal(finish(h, &one).value, "val");
	assert_string_equal(finish(h, &two).value, "val");
	assert_int_equal(ctr_sum(CTR_flash_promotions), promotions + 1);
	assert_int_equal(store_dram_items(h->store), items + 1);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void without_a_rule_nothing_is_promoted(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "k", "val");
	for (unsigned n = 0; n < 20; n++)
		assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), FLASH);
}

static void lru_promotes_at_the_first_read(void **state)
{
	struct harness *h = *state;
	uint64_t hits = ctr_sum(CTR_flash_copy_hits);

	h->config.promotion.rule = STORE_PROMOTE_LRU;
	harness_open(h);
	uint64_t cas = set(h, "k", "val").cas;
	move(h, "k");
	assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), CLEAN_COPY);
	struct reply reply = get(h, "k");
	assert_false(reply.from_flash);
	assert_string_equal(reply.value, "val");
	assert_int_equal(reply.cas, cas);
	assert_int_equal(ctr_sum(CTR_flash_copy_hits), hits + 1);
	assert_int_equal(set(h, "k", "new").result, STORE_STORED);
	assert_int_equal(slots_of(h, "k"), 0);
	assert_value(h, "k", "new");
}

static void second_promotes_at_the_second_read_on_flash(void **state)
{
	struct harness *h = *state;

	h->config.promotion.rule = STORE_PROMOTE_SECOND;
	harness_open(h);
	set_on_flash(h, "k", "val");
	assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), FLASH);
	assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), CLEAN_COPY);
	assert_false(get(h, "k").from_flash);
	/* A new object begins anew. */
	set_on_flash(h, "k", "new");
	assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), FLASH);
}

static void second_promotes_from_a_bin_too(void **state)
{
	struct harness *h = *state;

	h->config.index = STORE_INDEX_FRUGAL;
	second_promotes_at_the_second_read_on_flash(state);
	h->store->config.reinsertion = STORE_REINSERT_LIVE;
	assert_true(reclaim_segment(h->store, segment_of(h, "k")));
	assert_value(h, "k", "new");
}

/* Every eighth get is sampled; a key that has them all is as hot as can be. */
static void the_sketch_promotes_what_is_hot(void **state)
{
	struct harness *h = *state;
	unsigned gets = 0;

	h->config.promotion.rule = STORE_PROMOTE_SKETCH;
	h->config.promotion.threshold = 20;
	harness_open(h);
	set_on_flash(h, "hot", "val");
	for (; gets < 16 && where(h, "hot") == FLASH; gets++)
		assert_true(get(h, "hot").from_flash);
	assert_int_equal(where(h, "hot"), CLEAN_COPY);
	assert_in_range(gets, 1, 8);
}

/* The gets 0, 8, 16, ... are sampled. "first" has get 0; after n samples of its own "k" has n of n + 1. */
static void the_sketch_promotes_at_its_threshold(void **state)
{
	struct harness *h = *state;

	h->config.promotion.rule = STORE_PROMOTE_SKETCH;
	h->config.promotion.threshold = 19.5; /* 18.75 with three samples, 20 with four */
	harness_open(h);
	set_on_flash(h, "first", "val");
	set_on_flash(h, "k", "val");
	assert_true(get(h, "first").from_flash);
	for (unsigned n = 1; n < 32; n++)
		assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), FLASH);
	assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), CLEAN_COPY);
}

static void under_m_no_rule_promotes(void **state)
{
	struct harness *h = *state;

	h->config.promotion.rule = STORE_PROMOTE_LRU;
	h->config.evict = false;
	harness_open(h);
	set_on_flash(h, "k", "val");
	assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), FLASH);
}

static void a_flush_takes_the_copy_and_its_object(void **state)
{
	struct harness *h = *state;

	h->config.promotion.rule = STORE_PROMOTE_LRU;
	harness_open(h);
	set_on_flash(h, "k", "val");
	assert_true(get(h, "k").from_flash);
	assert_int_equal(where(h, "k"), CLEAN_COPY);
	store_flush_all(h->store, 0);
	assert_missing(h, "k");
	assert_missing(h, "k");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_get_promotes_nothing_that_was_overwritten),
		TEST(a_slow_get_promotes_nothing_that_was_deleted),
		TEST(under_m_nothing_is_promoted),
		TEST(a_large_object_is_not_promoted),
		TEST(a_copy_has_all_that_its_object_has_and_the_slot_stays),
		TEST(two_gets_of_one_object_make_one_copy),
		TEST(without_a_rule_nothing_is_promoted),
		TEST(lru_promotes_at_the_first_read),
		TEST(second_promotes_at_the_second_read_on_flash),
		TEST(second_promotes_from_a_bin_too),
		TEST(the_sketch_promotes_what_is_hot),
		TEST(the_sketch_promotes_at_its_threshold),
		TEST(under_m_no_rule_promotes),
		TEST(a_flush_takes_the_copy_and_its_object),
	};

	return cmocka_run_group_tests_name("store: promotion", tests, NULL, NULL);
}
