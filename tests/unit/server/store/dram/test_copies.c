/* SPDX-License-Identifier: BSD-3-Clause */
/* Clean copies keep within their share, the ones that are read stay, and each way out of DRAM is counted. */
#include "tests/unit/server/store/harness.h"

#define KEYS 40u
#define VALUE_BYTES 400u

static char value[VALUE_BYTES];

static const char *name(unsigned n)
{
	static char key[16];

	snprintf(key, sizeof(key), "key%u", n);
	return key;
}

/* Each get from flash is promoted; the share has room for about ten copies. */
static void open_with_share(struct harness *h, double share)
{
	h->config.promotion.rule = STORE_PROMOTE_LRU;
	h->config.promotion.share = share;
	harness_open(h);
}

static void put_on_flash(struct harness *h, unsigned keys)
{
	for (unsigned n = 0; n < keys; n++)
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = name(n), .value = value, .length = VALUE_BYTES).result,
			STORE_STORED);
	for (unsigned n = 0; n < keys; n++)
		move(h, name(n));
}

static unsigned copies(struct harness *h, unsigned keys)
{
	unsigned count = 0;

	for (unsigned n = 0; n < keys; n++)
		count += where(h, name(n)) == CLEAN_COPY;
	return count;
}

static uint64_t share_bytes(const struct harness *h)
{
	return (uint64_t)(h->config.promotion.share * (double)h->config.memory_bytes);
}

static void the_oldest_copies_make_room(void **state)
{
	struct harness *h = *state;
	uint64_t dropped = ctr_sum(CTR_flash_copies_dropped);

	open_with_share(h, 6144.0 / (double)MIB(8));
	put_on_flash(h, KEYS);
	for (unsigned n = 0; n < KEYS; n++)
		for (unsigned again = 0; again < 2 && where(h, name(n)) == FLASH; again++)
			assert_true(get(h, name(n)).from_flash);
	assert_in_range(copies(h, KEYS), 5, 14);
	assert_int_equal(where(h, name(KEYS - 1)), CLEAN_COPY);
	assert_int_equal(where(h, name(0)), FLASH);
	assert_in_range(ctr_sum(CTR_flash_copies_dropped) - dropped, KEYS - 14, KEYS);
	assert_true(copies_bytes(h->store) <= share_bytes(h));
	assert_true(get(h, name(0)).from_flash); /* nothing is lost with a copy */
}

static void a_copy_that_is_read_gets_a_second_chance(void **state)
{
	struct harness *h = *state;
	uint64_t hits = ctr_sum(CTR_flash_copy_hits), reads = 0;

	open_with_share(h, 6144.0 / (double)MIB(8));
	put_on_flash(h, KEYS);
	assert_true(get(h, name(0)).from_flash);
	assert_int_equal(where(h, name(0)), CLEAN_COPY);
	for (unsigned n = 1; n < KEYS; n++) {
		(void)get(h, name(n));
		if (where(h, name(0)) == CLEAN_COPY) {
			(void)get(h, name(0));
			reads++;
		}
	}
	assert_int_equal(where(h, name(0)), CLEAN_COPY);
	assert_int_equal(reads, KEYS - 1);
	assert_int_equal(ctr_sum(CTR_flash_copy_hits) - hits, reads);
}

static void a_copy_that_would_empty_the_share_is_not_made(void **state)
{
	struct harness *h = *state;

	open_with_share(h, 2048.0 / (double)MIB(8));
	put_on_flash(h, 1);
	assert_true(get(h, name(0)).from_flash);
	assert_int_equal(where(h, name(0)), FLASH);
	assert_int_equal(copies_bytes(h->store), 0);
}

/* A change, a delete, an eviction, a reclaim. */
static void each_way_out_of_dram_is_counted(void **state)
{
	struct harness *h = *state;

	open_with_share(h, 0.2);
	put_on_flash(h, 4);
	for (unsigned n = 0; n < 4; n++)
		assert_true(get(h, name(n)).from_flash);
	assert_int_equal(copies(h, 4), 4);
	uint64_t each = copies_bytes(h->store) / 4;
	assert_true(each >= VALUE_BYTES);
	assert_int_equal(set(h, name(0), "new").result, STORE_STORED);
	assert_int_equal(copies_bytes(h->store), 3 * each);
	assert_int_equal(run(h, STORE_DELETE, name(1)).result, STORE_DELETED);
	assert_int_equal(copies_bytes(h->store), 2 * each);
	assert_int_equal(run_expiry(h, STORE_TOUCH, name(2), 100).result, STORE_TOUCHED);
	assert_int_equal(where(h, name(2)), DRAM);
	assert_int_equal(copies_bytes(h->store), each);
	reclaim_of(h, segment_of(h, name(3)));
	assert_int_not_equal(where(h, name(3)), CLEAN_COPY);
	assert_int_equal(copies_bytes(h->store), 0);
	assert_int_equal(get(h, name(3)).result, STORE_HIT);
}

static void a_hash_without_a_copy_costs_one_look(void **state)
{
	struct harness *h = *state;

	open_with_share(h, 6144.0 / (double)MIB(8));
	put_on_flash(h, 2);
	for (unsigned n = 0; n < 1000; n++) /* the queue is full of keys that nobody has */
		(void)!copies_note(h->store, n);
	for (unsigned n = 0; n < 1000 && where(h, name(0)) == FLASH; n++)
		assert_true(get(h, name(0)).from_flash);
	assert_int_equal(where(h, name(0)), CLEAN_COPY);
}

/* Its memory is a part of -m that is told, and given back. */
static void the_queue_grows_with_the_copies(void **state)
{
	struct harness *h = *state;
	const unsigned keys = 5 * KEYS; /* more than a new queue has room for */
	struct store_memory memory;

	open_with_share(h, 0.2);
	uint64_t before = atomic_load(&h->store->promotion_bytes);
	put_on_flash(h, keys);
	for (unsigned n = 0; n < keys; n++)
		(void)get(h, name(n));
	assert_int_equal(copies(h, keys), keys);
	assert_true(atomic_load(&h->store->promotion_bytes) - before >= keys * sizeof(uint64_t));
	store_get_memory(h->store, &memory);
	assert_int_equal(memory.promotion, atomic_load(&h->store->promotion_bytes));
	/* The order is kept over the growth. */
	assert_true(copies_make_room(&h->worker[0]->context, 0, KIB(1)));
	for (unsigned n = 0; n < 64; n++)
		(void)!copies_make_room(&h->worker[0]->context, 0, copies_share_bytes(h->store) / 8);
	assert_int_equal(where(h, name(keys - 1)), CLEAN_COPY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_oldest_copies_make_room),
		TEST(a_copy_that_is_read_gets_a_second_chance),
		TEST(a_copy_that_would_empty_the_share_is_not_made),
		TEST(each_way_out_of_dram_is_counted),
		TEST(a_hash_without_a_copy_costs_one_look),
		TEST(the_queue_grows_with_the_copies),
	};

	return cmocka_run_group_tests_name("store: clean copies", tests, NULL, NULL);
}
