/* SPDX-License-Identifier: BSD-3-Clause */
/* The account of -m, and eviction by workers and by the cleaner. */
#include "tests/unit/server/store/harness.h"

static char big[KIB(900)];

static uint64_t items_bytes(struct harness *h)
{
	for (unsigned i = 0; i < WORKERS; i++)
		context_settle(&h->worker[i]->context);
	context_settle(&h->store->cleaner->context);
	int64_t bytes = atomic_load(&h->store->item_bytes);
	assert_true(bytes >= 0);
	return (uint64_t)bytes;
}

static enum store_result store_sized(struct harness *h, unsigned n, uint32_t length)
{
	char key[24];

	snprintf(key, sizeof(key), "object:%u", n);
	return run_full(h, .op = STORE_SET, .key = key, .value = big, .length = length).result;
}

/* Under -M: until the flash is full, and then DRAM. How many objects. */
static unsigned fill_both(struct harness *h)
{
	unsigned n = 0;

	for (unsigned refused = 0; refused < 100;) {
		if (store_sized(h, n, 350) == STORE_STORED) {
			n++;
			refused = 0;
		} else {
			refused++;
		}
		if (candidate_total(h->store) > KIB(128) && refused % 16 == 0)
			write_segment(h->store, (1u << GROUPS) - 1);
	}
	return n;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void without_eviction_a_set_is_refused_and_nothing_evicted(void **state)
{
	struct harness *h = *state;
	unsigned stored = 0;
	char key[24];

	h->config.evict = false;
	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(2);
	harness_open(h);
	uint64_t evictions = ctr_sum(CTR_evictions);
	while (store_sized(h, stored, 1000) == STORE_STORED)
		stored++;
	assert_int_equal(store_sized(h, stored, 1000), STORE_NO_MEMORY);
	assert_true(stored > 500);
	store_clean_step(h->store);
	seconds_pass(h, 10);
	store_clean_step(h->store);
	for (unsigned i = 0; i < stored; i++) {
		snprintf(key, sizeof(key), "object:%u", i);
		assert_int_equal(get(h, key).result, STORE_HIT);
	}
	assert_int_equal(ctr_sum(CTR_evictions), evictions);
	for (unsigned i = 0; i < stored; i++) {
		snprintf(key, sizeof(key), "object:%u", i);
		assert_int_equal(run(h, STORE_DELETE, key).result, STORE_DELETED);
	}
	assert_int_equal(store_sized(h, 0, 1000), STORE_STORED);
}

/* ... but what is expired or flushed makes room, with no crawler running. */
static void without_eviction_a_set_takes_the_room_of_what_is_expired_or_flushed(void **state)
{
	struct harness *h = *state;
	unsigned stored = 0, more = 0;
	uint64_t evictions = ctr_sum(CTR_evictions);

	h->config.evict = false;
	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(2);
	harness_open(h);
	while (store_sized(h, stored, 1000) == STORE_STORED)
		stored++;
	store_flush_all(h->store, 0);
	for (unsigned i = 0; i < stored; i++)
		more += store_sized(h, stored + i, 1000) == STORE_STORED;
	assert_in_range(more, stored - stored / 20, stored); /* the refused ones looked for room, too */
	assert_true(ctr_sum(CTR_reclaimed) >= more / 2);
	assert_int_equal(ctr_sum(CTR_evictions), evictions);
}

/* Touching what lies on flash brings it into DRAM: that may not go on past the limit. */
static void without_eviction_flash_objects_do_not_grow_dram_past_the_limit(void **state)
{
	struct harness *h = *state;
	char key[24];

	h->config.evict = false;
	h->config.memory_bytes = MIB(1);
	h->config.flash_bytes = MIB(2) + KIB(64);
	h->config.flash_object_bytes = 400;
	harness_open(h);
	unsigned n = fill_both(h);
	uint64_t budget = store_item_budget(h->store);
	struct fidx_status status;
	fidx_get_status(h->store->index, &status);
	assert_true(status.used * 400 > budget + budget / 2); /* there is much to be touched */
	for (unsigned i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "object:%u", i);
		run_expiry(h, STORE_TOUCH, key, 1000);
	}
	assert_in_range(items_bytes(h), 0, budget + budget / 8 + KIB(64));
}

/* A full flash takes nothing more, until all objects of its oldest segment have gone. */
static void without_eviction_an_empty_segment_is_written_anew(void **state)
{
	struct harness *h = *state;
	char key[24];

	h->config.evict = false;
	h->config.memory_bytes = MIB(1);
	h->config.flash_bytes = MIB(1) + KIB(64);
	h->config.flash_object_bytes = 400;
	harness_open(h);
	unsigned n = fill_both(h);
	assert_false(write_segment(h->store, (1u << GROUPS) - 1));
	for (unsigned i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "object:%u", i);
		if (where(h, key) == FLASH)
			assert_int_equal(run(h, STORE_DELETE, key).result, STORE_DELETED);
	}
	assert_true(write_segment(h->store, (1u << GROUPS) - 1));
}

static void an_object_over_the_limit_is_refused_before_it_is_read(void **state)
{
	struct harness *h = *state;
	enum store_result why = STORE_STORED;

	h->config.max_item_bytes = 2048;
	harness_open(h);
	assert_true(store_too_large(h->store, 3, 2048));
	assert_false(store_too_large(h->store, 3, 1900));
	assert_true(store_too_large(h->store, 3, UINT64_MAX / 2));
	assert_null(store_item_create(h->worker[0], "key", 3, 0, 0, 2048, &why));
	assert_int_equal(why, STORE_TOO_LARGE);
	assert_int_equal(store_sized(h, 1, 2048), STORE_TOO_LARGE);
	assert_nothing_left(h);
}

/* ---- eviction -------------------------------------------------------------------------------- */

static void a_set_never_fails_or_waits_and_the_items_stay_within_their_budget(void **state)
{
	struct harness *h = *state;

	h->config.memory_bytes = MIB(2);
	harness_open(h);
	uint64_t reads = ctr_sum(CTR_flash_reads), written = ctr_sum(CTR_flash_bytes_written);
	for (unsigned n = 0; n < 20000; n++)
		assert_int_equal(store_sized(h, n, 100 + n % 1500), STORE_STORED);
	assert_int_equal(ctr_sum(CTR_flash_reads), reads);
	assert_int_equal(ctr_sum(CTR_flash_bytes_written), written); /* no cleaner ran */
	uint64_t budget = store_item_budget(h->store);
	assert_in_range(items_bytes(h), budget / 2, budget + 2 * (uint64_t)h->store->account_batch + 2000);
	assert_in_range(store_used_bytes(h->store), 0, MIB(2) + KIB(64));
}

static void large_values_make_room_for_themselves(void **state)
{
	struct harness *h = *state;

	h->config.memory_bytes = MIB(4);
	harness_open(h);
	for (unsigned n = 0; n < 3000; n++)
		assert_int_equal(store_sized(h, n, 1000), STORE_STORED);
	for (unsigned n = 0; n < 10; n++)
		assert_int_equal(store_sized(h, 10000 + n, sizeof(big)), STORE_STORED);
	uint64_t budget = store_item_budget(h->store);
	assert_in_range(items_bytes(h), 0, budget + sizeof(big) + KIB(128));
	assert_int_equal(get(h, "object:10009").value_hash, hash64(big, sizeof(big), 0));
}

static void what_is_read_outlives_what_is_not(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(2);
	harness_open(h);
	set(h, "hot", "value");
	for (unsigned n = 0; n < 20000; n++) {
		if (n % 50 == 0)
			assert_value(h, "hot", "value");
		store_sized(h, n, 300);
	}
	assert_value(h, "hot", "value");
}

static void the_cleaner_keeps_a_segment_free_and_fills_the_flash(void **state)
{
	struct harness *h = *state;

	h->config.memory_bytes = MIB(2);
	harness_open(h);
	uint64_t objects = ctr_sum(CTR_flash_objects_written);
	for (unsigned n = 0; n < 20000; n++) {
		store_sized(h, n, 300);
		if (n % 20 == 0)
			while (store_clean_step(h->store))
				;
	}
	assert_true(ctr_sum(CTR_flash_objects_written) > objects + 1000);
	items_bytes(h);
	assert_true(store_free_bytes(h->store) >= (int64_t)KIB(64) / 2);
	assert_true(fidx_verify(h->store->index));
}

static void a_full_table_of_extents_leaves_large_objects_in_dram(void **state)
{
	struct harness *h = *state;
	char key[24];

	harness_open(h);
	for (unsigned n = 0; n < 400; n++) {
		assert_int_equal(store_sized(h, n, 6000), STORE_STORED);
		if (n % 20 == 0)
			write_one(h);
	}
	for (unsigned n = 390; n < 400; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(get(h, key).value_hash, hash64(big, 6000, 0));
	}
	assert_true(fidx_verify(h->store->index));
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static void the_budget_is_m_less_everything_else(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.memory_limit, MIB(8));
	assert_int_equal(status.dram_budget + status.memory_used - status.dram_bytes, MIB(8));
	set(h, "key", "value");
	items_bytes(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.dram_bytes, mem_cost(store_item_bytes(h->store, 3, 0, 5)));
	assert_int_equal(status.dram_items, 1);
}

static void what_others_take_items_may_not(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	_Atomic uint64_t *const others[] = { &h->store->index_bytes, &h->store->table_bytes, &h->store->plan_bytes,
					     &h->store->reader_bytes, &h->store->losses_bytes };
	uint64_t budget = store_item_budget(h->store);

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		atomic_fetch_add(others[i], KIB(100));
		assert_int_equal(store_item_budget(h->store), budget - KIB(100));
		atomic_fetch_sub(others[i], KIB(100));
	}
	assert_int_equal(store_item_budget(h->store), budget);
}

static void after_all_is_deleted_the_accounts_are_exactly_zero(void **state)
{
	struct harness *h = *state;
	char key[24];

	harness_open(h);
	for (unsigned n = 0; n < 2000; n++)
		store_sized(h, n, n % 900);
	for (int i = 0; i < 4; i++)
		write_segment(h->store, (1u << GROUPS) - 1);
	for (unsigned n = 0; n < 2000; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		run(h, STORE_DELETE, key);
		assert_missing(h, key);
	}
	assert_nothing_left(h);
}

/* As the load of tables swings, some phases are worse than the mean of 7.5 bytes. */
static void header_and_link_together_stay_within_38_bytes(void **state)
{
	struct harness *h = *state;
	uint64_t sum = 0, samples = 0;

	h->config.memory_bytes = MIB(64);
	h->config.flash_path = NULL;
	harness_open(h);
	for (uint64_t n = 1; n <= 400000; n++) {
		store_sized(h, (unsigned)n, 1);
		if (n < 100000 || n % 2000)
			continue;
		uint64_t bytes = atomic_load(&h->store->table_bytes);
		assert_true(sizeof(struct item) + sizeof(struct clf_reads) + (double)bytes / (double)n <= 38);
		sum += bytes * 1000 / n;
		samples++;
	}
	assert_in_range(sum / samples, 6400, 8000);
}

/* A plan takes all candidates of many stripes in a row: a hand among them would find nothing for long. */
static void the_hand_gets_away_from_what_is_planned(void **state)
{
	struct harness *h = *state;
	struct store_context *context;
	struct gathered plan;
	uint64_t visited;

	harness_open(h);
	context = &h->worker[0]->context;
	for (unsigned n = 0; n < 4000; n++)
		assert_int_equal(store_sized(h, n, 100), STORE_STORED);
	h->store->cleaner->gather_stripe = 0;
	gather_candidates(h->store, (1u << GROUPS) - 1, candidate_total(h->store) / 2, 0, &plan);
	assert_true(plan.count > 1500);
	context->hand_stripe = 1; /* among the planned ones */
	context->hand_line = 0;
	assert_true(evict_dram(context, 1000, 500, EVICT_ANY, true, &visited) >= 1000);
	gathered_release(h->store, &plan);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_eviction_a_set_is_refused_and_nothing_evicted),
		TEST(without_eviction_a_set_takes_the_room_of_what_is_expired_or_flushed),
		TEST(without_eviction_flash_objects_do_not_grow_dram_past_the_limit),
		TEST(without_eviction_an_empty_segment_is_written_anew),
		TEST(an_object_over_the_limit_is_refused_before_it_is_read),
		TEST(a_set_never_fails_or_waits_and_the_items_stay_within_their_budget),
		TEST(large_values_make_room_for_themselves),
		TEST(what_is_read_outlives_what_is_not),
		TEST(the_hand_gets_away_from_what_is_planned),
		TEST(the_cleaner_keeps_a_segment_free_and_fills_the_flash),
		TEST(a_full_table_of_extents_leaves_large_objects_in_dram),
		TEST(the_budget_is_m_less_everything_else),
		TEST(what_others_take_items_may_not),
		TEST(after_all_is_deleted_the_accounts_are_exactly_zero),
		TEST(header_and_link_together_stay_within_38_bytes),
	};

	return cmocka_run_group_tests_name("store: memory and eviction", tests, NULL, NULL);
}
