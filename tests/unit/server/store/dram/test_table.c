/* SPDX-License-Identifier: BSD-3-Clause */
/* The DRAM table of a stripe: what is linked is found, chains grow and shrink, and their bytes are in the account. */
#include "tests/unit/server/store/harness.h"

#define BUCKETS_LEAST 16u
#define MANY 3000u

/* A stripe held by the test, which takes items of any hash here: no request comes to it. */
struct held {
	struct store_context *context;
	struct store *store;
	struct stripe *stripe;
};

static struct held hold_first(struct harness *h)
{
	h->config.flash_path = NULL;
	harness_open(h);
	struct held held = { .context = &h->worker[0]->context, .store = h->store, .stripe = &h->store->stripes[0] };
	lock_acquire(&held.stripe->lock);
	return held;
}

static uint64_t hash_of(const struct held *held, const char *key)
{
	return store_hash(held->store, key, strlen(key));
}

static struct item *find(const struct held *held, const char *key)
{
	return stripe_find(held->stripe, hash_of(held, key), key, strlen(key));
}

static struct item *make(const struct held *held, const char *key)
{
	struct item *item = item_new(held->context, key, strlen(key), 0, 0, 0);

	assert_non_null(item);
	return item;
}

static struct item *link(const struct held *held, const char *key)
{
	struct item *item = make(held, key);

	stripe_link(held->store, held->stripe, hash_of(held, key), item);
	return item;
}

static void take_out(const struct held *held, const char *key)
{
	struct item *item = find(held, key);

	assert_non_null(item);
	stripe_unlink(held->store, held->stripe, hash_of(held, key), item);
	assert_null(item_next(item));
	assert_false(item->state & ITEM_LINKED);
	item_release(held->context, item);
}

static void name(unsigned n, char key[24])
{
	snprintf(key, 24, "object:%u", n);
}

static void link_many(const struct held *held, unsigned count)
{
	char key[24];

	for (unsigned n = 0; n < count; n++) {
		name(n, key);
		link(held, key);
	}
}

static void let_go(struct held *held, unsigned from, unsigned to)
{
	char key[24];

	for (unsigned n = from; n < to; n++) {
		name(n, key);
		take_out(held, key);
	}
	lock_release(&held->stripe->lock);
}

/* ---- finding --------------------------------------------------------------------------------- */

static void nothing_is_found_but_the_very_key(void **state)
{
	struct held held = hold_first(*state);

	assert_null(find(&held, "key"));
	struct item *item = link(&held, "key");
	/* The same chain, by the hash of the linked key. */
	assert_null(stripe_find(held.stripe, hash_of(&held, "key"), "ke", 2));
	assert_null(stripe_find(held.stripe, hash_of(&held, "key"), "keys", 4));
	assert_null(stripe_find(held.stripe, hash_of(&held, "key"), "kez", 3));
	assert_ptr_equal(find(&held, "key"), item);
	take_out(&held, "key");
	assert_null(find(&held, "key"));
	lock_release(&held.stripe->lock);
}

static void objects_of_one_chain_are_told_apart_and_each_can_go_first(void **state)
{
	static const char *const keys[] = { "a", "b", "c" };
	struct held held = hold_first(*state);

	for (unsigned first = 0; first < 3; first++) {
		struct item *item[3];

		for (unsigned i = 0; i < 3; i++) { /* under one hash */
			item[i] = make(&held, keys[i]);
			stripe_link(held.store, held.stripe, 4711, item[i]);
		}
		stripe_unlink(held.store, held.stripe, 4711, item[first]);
		for (unsigned i = 0; i < 3; i++)
			assert_ptr_equal(stripe_find(held.stripe, 4711, keys[i], 1), i == first ? NULL : item[i]);
		for (unsigned i = 0; i < 3; i++) {
			if (i != first)
				stripe_unlink(held.store, held.stripe, 4711, item[i]);
			item_release(held.context, item[i]);
		}
		assert_int_equal(held.stripe->count, 0);
	}
	lock_release(&held.stripe->lock);
}

/* ---- replacing ------------------------------------------------------------------------------- */

static void a_replaced_item_is_its_caller_s_and_the_count_stays(void **state)
{
	struct held held = hold_first(*state);
	struct item *old = link(&held, "key"), *new = make(&held, "key");

	candidate_set(held.store, held.stripe, old);
	stripe_replace(held.store, held.stripe, hash_of(&held, "key"), old, new);
	assert_ptr_equal(find(&held, "key"), new);
	assert_int_equal(held.stripe->count, 1);
	assert_int_equal(old->state & (ITEM_LINKED | ITEM_CANDIDATE), 0);
	assert_int_equal(new->state &(ITEM_LINKED | ITEM_CANDIDATE), ITEM_LINKED);
	assert_int_equal(held.stripe->candidates, 0);
	assert_int_equal(candidate_total(held.store), 0);
	assert_int_equal(old->refs, 1);
	item_release(held.context, old);
	take_out(&held, "key");
	lock_release(&held.stripe->lock);
}

static void what_is_replaced_in_a_chain_leaves_its_neighbours_linked(void **state)
{
	static const char *const keys[] = { "a", "b", "c" };
	struct held held = hold_first(*state);
	struct item *item[3];

	for (unsigned i = 0; i < 3; i++) {
		item[i] = make(&held, keys[i]);
		stripe_link(held.store, held.stripe, 4711, item[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		struct item *new = make(&held, keys[i]);

		stripe_replace(held.store, held.stripe, 4711, item[i], new);
		item_release(held.context, item[i]);
		item[i] = new;
		for (unsigned j = 0; j < 3; j++)
			assert_ptr_equal(stripe_find(held.stripe, 4711, keys[j], 1), item[j]);
	}
	for (unsigned i = 0; i < 3; i++) {
		stripe_unlink(held.store, held.stripe, 4711, item[i]);
		item_release(held.context, item[i]);
	}
	lock_release(&held.stripe->lock);
}

/* ---- the number of chains -------------------------------------------------------------------- */

static void a_stripe_with_few_objects_keeps_its_least_chains(void **state)
{
	struct held held = hold_first(*state);
	uint64_t bytes = held.store->table_bytes;

	assert_int_equal(held.stripe->mask + 1, BUCKETS_LEAST);
	stripe_shrink(held.store, held.stripe);
	assert_int_equal(held.stripe->mask + 1, BUCKETS_LEAST);
	link_many(&held, BUCKETS_LEAST + BUCKETS_LEAST / 2);
	assert_int_equal(held.stripe->mask + 1, BUCKETS_LEAST);
	assert_int_equal(held.store->table_bytes, bytes);
	let_go(&held, 0, BUCKETS_LEAST + BUCKETS_LEAST / 2);
}

static void chains_double_as_objects_come_and_each_is_still_found(void **state)
{
	struct held held = hold_first(*state);
	uint64_t bytes = held.store->table_bytes;
	char key[24];

	link_many(&held, MANY);
	assert_int_equal(held.stripe->count, MANY);
	assert_in_range(held.stripe->mask + 1, MANY / 2, 2 * MANY);
	assert_int_equal(held.stripe->mask & (held.stripe->mask + 1), 0);
	assert_int_equal(held.store->table_bytes,
			 bytes + (held.stripe->mask + 1 - BUCKETS_LEAST) * sizeof(struct item_link));
	for (unsigned n = 0; n < MANY; n++) {
		name(n, key);
		assert_non_null(find(&held, key));
	}
	name(MANY, key);
	assert_null(find(&held, key));
	let_go(&held, 0, MANY);
}

static void chains_shrink_only_below_an_object_for_four_of_them(void **state)
{
	struct held held = hold_first(*state);
	uint64_t bytes = held.store->table_bytes;
	char key[24];

	link_many(&held, MANY);
	uint32_t full = held.stripe->mask + 1, left = MANY;
	for (; left > full / 4; left--) {
		name(left - 1, key);
		take_out(&held, key);
		stripe_shrink(held.store, held.stripe);
		assert_int_equal(held.stripe->mask + 1, full);
	}
	name(--left, key);
	take_out(&held, key);
	assert_int_equal(held.stripe->mask + 1, full); /* not before somebody asks */
	stripe_shrink(held.store, held.stripe);
	assert_int_equal(held.stripe->mask + 1, full / 2);
	for (unsigned n = 0; n < left; n++) {
		name(n, key);
		assert_non_null(find(&held, key));
	}
	for (; left > 0; left--) {
		name(left - 1, key);
		take_out(&held, key);
	}
	stripe_shrink(held.store, held.stripe); /* all at once */
	assert_int_equal(held.stripe->mask + 1, BUCKETS_LEAST);
	assert_int_equal(held.store->table_bytes, bytes);
	lock_release(&held.stripe->lock);
}

/* ---- stripes --------------------------------------------------------------------------------- */

static uint32_t stripes_with(struct harness *h, uint64_t memory_bytes)
{
	h->config.memory_bytes = memory_bytes;
	harness_open(h);
	uint32_t count = h->store->stripe_count;
	assert_int_equal(h->store->table_bytes, count * BUCKETS_LEAST * sizeof(struct item_link));
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_found_but_the_very_key),
		TEST(objects_of_one_chain_are_told_apart_and_each_can_go_first),
		TEST(a_replaced_item_is_its_caller_s_and_the_count_stays),
		TEST(what_is_replaced_in_a_chain_leaves_its_neighbours_linked),
		TEST(a_stripe_with_few_objects_keeps_its_least_chains),
		TEST(chains_double_as_objects_come_and_each_is_still_found),
		TEST(chains_shrink_only_below_an_object_for_four_of_them),
		TEST(the_number_of_stripes_follows_from_memory_within_bounds),
		TEST(there_are_not_more_stripes_than_tags),
		TEST(foreseeing_changes_nothing_whatever_the_hashes_are),
	};

	return cmocka_run_group_tests_name("store: the DRAM table", tests, NULL, NULL);
}
