/* SPDX-License-Identifier: BSD-3-Clause */
/* The stripes: how many there are, and looks ahead. */
#include "tests/unit/server/store/harness.h"

static uint32_t stripes_with(struct harness *h, uint64_t memory_bytes)
{
	h->config.memory_bytes = memory_bytes;
	harness_open(h);
	uint32_t count = h->store->stripe_count;
	assert_int_equal(h->store->table_bytes, count * sizeof(struct link_line));
	harness_close(h);
	return count;
}

static void the_number_of_stripes_follows_from_memory_within_bounds(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	assert_int_equal(stripes_with(h, MIB(1)), 64);
	assert_int_equal(stripes_with(h, MIB(4)), 64);
	assert_int_equal(stripes_with(h, MIB(4) + 1), 64);
	assert_int_equal(stripes_with(h, MIB(5)), 128);
	assert_int_equal(stripes_with(h, MIB(512)), 8192);
	assert_int_equal(stripes_with(h, 1ull << 40), 8192);
}

/* A stripe is chosen by tag bits: more stripes than tags would stay empty. */
static void there_are_not_more_stripes_than_tags(void **state)
{
	struct harness *h = *state;

	h->config.memory_bytes = MIB(64);
	h->config.tag_bits = 8;
	harness_open(h);
	assert_int_equal(h->store->stripe_count, 256);
	harness_close(h);
	h->config.tag_bits = 2;
	harness_open(h);
	assert_int_equal(h->store->stripe_count, 64); /* the least */
}

static void foreseeing_changes_nothing_whatever_the_hashes_are(void **state)
{
	struct harness *h = *state;
	uint64_t hashes[64];

	harness_open(h);
	for (unsigned i = 0; i < 64; i++)
		hashes[i] = 0x9e3779b97f4a7c15ull * i;
	set(h, "key", "value");
	hashes[7] = store_hash(h->store, "key", 3);
	stripes_foresee(h->store, hashes, 0);
	stripes_foresee(h->store, hashes, 64);
	assert_int_equal(store_dram_items(h->store), 1);
	for (uint32_t i = 0; i < h->store->stripe_count; i++) { /* each was released */
		assert_true(lock_try(&h->store->stripes[i].lock));
		lock_release(&h->store->stripes[i].lock);
	}
	assert_value(h, "key", "value");
}

/* Memory that is out at the first stripe, at the last, or between them: a start that fails, and nothing is left of it. */
static void a_start_without_memory_for_all_stripes_fails(void **state)
{
	struct harness *h = *state;
	unsigned failed = 0;

#ifndef FS_FAULTS
	skip();
#endif
	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(4);
	for (unsigned n = 1; n <= 64; n++) {
		fault_arm(FAULT_memory_alloc, FAULT_AFTER, n);
		int result = harness_try_open(h);
		fault_disarm_all();
		if (result == FS_OK) {
			harness_close(h);
			continue;
		}
		assert_int_equal(result, FS_ENOMEM);
		failed++;
	}
	assert_true(failed >= 60);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_number_of_stripes_follows_from_memory_within_bounds),
		TEST(there_are_not_more_stripes_than_tags),
		TEST(foreseeing_changes_nothing_whatever_the_hashes_are),
		TEST(a_start_without_memory_for_all_stripes_fails),
	};

	return cmocka_run_group_tests_name("store: stripes", tests, NULL, NULL);
}
