/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks of candidates: each is counted once, in its size group, and nothing is left when it goes. */
#include "server/store/state/sizing.h"
#include "tests/unit/server/store/harness.h"

static char value[MIB(1)];

/* Opens a store that marks nothing by itself, with segments so large that each group has sizes of its own. */
static void open_large(struct harness *h)
{
	h->config.admission = CLF_ADMIT_SECOND_HIT;
	h->config.memory_bytes = MIB(16);
	h->config.segment_bytes = MIB(4);
	h->config.flash_bytes = MIB(12);
	harness_open(h);
}

/* A key of one byte in DRAM, whose record on flash would have so many bytes. */
static struct item *put(struct harness *h, const char *key, uint64_t record_bytes, struct stripe **stripe)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));

	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = value,
				  .length = (uint32_t)(record_bytes - seg_record_length((unsigned)strlen(key), 0)))
				 .result,
			 STORE_STORED);
	*stripe = store_stripe(h->store, hash);
	return stripe_find(*stripe, hash, key, strlen(key));
}

static void mark(struct harness *h, struct stripe *stripe, struct item *item)
{
	lock_acquire(&stripe->lock);
	candidate_set(h->store, stripe, item);
	lock_release(&stripe->lock);
}

static void unmark(struct harness *h, struct stripe *stripe, struct item *item)
{
	lock_acquire(&stripe->lock);
	candidate_clear(h->store, stripe, item);
	lock_release(&stripe->lock);
}

static void put_marked(struct harness *h, const char *key, uint64_t record_bytes, struct stripe **stripe)
{
	struct item *item = put(h, key, record_bytes, stripe);

	mark(h, *stripe, item);
	assert_int_equal((*stripe)->candidates, 1);
}

static void assert_no_candidates(struct harness *h)
{
	assert_int_equal(candidate_total(h->store), 0);
	assert_int_equal(h->store->candidate_count, 0);
	for (int g = 0; g < GROUPS; g++)
		assert_int_equal(h->store->candidate_bytes[g], 0);
}

static void clearing_what_is_not_marked_changes_nothing(void **state)
{
	struct harness *h = *state;
	struct stripe *stripe;

	open_large(h);
	struct item *item = put(h, "k", 100, &stripe);
	assert_no_candidates(h);
	unmark(h, stripe, item);
	assert_no_candidates(h);
	assert_int_equal(stripe->candidates, 0);
}

static void settling_nothing_changes_nothing(void **state)
{
	struct harness *h = *state;
	struct candidate_sums sums = { 0 };
	struct stripe *stripe;

	open_large(h);
	put_marked(h, "k", 100, &stripe);
	candidate_settle(h->store, &sums);
	assert_int_equal(candidate_total(h->store), 100);
	assert_int_equal(h->store->candidate_count, 1);
}

static void a_second_mark_is_not_counted(void **state)
{
	struct harness *h = *state;
	struct stripe *stripe;

	open_large(h);
	struct item *item = put(h, "k", 100, &stripe);
	for (int i = 0; i < 2; i++) {
		mark(h, stripe, item);
		assert_true(item->state & ITEM_CANDIDATE);
		assert_int_equal(stripe->candidates, 1);
		assert_int_equal(h->store->candidate_count, 1);
		assert_int_equal(candidate_total(h->store), 100);
	}
	unmark(h, stripe, item);
	assert_false(item->state & ITEM_CANDIDATE);
	assert_int_equal(stripe->candidates, 0);
	assert_no_candidates(h);
}

static void a_group_ends_at_its_last_byte(void **state)
{
	static const struct {
		uint64_t bytes;
		unsigned group;
	} rows[] = {
		{ 33, GROUP_SMALL },     { GROUP_SMALL_MAX, GROUP_SMALL },    { GROUP_SMALL_MAX + 1, GROUP_MEDIUM },
		{ 12288, GROUP_MEDIUM }, { GROUP_MEDIUM_MAX + 1, GROUP_BIG }, { 65536, GROUP_BIG },
		{ 65537, GROUP_LARGE },  { KIB(900), GROUP_LARGE },
	};
	struct harness *h = *state;
	struct stripe *stripe;

	open_large(h);
	assert_int_equal(slot_record_max(h->store->segment_bytes), 65536);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct item *item = put(h, "k", rows[i].bytes, &stripe);

		assert_int_equal(item_group(h->store, item), rows[i].group);
		mark(h, stripe, item);
		for (unsigned g = 0; g < GROUPS; g++)
			assert_int_equal(h->store->candidate_bytes[g], g == rows[i].group ? rows[i].bytes : 0);
		unmark(h, stripe, item);
		assert_no_candidates(h);
	}
}

/* In segments of 64 KiB a record above 1 KiB is a large object already. */
static void in_small_segments_large_objects_begin_below_the_other_groups(void **state)
{
	struct harness *h = *state;
	struct stripe *stripe;

	h->config.admission = CLF_ADMIT_SECOND_HIT;
	harness_open(h);
	assert_int_equal(slot_record_max(h->store->segment_bytes), 1024);
	assert_int_equal(item_group(h->store, put(h, "k", 1024, &stripe)), GROUP_SMALL);
	assert_int_equal(item_group(h->store, put(h, "k", 1025, &stripe)), GROUP_LARGE);
}

static void a_given_bound_makes_smaller_objects_large_ones(void **state)
{
	struct harness *h = *state;
	struct stripe *stripe;

	h->config.slot_record_bytes = 4096;
	open_large(h);
	assert_int_equal(item_group(h->store, put(h, "k", 4096, &stripe)), GROUP_MEDIUM);
	assert_int_equal(item_group(h->store, put(h, "k", 4097, &stripe)), GROUP_LARGE);
}

static void many_marks_go_at_once_when_they_are_settled(void **state)
{
	static const uint64_t bytes[] = { 100, 5000, 20000, 100000 };
	struct harness *h = *state;
	struct candidate_sums sums = { 0 };
	uint64_t all = 0;

	open_large(h);
	for (unsigned i = 0; i < 4; i++) {
		const char key[] = { (char)('a' + i), '\0' };
		struct stripe *stripe;
		struct item *item = put(h, key, bytes[i], &stripe);

		mark(h, stripe, item);
		all += bytes[i];
		lock_acquire(&stripe->lock);
		candidate_unmark(h->store, stripe, item, &sums);
		lock_release(&stripe->lock);
		assert_false(item->state & ITEM_CANDIDATE);
		assert_int_equal(stripe->candidates, 0);
		assert_int_equal(candidate_total(h->store), all); /* the store's sums stay until then */
	}
	assert_int_equal(sums.count, 4);
	candidate_settle(h->store, &sums);
	assert_no_candidates(h);
	assert_int_equal(sums.count, 0);
	assert_int_equal(sums.bytes[GROUP_SMALL], 0);
	candidate_settle(h->store, &sums); /* they are subtracted once */
	assert_no_candidates(h);
}

static void what_leaves_the_table_is_no_candidate(void **state)
{
	struct harness *h = *state;
	struct stripe *stripe;

	open_large(h);
	put_marked(h, "k", 100, &stripe);
	assert_int_equal(run(h, STORE_DELETE, "k").result, STORE_DELETED);
	assert_no_candidates(h);
	put_marked(h, "k", 100, &stripe);
	set(h, "k", "new"); /* another item takes its place */
	assert_no_candidates(h);
	assert_int_equal(stripe->candidates, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(clearing_what_is_not_marked_changes_nothing),
		TEST(settling_nothing_changes_nothing),
		TEST(a_second_mark_is_not_counted),
		TEST(a_group_ends_at_its_last_byte),
		TEST(in_small_segments_large_objects_begin_below_the_other_groups),
		TEST(a_given_bound_makes_smaller_objects_large_ones),
		TEST(many_marks_go_at_once_when_they_are_settled),
		TEST(what_leaves_the_table_is_no_candidate),
	};

	return cmocka_run_group_tests_name("store: candidates", tests, NULL, NULL);
}
