/* SPDX-License-Identifier: BSD-3-Clause */
/* Size classes: which there are, what is counted for each, and that a reset forgets it. */
#include "tests/unit/server/store/harness.h"

#define NUMBER "0000000000000000000000000000000000000000000000000000000000000001"

static char bytes_of[MIB(1)];

static struct store_class_status class_status(struct harness *h, unsigned class)
{
	struct store_class_status status;

	store_get_class(h->store, class, &status);
	return status;
}

/* Of all classes together. */
static struct store_class_status sums(struct harness *h)
{
	struct store_class_status sum = { 0 };

	for (unsigned class = 1; class <= store_class_count(); ++class) {
		struct store_class_status one = class_status(h, class);

		sum.items += one.items;
		sum.requested_bytes += one.requested_bytes;
		sum.evicted += one.evicted;
		sum.evicted_nonzero += one.evicted_nonzero;
		sum.evicted_unfetched += one.evicted_unfetched;
		sum.evicted_active += one.evicted_active;
		sum.direct_reclaims += one.direct_reclaims;
		sum.crawler_checked += one.crawler_checked;
		sum.crawler_reclaimed += one.crawler_reclaimed;
		sum.expired_unfetched += one.expired_unfetched;
		sum.reclaimed += one.reclaimed;
		sum.out_of_memory += one.out_of_memory;
	}
	return sum;
}

/* An item of just so many bytes. */
static struct reply set_sized(struct harness *h, const char *key, uint32_t bytes, int64_t exptime)
{
	return run_full(h, .op = STORE_SET, .key = key, .value = bytes_of,
			.length = bytes - (uint32_t)store_item_bytes(h->store, strlen(key), 0, 0), .exptime = exptime);
}

/* ---- which there are ------------------------------------------------------------------------- */

static void classes_ascend_and_each_holds_what_is_above_the_last(void **state)
{
	(void)state;
	assert_in_range(store_class_count(), 50, 200);
	for (unsigned class = 1; class <= store_class_count(); ++class) {
		uint32_t bytes = store_class_bytes(class);

		assert_int_equal(size_class(bytes), class);
		if (class < store_class_count())
			assert_int_equal(size_class(bytes + 1ull), class + 1);
		if (class > 1)
			assert_true(bytes > store_class_bytes(class - 1));
	}
	assert_int_equal(size_class(sizeof(struct item) + 1), 1);
	assert_int_equal(size_class(1ull << 32), store_class_count());
}

static void classes_are_the_allocators(void **state)
{
	(void)state;
#ifdef FS_LIBC_MALLOC
	skip(); /* libc's are others */
#endif
	assert_true(mem_cost(sizeof(struct item) + 1) <= CLASS_LEAST_BYTES);
	for (uint64_t bytes = CLASS_LEAST_BYTES; bytes <= 1ull << 30; bytes += bytes < 20000 ? 1 : bytes / 100)
		assert_int_equal(mem_cost(bytes), store_class_bytes(size_class(bytes)));
}

/* ---- what is there now ----------------------------------------------------------------------- */

static void items_and_bytes_are_those_that_are_there(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	assert_int_equal(sums(h).items, 0);
	set_sized(h, "a", 100, 0);
	set_sized(h, "b", 112, 0);
	set_sized(h, "c", 113, 0);
	assert_int_equal(class_status(h, size_class(112)).items, 2);
	assert_int_equal(class_status(h, size_class(112)).requested_bytes, 212);
	assert_int_equal(class_status(h, size_class(113)).items, 1);
	set_sized(h, "a", 200, 0);
	assert_int_equal(class_status(h, size_class(112)).items, 1);
	assert_int_equal(class_status(h, size_class(200)).requested_bytes, 200);
	run(h, STORE_DELETE, "a");
	run(h, STORE_DELETE, "b");
	run(h, STORE_DELETE, "c");
	assert_int_equal(sums(h).items, 0);
	assert_int_equal(sums(h).requested_bytes, 0);
}

/* Made by one thread's context, freed by another's. */
static void what_moves_to_flash_is_no_longer_there(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set_sized(h, "key", 1000, 0);
	assert_int_equal(class_status(h, size_class(1000)).items, 1);
	move(h, "key");
	assert_int_equal(class_status(h, size_class(1000)).items, 0);
	assert_int_equal(sums(h).items, store_dram_items(h->store));
}

static void a_worker_that_ends_leaves_its_counts(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	set_sized(h, "a", 100, 0);
	store_worker_destroy(h->worker[1]);
	h->worker[1] = NULL;
	store_worker_destroy(h->worker[0]);
	assert_int_equal(store_worker_create(&h->worker[0], h->store), FS_OK);
	assert_int_equal(class_status(h, size_class(100)).items, 1);
	run(h, STORE_DELETE, "a");
	assert_int_equal(class_status(h, size_class(100)).items, 0);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* Each command once on a number of this class, which is there, and once on a key that isn't. */
static void run_each(struct harness *h, const char *key)
{
	static const char digits[] = NUMBER;

	assert_int_equal(run_number(h, STORE_INCR, "absent", 1).result, STORE_MISS);
	assert_int_equal(run(h, STORE_DELETE, "absent").result, STORE_MISS);
	assert_int_equal(get(h, "absent").result, STORE_MISS);
	assert_int_equal(
		run_full(h, .op = STORE_CAS, .key = key, .value = digits, .length = sizeof(digits) - 1, .cas = 12345)
			.result,
		STORE_EXISTS);
	assert_int_equal(run_full(h, .op = STORE_ADD, .key = key, .value = digits, .length = 14).result,
			 STORE_NOT_STORED);
	assert_int_equal(run_expiry(h, STORE_TOUCH, key, 0).result, STORE_TOUCHED);
	assert_int_equal(run_expiry(h, STORE_GAT, key, 0).result, STORE_HIT);
	assert_int_equal(
		run_full(h, .op = STORE_CAS, .key = key, .value = digits + 50, .length = 14, .cas = get(h, key).cas)
			.result,
		STORE_STORED);
	assert_int_equal(run_number(h, STORE_INCR, key, 1).result, STORE_HIT);
	assert_int_equal(run_number(h, STORE_DECR, key, 1).result, STORE_HIT);
	assert_int_equal(run(h, STORE_DELETE, key).result, STORE_DELETED);
}

static void assert_counted(struct harness *h, unsigned class, unsigned small)
{
	struct store_class_status status = class_status(h, class), less = class_status(h, small);

	assert_int_equal(status.cas_badval, 1);
	assert_int_equal(status.touch_hits, 2);
	assert_int_equal(status.get_hits, 1);
	assert_int_equal(status.cas_hits, 1);
	assert_int_equal(status.set_count, 1 + 1); /* the first set, and the cas that was refused */
	assert_int_equal(less.set_count, 1 + 1); /* the add, and the cas */
	assert_int_equal(less.incr_hits, 1);
	assert_int_equal(less.decr_hits, 1);
	assert_int_equal(less.delete_hits, 1);
	assert_int_equal(status.incr_hits + status.decr_hits + status.delete_hits + less.get_hits, 0);
}

static void commands_are_counted_in_the_class_of_their_object(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	set(h, "number-key-1234", NUMBER);
	run_each(h, "number-key-1234");
	assert_counted(h, size_class(store_item_bytes(h->store, 15, 0, 64)),
		       size_class(store_item_bytes(h->store, 15, 0, 14)));
	store_reset_classes(h->store);
	for (unsigned class = 1; class <= store_class_count(); ++class) {
		struct store_class_status status = class_status(h, class);

		assert_int_equal(status.get_hits + status.set_count + status.delete_hits + status.incr_hits +
					 status.decr_hits + status.cas_hits + status.cas_badval + status.touch_hits,
				 0);
	}
}

static void gets_from_flash_are_counted_in_the_class_that_it_would_have(void **state)
{
	struct harness *h = *state;
	uint64_t hits;

	harness_open(h);
	hits = ctr_sum(CTR_get_hits);
	assert_int_equal(
		run_full(h, .op = STORE_SET, .key = "key", .value = bytes_of, .length = 1000, .flags = 7).result,
		STORE_STORED);
	move(h, "key");
	for (unsigned n = 0; n < 5; n++)
		assert_true(get(h, "key").from_flash);
	assert_int_equal(class_status(h, size_class(store_item_bytes(h->store, 3, 7, 1000))).get_hits, 5);
	assert_int_equal(ctr_sum(CTR_get_hits) - hits, 5);
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_int_equal(class_status(h, size_class(store_item_bytes(h->store, 3, 7, 1000))).delete_hits, 1);
}

/* ---- eviction, expiry, refusal --------------------------------------------------------------- */

static void evictions_are_counted_in_their_class(void **state)
{
	struct harness *h = *state;
	struct store_class_status sum;
	uint64_t evictions = ctr_sum(CTR_evictions), active = ctr_sum(CTR_evicted_active);
	char key[24];

	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(1);
	harness_open(h);
	for (unsigned n = 0; n < 4000; n++) {
		snprintf(key, sizeof(key), "key:%u", n);
		assert_int_equal(set_sized(h, key, 512, n % 2 ? 1000 : 0).result, STORE_STORED);
		if (n % 100 == 0)
			seconds_pass(h, 1);
	}
	sum = sums(h);
	assert_true(sum.evicted > 1000);
	assert_int_equal(sum.evicted, ctr_sum(CTR_evictions) - evictions);
	assert_int_equal(sum.evicted, class_status(h, size_class(512)).evicted);
	assert_int_equal(sum.evicted_unfetched, sum.evicted);
	assert_int_equal(sum.evicted_active, ctr_sum(CTR_evicted_active) - active);
	assert_in_range(sum.evicted_nonzero, sum.evicted / 4, sum.evicted / 4 * 3);
	assert_int_equal(sum.direct_reclaims, sum.evicted);
	assert_in_range(class_status(h, size_class(512)).evicted_time, 1, 60);
	store_reset_classes(h->store);
	sum = sums(h);
	assert_int_equal(sum.evicted, 0);
	assert_int_equal(sum.items, store_dram_items(h->store));
	assert_int_equal(class_status(h, size_class(512)).evicted_time, 0);
}

static void what_is_refused_is_counted(void **state)
{
	struct harness *h = *state;
	char key[24];
	unsigned n = 0;

	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(1);
	h->config.evict = false;
	harness_open(h);
	do
		snprintf(key, sizeof(key), "key:%u", n++);
	while (set_sized(h, key, 1000, 0).result == STORE_STORED);
	assert_int_equal(class_status(h, size_class(1000)).out_of_memory, 1);
	assert_int_equal(sums(h).out_of_memory, 1);
	assert_int_equal(sums(h).evicted, 0);
}

static void the_crawler_counts_and_knows_who_waits_longest(void **state)
{
	struct harness *h = *state;
	struct store_class_status status;
	unsigned class = size_class(300);

	h->config.flash_path = NULL;
	harness_open(h);
	set_sized(h, "expires", 300, 10);
	set_sized(h, "a", 300, 0);
	seconds_pass(h, 5);
	set_sized(h, "b", 300, 0);
	assert_int_equal(class_status(h, class).age_seconds, 0);
	seconds_pass(h, 60);
	store_clean_step(h->store);
	status = class_status(h, class);
	assert_int_equal(status.crawler_checked, 3);
	assert_int_equal(status.crawler_reclaimed, 1);
	assert_int_equal(status.expired_unfetched, 1);
	assert_int_equal(status.age_seconds, 65);
	assert_int_equal(sums(h).crawler_checked, 3);
	get(h, "a");
	seconds_pass(h, 60);
	store_clean_step(h->store); /* a new pass; the last one's figure still counts */
	seconds_pass(h, 60);
	store_clean_step(h->store);
	assert_int_equal(class_status(h, class).age_seconds, 180);
	run(h, STORE_DELETE, "a");
	run(h, STORE_DELETE, "b");
	assert_int_equal(class_status(h, class).age_seconds, 0);
}

/* In the first pass there is none before it whose figure could count. */
static void who_waits_longest_is_known_while_a_pass_goes_on(void **state)
{
	struct harness *h = *state;
	unsigned class = size_class(300);
	uint32_t now;

	harness_open(h);
	set_sized(h, "a", 300, 0);
	seconds_pass(h, 1000);
	now = store_now_seconds(h->store, clk_now_us(&h->clk));
	assert_int_equal(class_status(h, class).age_seconds, 0);
	classes_met(h->store->classes, class, now - 100);
	assert_int_equal(class_status(h, class).age_seconds, 100);
	classes_met(h->store->classes, class, now - 50);
	assert_int_equal(class_status(h, class).age_seconds, 100);
	classes_new_pass(h->store->classes);
	assert_int_equal(class_status(h, class).age_seconds, 100);
	classes_met(h->store->classes, class, now - 70);
	assert_int_equal(class_status(h, class).age_seconds, 100);
	classes_met(h->store->classes, class, now - 200);
	assert_int_equal(class_status(h, class).age_seconds, 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_ascend_and_each_holds_what_is_above_the_last),
		cmocka_unit_test(classes_are_the_allocators),
		TEST(items_and_bytes_are_those_that_are_there),
		TEST(what_moves_to_flash_is_no_longer_there),
		TEST(a_worker_that_ends_leaves_its_counts),
		TEST(commands_are_counted_in_the_class_of_their_object),
		TEST(gets_from_flash_are_counted_in_the_class_that_it_would_have),
		TEST(evictions_are_counted_in_their_class),
		TEST(what_is_refused_is_counted),
		TEST(the_crawler_counts_and_knows_who_waits_longest),
		TEST(who_waits_longest_is_known_while_a_pass_goes_on),
	};

	return cmocka_run_group_tests_name("store: classes", tests, NULL, NULL);
}
