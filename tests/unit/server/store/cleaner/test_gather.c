/* SPDX-License-Identifier: BSD-3-Clause */
/* What the next segment is gathered from: which groups and objects, how many, in which order, and how they come back. */
#include "tests/unit/server/store/harness.h"

#define EVERY_GROUP ((1u << GROUPS) - 1)
#define SMALL (1u << GROUP_SMALL)
#define MEDIUM (1u << GROUP_MEDIUM)
#define BIG (1u << GROUP_BIG)
#define LARGE (1u << GROUP_LARGE)

static void store_small(struct harness *h, unsigned from, unsigned to)
{
	char key[24], value[100] = "";

	for (unsigned n = from; n < to; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = key, .value = value, .length = sizeof(value)).result,
			STORE_STORED);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		context_settle(&h->worker[i]->context);
}

static struct item *item_of(struct harness *h, const char *key)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));

	return stripe_find(store_stripe(h->store, hash), hash, key, strlen(key));
}

static void gather(struct harness *h, unsigned groups, uint64_t bytes, struct gathered *out)
{
	gather_candidates(h->store, groups, bytes, 0, out);
}

static void assert_no_plan(struct harness *h)
{
	assert_int_equal(h->store->plan_bytes, 0);
	assert_int_equal(h->store->planned_bytes, 0);
}

/* ---- which groups ---------------------------------------------------------------------------- */

static void groups_are_chosen_that_fill_a_segment_the_smallest_objects_first(void **state)
{
	static const struct {
		int64_t small, medium, big, large;
		unsigned groups;
	} rows[] = {
		{ 0, 0, 0, 0, 0 },
		{ 99, 0, 0, 0, 0 },
		{ 100, 0, 0, 0, SMALL | LARGE },
		{ 100, 100, 100, 100, SMALL | LARGE },
		{ 99, 100, 100, 100, MEDIUM | LARGE },
		{ 99, 99, 100, 0, BIG | LARGE },
		{ 99, 50, 49, 0, SMALL | MEDIUM | BIG | LARGE },
		{ 99, 50, 50, 0, MEDIUM | BIG | LARGE },
		{ 99, 0, 0, 100, MEDIUM | BIG | LARGE }, /* large ones fill it alone */
		{ 25, 25, 25, 25, EVERY_GROUP },
		{ 25, 25, 25, 24, 0 },
		{ -50, 50, 50, 0, MEDIUM | BIG | LARGE }, /* a sum may be below 0 for a moment */
		{ -50, 50, 49, 0, 0 },
	};
	struct harness *h = *state;

	harness_open(h);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t given[GROUPS];
		const int64_t of[GROUPS] = { rows[i].small, rows[i].medium, rows[i].big, rows[i].large };

		for (unsigned g = 0; g < GROUPS; g++)
			atomic_store(&h->store->candidate_bytes[g], of[g]);
		candidate_by_group(h->store, given);
		assert_int_equal(gather_choose_groups(h->store, given, 100), rows[i].groups);
	}
	for (unsigned g = 0; g < GROUPS; g++)
		atomic_store(&h->store->candidate_bytes[g], 0);
}

/* ---- which objects --------------------------------------------------------------------------- */

static void of_nothing_nothing_is_gathered(void **state)
{
	struct harness *h = *state;
	struct gathered out;

	harness_open(h);
	gather(h, EVERY_GROUP, MIB(1), &out);
	assert_int_equal(out.count, 0);
	assert_int_equal(out.bytes, 0);
	gathered_release(h->store, &out);
	assert_no_plan(h);
}

static void what_is_dead_is_not_gathered_and_is_no_candidate_any_more(void **state)
{
	struct harness *h = *state;
	struct gathered out;

	harness_open(h);
	set(h, "flushed", "value");
	store_flush_all(h->store, 0);
	run_full(h, .op = STORE_SET, .key = "expired", .value = "value", .length = 5, .exptime = 1);
	set(h, "alive", "value");
	assert_int_equal(h->store->candidate_count, 3);
	seconds_pass(h, 1);
	gather(h, EVERY_GROUP, MIB(1), &out);
	assert_int_equal(out.count, 1);
	assert_ptr_equal(out.candidates[0].item, item_of(h, "alive"));
	assert_int_equal(item_of(h, "flushed")->state & (ITEM_CANDIDATE | ITEM_PLANNED), 0);
	assert_int_equal(item_of(h, "expired")->state & (ITEM_CANDIDATE | ITEM_PLANNED), 0);
	gathered_release(h->store, &out);
	assert_int_equal(h->store->candidate_count, 1);
}

static void what_the_present_rule_refuses_is_not_gathered(void **state)
{
	struct harness *h = *state;
	struct gathered out;

	harness_open(h);
	set(h, "never read", "value");
	set(h, "read", "value");
	get(h, "read");
	clf_set_admission(h->store->classifier, CLF_ADMIT_READ_ONCE);
	gather(h, EVERY_GROUP, MIB(1), &out);
	assert_int_equal(out.count, 1);
	assert_ptr_equal(out.candidates[0].item, item_of(h, "read"));
	assert_int_equal(out.entries[0].fetched, 1);
	gathered_release(h->store, &out);
	assert_false(item_of(h, "never read")->state & ITEM_CANDIDATE);
	assert_int_equal(h->store->candidate_count, 1);
}

static void other_groups_wait(void **state)
{
	static char value[5000]; /* in segments of 64 KiB a large object */
	struct harness *h = *state;
	struct gathered out;

	harness_open(h);
	set(h, "small", "value");
	run_full(h, .op = STORE_SET, .key = "large", .value = value, .length = sizeof(value));
	gather(h, LARGE, MIB(1), &out);
	assert_int_equal(out.count, 1);
	assert_int_equal(out.extents, 1);
	assert_int_equal(out.candidates[0].extent, 1);
	assert_int_equal(out.slot_bytes, 0);
	assert_int_equal(out.bytes, seg_record_length(5, sizeof(value)));
	assert_true(item_of(h, "small")->state & ITEM_CANDIDATE);
	gathered_release(h->store, &out);
	gather(h, SMALL, MIB(1), &out);
	assert_int_equal(out.count, 1);
	assert_int_equal(out.extents, 0);
	assert_int_equal(out.slot_bytes, out.bytes);
	assert_true(item_of(h, "large")->state & ITEM_CANDIDATE);
	gathered_release(h->store, &out);
}

/* ---- how many -------------------------------------------------------------------------------- */

static void gathering_ends_with_the_stripe_that_has_enough_and_goes_on_behind_it(void **state)
{
	struct harness *h = *state;
	struct gathered out;
	uint64_t bytes = 0;
	uint32_t stripes;

	harness_open(h);
	store_small(h, 0, 4000);
	stripes = h->store->stripe_count;
	for (uint32_t turn = 0; turn < stripes; turn++) {
		uint32_t first = h->store->cleaner->gather_stripe;

		assert_int_equal(first, turn % stripes);
		assert_true(h->store->stripes[first].candidates > 0);
		gather(h, EVERY_GROUP, 1, &out);
		assert_int_equal(out.count, h->store->stripes[first].count);
		assert_int_equal(h->store->stripes[first].candidates, 0);
		bytes += out.bytes;
		gathered_release(h->store, &out);
	}
	assert_int_equal(bytes, candidate_total(h->store)); /* each had its turn */
}

static uint64_t candidates_gathered(struct harness *h)
{
	uint64_t before = candidate_total(h->store), gathered;
	struct gathered out;

	gather_candidates(h->store, EVERY_GROUP, 2 * h->store->segment_bytes, 0, &out);
	gathered = out.bytes;
	assert_int_equal(candidate_total(h->store), before - gathered);
	gathered_release(h->store, &out);
	assert_int_equal(candidate_total(h->store), before);
	return gathered;
}

static void what_is_gathered_is_counted_off_and_comes_back(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	store_small(h, 0, 3000);
	assert_true(candidates_gathered(h) >= 2 * h->store->segment_bytes);
	assert_int_equal(atomic_load(&h->store->plan_bytes), 0);
	assert_int_equal(atomic_load(&h->store->planned_bytes), 0);
}

static void a_gathered_item_is_planned_referenced_and_in_the_account(void **state)
{
	struct harness *h = *state;
	struct gathered out;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .flags = 7);
	struct item *item = item_of(h, "key");
	gather(h, EVERY_GROUP, MIB(1), &out);
	assert_int_equal(out.count, 1);
	assert_ptr_equal(out.candidates[0].item, item);
	assert_int_equal(out.candidates[0].length, seg_record_length(3, 5));
	assert_int_equal(item->state & (ITEM_PLANNED | ITEM_CANDIDATE | ITEM_LINKED), ITEM_PLANNED | ITEM_LINKED);
	assert_int_equal(item->refs, 2);
	assert_int_equal(out.item_bytes, item_cost(item));
	assert_int_equal(h->store->planned_bytes, item_cost(item));
	assert_true(h->store->plan_bytes > 0);
	assert_int_equal(out.table_id, fidx_table_id(h->store->index, 0));
	gathered_release(h->store, &out);
	assert_int_equal(item->state & (ITEM_PLANNED | ITEM_CANDIDATE | ITEM_LINKED), ITEM_CANDIDATE | ITEM_LINKED);
	assert_int_equal(item->refs, 1);
	assert_no_plan(h);
}

/* ---- in which order, and back ---------------------------------------------------------------- */

static void the_best_come_first(void **state)
{
	struct harness *h = *state;
	struct gathered out;
	char key[24];

	harness_open(h);
	store_small(h, 0, 500);
	for (unsigned n = 0; n < 500; n += 7)
		for (unsigned reads = 0; reads <= n / 100; reads++) {
			snprintf(key, sizeof(key), "object:%u", n);
			assert_int_equal(get(h, key).result, STORE_HIT);
		}
	gather_candidates(h->store, EVERY_GROUP, MIB(1), 0, &out);
	assert_int_equal(out.count, 500);
	for (uint32_t i = 1; i < out.count; i++) {
		const struct item *item = out.candidates[i].item;

		assert_true(out.entries[i].score <= out.entries[i - 1].score * 1.01f + 0.01f);
		assert_int_equal(out.candidates[i].length, seg_record_length(item->key_length, item->value_length));
		assert_true(item->state & ITEM_PLANNED);
	}
	assert_true(out.entries[0].score > out.entries[499].score);
	gathered_release(h->store, &out);
}

/* Which of a hundred objects that were read, and how many of the others, are in the plan. */
static void count_planned(struct harness *h, unsigned objects, unsigned *read, unsigned *others)
{
	char key[24];

	*read = *others = 0;
	for (unsigned n = 0; n < objects; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		if (item_of(h, key)->state & ITEM_PLANNED)
			++*(n % 20 == 0 ? read : others);
	}
}

static void under_a_rule_that_asks_at_eviction_the_best_are_taken_and_the_rest_wait(void **state)
{
	struct harness *h = *state;
	unsigned read, others;
	struct gathered out;
	char key[24];

	harness_open(h);
	store_small(h, 0, 1000);
	for (unsigned n = 0; n < 1000; n += 20) {
		snprintf(key, sizeof(key), "object:%u", n);
		for (unsigned reads = 0; reads < 3; reads++)
			get(h, key);
	}
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	set_threshold(h, 1000); /* they were admitted: what they must be worth now doesn't matter */
	gather(h, EVERY_GROUP, KIB(20), &out);
	assert_in_range(out.bytes, KIB(20), KIB(20) + 200); /* the last one is the one that fills it */
	count_planned(h, 1000, &read, &others);
	assert_int_equal(read, 50);
	assert_int_equal(others, out.count - 50);
	assert_int_equal(h->store->candidate_count, 1000 - out.count);
	for (uint32_t i = 0, length = 0; i < out.count; i++) {
		length += out.candidates[i].length;
		assert_true(out.entries[i].score < 0); /* which is no reason to leave it out */
		assert_true(i + 1 < out.count || length == out.bytes);
		assert_true(i == 0 || out.entries[i].score <= out.entries[i - 1].score + 0.1f);
	}
	uint64_t cost = 0;
	for (uint32_t i = 0; i < out.count; i++)
		cost += item_cost(out.candidates[i].item);
	assert_int_equal(h->store->planned_bytes, cost);
	assert_int_equal(out.item_bytes, cost);
	gathered_release(h->store, &out);
	assert_int_equal(h->store->candidate_count, 1000);
	assert_no_plan(h);
}

/* Whatever marks a former rule has left. */
static void no_more_are_ranked_than_eviction_spares(void **state)
{
	struct harness *h = *state;
	struct gathered out;

	harness_open(h);
	store_small(h, 0, 5000);
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	gather(h, EVERY_GROUP, KIB(20), &out);
	assert_in_range(out.bytes, KIB(20), KIB(20) + 200);
	assert_true(out.room < 5000);
	gathered_release(h->store, &out);
	assert_int_equal(h->store->candidate_count, 5000);
}

static void one_object_is_gathered_however_little_is_wanted(void **state)
{
	struct harness *h = *state;
	struct gathered out;

	harness_open(h);
	store_small(h, 0, 10);
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	gather(h, EVERY_GROUP, 1, &out);
	assert_int_equal(out.count, 1);
	gathered_release(h->store, &out);
	assert_int_equal(h->store->candidate_count, 10);
}

static void what_was_replaced_or_deleted_meanwhile_does_not_come_back(void **state)
{
	struct harness *h = *state;
	struct gathered out;

	harness_open(h);
	set(h, "replaced", "value");
	set(h, "deleted", "value");
	gather(h, EVERY_GROUP, MIB(1), &out);
	assert_int_equal(out.count, 2);
	set(h, "replaced", "another value");
	run(h, STORE_DELETE, "deleted");
	assert_int_equal(h->store->candidate_count, 1); /* the new one */
	gathered_release(h->store, &out);
	assert_int_equal(h->store->candidate_count, 1);
	assert_int_equal(candidate_total(h->store), seg_record_length(8, 13));
	assert_value(h, "replaced", "another value");
	assert_missing(h, "deleted");
	run(h, STORE_DELETE, "replaced");
	assert_nothing_left(h);
}

static void a_committed_item_is_left_out_of_the_release(void **state)
{
	struct harness *h = *state;
	struct gathered out;

	harness_open(h);
	set(h, "key", "value");
	gather(h, EVERY_GROUP, MIB(1), &out);
	struct item *item = out.candidates[0].item;
	out.candidates[0].item = NULL; /* as commit does */
	gathered_release(h->store, &out);
	assert_true(item->state & ITEM_PLANNED);
	assert_int_equal(item->refs, 2);
	planned_release(h->store, item);
	assert_int_equal(item->state & (ITEM_PLANNED | ITEM_CANDIDATE), ITEM_CANDIDATE);
	assert_int_equal(item->refs, 1);
	assert_no_plan(h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(groups_are_chosen_that_fill_a_segment_the_smallest_objects_first),
		TEST(of_nothing_nothing_is_gathered),
		TEST(what_is_dead_is_not_gathered_and_is_no_candidate_any_more),
		TEST(what_the_present_rule_refuses_is_not_gathered),
		TEST(other_groups_wait),
		TEST(gathering_ends_with_the_stripe_that_has_enough_and_goes_on_behind_it),
		TEST(what_is_gathered_is_counted_off_and_comes_back),
		TEST(a_gathered_item_is_planned_referenced_and_in_the_account),
		TEST(the_best_come_first),
		TEST(under_a_rule_that_asks_at_eviction_the_best_are_taken_and_the_rest_wait),
		TEST(no_more_are_ranked_than_eviction_spares),
		TEST(one_object_is_gathered_however_little_is_wanted),
		TEST(what_was_replaced_or_deleted_meanwhile_does_not_come_back),
		TEST(a_committed_item_is_left_out_of_the_release),
	};

	return cmocka_run_group_tests_name("store: gathering", tests, NULL, NULL);
}
