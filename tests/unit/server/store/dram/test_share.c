/* SPDX-License-Identifier: BSD-3-Clause */
/* The share of clean copies moves towards the side that gains more reads for each byte, and stays where it has no reason. */
#include "server/store/dram/share.h"
#include "tests/unit/server/store/harness.h"

#define VALUE_BYTES 400u
#define EVENTS 200u
#define LEFT 1000000u /* the first key of those that left */

static char value[VALUE_BYTES];

static void open_with_auto(struct harness *h, double miss_cost)
{
	h->config.promotion.rule = STORE_PROMOTE_LRU;
	h->config.promotion.share = 0;
	h->config.promotion.miss_cost = miss_cost;
	harness_open(h);
	assert_non_null(h->store->share);
}

static const char *name(unsigned n)
{
	static char key[16];

	snprintf(key, sizeof(key), "key%u", n);
	return key;
}

static void reset_counts(struct harness *h)
{
	atomic_store(&h->store->share->counts.dropped_reads, 0);
	atomic_store(&h->store->share->counts.left_reads, 0);
	atomic_store(&h->store->share->counts.left_misses, 0);
}

/* Copies fill the share, and nothing is counted. */
static void fill_share(struct harness *h)
{
	unsigned keys = (unsigned)(copies_share_bytes(h->store) / VALUE_BYTES);

	for (unsigned n = 0; n < keys; n++)
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = name(n), .value = value, .length = VALUE_BYTES).result,
			STORE_STORED);
	for (unsigned n = 0; n < keys; n++)
		move(h, name(n));
	for (unsigned n = 0; n < keys; n++)
		(void)get(h, name(n));
	assert_true(copies_bytes(h->store) > copies_share_bytes(h->store) * 3 / 4);
	reset_counts(h);
}

/* So many reads of keys whose copies were dropped just before. No key is in both shadows. */
static void reads_of_dropped(struct harness *h, unsigned count)
{
	for (uint64_t n = 0; n < count; n++) {
		share_note_dropped(h->store, n, VALUE_BYTES);
		share_note_read(h->store, n);
	}
}

static void reads_of_left(struct harness *h, unsigned count)
{
	for (uint64_t n = 0; n < count; n++) {
		share_note_left(h->store, LEFT + n, VALUE_BYTES);
		share_note_read(h->store, LEFT + n);
	}
}

static void misses_of_left(struct harness *h, unsigned count)
{
	for (uint64_t n = 0; n < count; n++) {
		share_note_left(h->store, LEFT + n, VALUE_BYTES);
		share_note_missed(h->store, LEFT + n);
	}
}

/* Brings about as many of each as the depths differ, so that neither side gains more. */
static void both_alike(struct harness *h)
{
	uint64_t left = atomic_load(&h->store->share->left_depth),
		 dropped = atomic_load(&h->store->share->dropped_depth);

	reads_of_dropped(h, (unsigned)(EVENTS * dropped / left));
	reads_of_left(h, EVENTS);
}

static void a_fixed_share_stays(void **state)
{
	struct harness *h = *state;

	h->config.promotion.rule = STORE_PROMOTE_LRU;
	h->config.promotion.share = 0.03;
	harness_open(h);
	assert_null(h->store->share);
	misses_of_left(h, EVENTS);
	share_tick(h->store);
	assert_true(fabs(copies_share(h->store) - 0.03) < 1e-9);
}

static void without_a_rule_or_under_m_there_is_no_share(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	assert_null(h->store->share);
	assert_true(copies_share(h->store) <= 0);
	harness_close(h);
	h->config.promotion.rule = STORE_PROMOTE_LRU;
	h->config.evict = false;
	harness_open(h);
	assert_null(h->store->share);
	assert_true(copies_share(h->store) <= 0);
}

static void with_few_events_it_stays(void **state)
{
	struct harness *h = *state;

	open_with_auto(h, 50);
	double share = copies_share(h->store);
	misses_of_left(h, 20);
	share_tick(h->store);
	assert_true(copies_share(h->store) == share);
	misses_of_left(h, EVENTS);
	share_tick(h->store);
	assert_true(copies_share(h->store) < share);
}

static void misses_take_from_it_and_so_do_reads(void **state)
{
	struct harness *h = *state;

	open_with_auto(h, 50);
	double share = copies_share(h->store);
	reads_of_left(h, EVENTS);
	share_tick(h->store);
	double after_reads = copies_share(h->store);
	assert_true(after_reads < share);
	misses_of_left(h, EVENTS);
	share_tick(h->store);
	assert_true(copies_share(h->store) < after_reads);
}

static void reads_of_dropped_copies_add_to_it(void **state)
{
	struct harness *h = *state;

	open_with_auto(h, 50);
	fill_share(h);
	double share = copies_share(h->store);
	reads_of_dropped(h, EVENTS);
	share_tick(h->store);
	assert_true(copies_share(h->store) > share);
}

static void a_share_that_is_not_used_does_not_grow(void **state)
{
	struct harness *h = *state;

	open_with_auto(h, 50);
	double share = copies_share(h->store);
	reads_of_dropped(h, EVENTS);
	share_tick(h->store);
	assert_true(copies_share(h->store) == share);
}

/* Such objects would never have a copy, and never ask for a larger share. */
static void copies_that_are_too_large_for_it_make_it_grow(void **state)
{
	struct harness *h = *state;

	open_with_auto(h, 50);
	uint64_t large = copies_share_bytes(h->store);
	double share = copies_share(h->store);
	for (uint64_t n = 0; n < EVENTS; n++) {
		assert_false(copies_make_room(&h->worker[0]->context, n, large));
		share_note_read(h->store, n);
	}
	share_tick(h->store);
	assert_true(copies_share(h->store) > share);
}

static void when_both_sides_gain_alike_it_stays(void **state)
{
	struct harness *h = *state;

	open_with_auto(h, 50);
	fill_share(h);
	double share = copies_share(h->store);
	both_alike(h);
	share_tick(h->store);
	assert_true(fabs(copies_share(h->store) / share - 1) < 0.05);
}

static void the_cost_of_a_miss_weighs(void **state)
{
	struct harness *h = *state;
	double moved[3];
	const double costs[3] = { 0, 4, 50 };

	for (unsigned n = 0; n < 3; n++) {
		open_with_auto(h, costs[n]);
		double share = copies_share(h->store);
		atomic_store(&h->store->share->refused, true); /* it may grow although nothing fills it */
		reads_of_dropped(h, 30);
		misses_of_left(h, 40);
		share_tick(h->store);
		moved[n] = copies_share(h->store) / share;
		harness_close(h);
	}
	assert_true(moved[0] > moved[1] && moved[1] > moved[2]);
	harness_open(h);
}

static void a_new_cost_counts_at_the_next_move(void **state)
{
	struct harness *h = *state;
	struct store_tuning tuning;

	open_with_auto(h, 50);
	store_get_tuning(h->store, &tuning);
	assert_true(fabs(tuning.promote_miss_cost - 50) < 1e-9);
	tuning.promote_miss_cost = 0;
	store_set_tuning(h->store, &tuning);
	fill_share(h);
	double share = copies_share(h->store);
	misses_of_left(h, 10 * EVENTS);
	reads_of_dropped(h, EVENTS);
	share_tick(h->store);
	assert_true(copies_share(h->store) > share);
}

static void it_keeps_within_bounds(void **state)
{
	struct harness *h = *state;

	open_with_auto(h, 50);
	for (unsigned n = 0; n < 100; n++) {
		misses_of_left(h, EVENTS);
		share_tick(h->store);
	}
	assert_true(copies_share(h->store) >= 0.001 && copies_share(h->store) < 0.0011);
	for (unsigned n = 0; n < 200; n++) {
		atomic_store(&h->store->share->refused, true);
		reads_of_dropped(h, EVENTS);
		share_tick(h->store);
	}
	assert_true(copies_share(h->store) <= 0.5 && copies_share(h->store) > 0.49);
}

/* What left long ago tells nothing about a little more room. */
static void beyond_the_depth_nothing_counts(void **state)
{
	struct harness *h = *state;

	open_with_auto(h, 50);
	double share = copies_share(h->store);
	for (uint64_t n = 0; n < EVENTS; n++)
		share_note_left(h->store, n, VALUE_BYTES);
	share_note_left(h->store, EVENTS, MIB(4));
	for (uint64_t n = 0; n < EVENTS; n++)
		share_note_missed(h->store, n);
	share_tick(h->store);
	assert_true(copies_share(h->store) == share);
}

/* Many small objects: the shadows take a sample, so that they still cover the depth. */
static void with_many_objects_a_sample_is_taken(void **state)
{
	struct harness *h = *state;

	open_with_auto(h, 50);
	for (unsigned n = 0; n < 20000; n++)
		assert_int_equal(run_full(h, .op = STORE_SET, .key = name(n), .value = value, .length = 1).result,
				 STORE_STORED);
	context_settle(&h->worker[0]->context);
	share_tick(h->store);
	unsigned shift = atomic_load(&h->store->share->shift);
	assert_true(shift >= 1);
	double keys = (double)atomic_load(&h->store->share->left_depth) / 110;
	assert_true(keys <= h->store->share->left.buckets * SHADOW_WAYS);
	double share = copies_share(h->store);
	misses_of_left(h, EVENTS << shift);
	share_tick(h->store);
	assert_true(copies_share(h->store) < share);
}

static uint64_t left_since(const struct harness *h, const char *key)
{
	return shadow_since(&h->store->share->left, shadow_key(store_hash(h->store, key, strlen(key))));
}

static uint64_t dropped_since(const struct harness *h, const char *key)
{
	return shadow_since(&h->store->share->dropped, shadow_key(store_hash(h->store, key, strlen(key))));
}

/* Who left for which reason is in the right shadow. */
static void moves_evictions_and_drops_are_noted(void **state)
{
	struct harness *h = *state;
	uint64_t visited;

	open_with_auto(h, 50);
	assert_int_equal(set(h, "moved", "value").result, STORE_STORED);
	assert_int_equal(set(h, "deleted", "value").result, STORE_STORED);
	assert_int_equal(run(h, STORE_DELETE, "deleted").result, STORE_DELETED);
	move(h, "moved");
	assert_true(left_since(h, "moved") != SHADOW_NEVER);
	assert_true(left_since(h, "deleted") == SHADOW_NEVER);
	assert_true(get(h, "moved").from_flash);
	assert_int_equal(where(h, "moved"), CLEAN_COPY);
	(void)evict_dram(&h->worker[0]->context, UINT64_MAX / 2, 1 << 20, EVICT_ALL, false, &visited);
	assert_int_equal(where(h, "moved"), FLASH);
	assert_true(dropped_since(h, "moved") != SHADOW_NEVER);
	assert_int_equal(set(h, "evicted", "value").result, STORE_STORED);
	(void)evict_dram(&h->worker[0]->context, UINT64_MAX / 2, 1 << 20, EVICT_ALL, false, &visited);
	assert_int_equal(where(h, "evicted"), NOWHERE);
	assert_true(dropped_since(h, "evicted") == SHADOW_NEVER);
	assert_true(left_since(h, "evicted") != SHADOW_NEVER);
	/* Gets of both are counted, each on its side. */
	reset_counts(h);
	assert_true(get(h, "moved").from_flash);
	assert_int_equal(atomic_load(&h->store->share->counts.dropped_reads), 1);
	assert_missing(h, "evicted");
	assert_int_equal(atomic_load(&h->store->share->counts.left_misses), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_fixed_share_stays),
		TEST(without_a_rule_or_under_m_there_is_no_share),
		TEST(with_few_events_it_stays),
		TEST(misses_take_from_it_and_so_do_reads),
		TEST(reads_of_dropped_copies_add_to_it),
		TEST(a_share_that_is_not_used_does_not_grow),
		TEST(copies_that_are_too_large_for_it_make_it_grow),
		TEST(when_both_sides_gain_alike_it_stays),
		TEST(the_cost_of_a_miss_weighs),
		TEST(a_new_cost_counts_at_the_next_move),
		TEST(it_keeps_within_bounds),
		TEST(beyond_the_depth_nothing_counts),
		TEST(with_many_objects_a_sample_is_taken),
		TEST(moves_evictions_and_drops_are_noted),
	};

	return cmocka_run_group_tests_name("store: the share of clean copies", tests, NULL, NULL);
}
