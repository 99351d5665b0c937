/* SPDX-License-Identifier: BSD-3-Clause */
/* Which objects in DRAM become candidates for flash. */
#include "tests/unit/server/store/harness.h"

static struct item *item_of(struct harness *h, const char *key, struct stripe **stripe)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));

	*stripe = store_stripe(h->store, hash);
	return stripe_find(*stripe, hash, key, strlen(key));
}

/* Scores the key's object once more. Is it a candidate then? */
static bool score(struct harness *h, const char *key)
{
	struct stripe *stripe;
	struct item *item = item_of(h, key, &stripe);

	lock_acquire(&stripe->lock);
	candidate_score(h->store, stripe, store_hash(h->store, key, strlen(key)), item);
	bool is_candidate = item->state & ITEM_CANDIDATE;
	lock_release(&stripe->lock);
	return is_candidate;
}

static void a_record_of_a_quarter_of_a_segment_is_one_and_a_byte_more_is_not(void **state)
{
	static char value[KIB(16)];
	uint32_t most = (uint32_t)(KIB(16) - seg_record_length(3, 0));
	struct harness *h = *state;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "key", .value = value, .length = most + 1);
	assert_false(score(h, "key"));
	run_full(h, .op = STORE_SET, .key = "key", .value = value, .length = most);
	assert_true(score(h, "key"));
}

static void what_a_record_can_t_hold_is_no_candidate(void **state)
{
	struct harness *h = *state;
	struct stripe *stripe;
	struct flight f;

	harness_open(h);
	flight_prepare(h, 0, &f, STORE_GET, "key");
	f.request.has_options = f.request.options.vivify = true;
	assert_true(flight_execute(h, &f)); /* an object that a client has won */
	assert_true(item_marked(item_of(h, "key", &stripe)));
	assert_false(score(h, "key"));
	set(h, "key", "value");
	assert_true(score(h, "key"));
}

static void planned(struct harness *h)
{
	struct stripe *stripe;

	assert_int_equal(where(h, "key"), PLANNED);
	assert_false(score(h, "key"));
	assert_true(item_of(h, "key", &stripe)->state & ITEM_PLANNED);
}

static void what_is_planned_is_not_marked_a_second_time(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	while_planned(h, "key", PHASE_WRITTEN, planned);
}

static void a_score_below_zero_takes_the_mark_away_and_another_brings_it_back(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	assert_true(score(h, "key"));
	assert_int_equal(h->store->candidate_count, 1);
	clf_set_admission(h->store->classifier, CLF_ADMIT_READ_ONCE);
	assert_false(score(h, "key"));
	assert_int_equal(h->store->candidate_count, 0);
	get(h, "key"); /* scored at the first read, by itself */
	assert_int_equal(h->store->candidate_count, 1);
	assert_true(score(h, "key"));
	assert_int_equal(h->store->candidate_count, 1);
}

static void an_object_over_a_quarter_of_a_segment_stays_in_dram(void **state)
{
	struct harness *h = *state;
	static char value[KIB(17)];

	harness_open(h);
	memset(value, 'v', sizeof(value));
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "big", .value = value, .length = sizeof(value)).result,
			 STORE_STORED);
	for (int i = 0; i < 8; i++)
		assert_true(write_one(h));
	assert_int_equal(where(h, "big"), DRAM);
	assert_int_equal(get(h, "big").value_hash, hash64(value, sizeof(value), 0));
}

static void a_clean_copy_is_no_candidate_however_often_it_is_read(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "val");
	uint32_t segment = segment_of(h, "k");
	make_clean_copy(h, "k");
	for (int i = 0; i < 9; i++)
		assert_false(get(h, "k").from_flash);
	assert_true(write_one(h));
	assert_int_equal(where(h, "k"), CLEAN_COPY);
	assert_int_equal(segment_of(h, "k"), segment);
}

static void tune(struct harness *h, uint64_t limit, enum clf_admission admission)
{
	store_set_tuning(h->store, &(struct store_tuning){ .hot_fraction = 0.5,
							   .flash_write_limit = limit,
							   .read_timeout_ms = 1000,
							   .admission = admission });
}

/* ---- under a rule that asks at eviction ------------------------------------------------------- */

static bool offer(struct harness *h, const char *key)
{
	struct stripe *stripe;
	struct item *item = item_of(h, key, &stripe);

	lock_acquire(&stripe->lock);
	bool is_candidate =
		candidate_offer(h->store, stripe, store_hash(h->store, key, strlen(key)), item, clk_now_ms(&h->clk));
	assert_int_equal(is_candidate, (item->state & ITEM_CANDIDATE) != 0);
	lock_release(&stripe->lock);
	return is_candidate;
}

static void neither_a_set_nor_a_read_makes_a_candidate_there(void **state)
{
	static const enum clf_admission rules[] = { CLF_ADMIT_FREQ, CLF_ADMIT_SVM };
	struct harness *h = *state;

	for (unsigned rule = 0; rule < 2; rule++) {
		h->config.admission = rules[rule];
		harness_open(h);
		set(h, "key", "value");
		for (int i = 0; i < 9; i++)
			get(h, "key");
		assert_false(score(h, "key"));
		assert_int_equal(h->store->candidate_count, 0);
		harness_close(h);
	}
}

static void what_is_worth_the_threshold_is_a_candidate_once_it_is_offered(void **state)
{
	uint64_t scored = ctr_sum(CTR_objects_scored);
	struct harness *h = *state;

	h->config.admission = CLF_ADMIT_FREQ;
	harness_open(h);
	set(h, "key", "value");
	set_threshold(h, worth_of(h, "key") + 0.01);
	assert_false(offer(h, "key"));
	get(h, "key");
	assert_true(offer(h, "key"));
	assert_int_equal(h->store->candidate_count, 1);
	set_threshold(h, 1000);
	assert_true(offer(h, "key")); /* it is asked about once */
	assert_int_equal(ctr_sum(CTR_objects_scored), scored + 2);
	assert_int_equal(h->store->candidate_count, 1);
}

static void what_can_t_go_to_flash_is_not_offered(void **state)
{
	static char value[KIB(17)];
	struct harness *h = *state;
	uint64_t scored;

	h->config.admission = CLF_ADMIT_FREQ;
	harness_open(h);
	scored = ctr_sum(CTR_objects_scored);
	run_full(h, .op = STORE_SET, .key = "big", .value = value, .length = sizeof(value));
	assert_false(offer(h, "big"));
	assert_int_equal(ctr_sum(CTR_objects_scored), scored);
}

/* Whatever doesn't go to flash there has a set refused one day. */
static void under_m_every_object_that_is_offered_is_a_candidate(void **state)
{
	struct harness *h = *state;

	h->config.admission = CLF_ADMIT_FREQ;
	h->config.evict = false;
	harness_open(h);
	set(h, "key", "value");
	set_threshold(h, 1000);
	assert_true(offer(h, "key"));
}

static void another_rule_judges_what_comes(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint64_t version = clf_version(h->store->classifier);
	tune(h, 0, CLF_ADMIT_READ_ONCE);
	assert_true(clf_version(h->store->classifier) > version);
	set(h, "never read", "x");
	assert_int_equal(candidate_total(h->store), 0);
	tune(h, 0, CLF_ADMIT_ALL);
	set(h, "not read either", "x");
	assert_true(candidate_total(h->store) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_of_a_quarter_of_a_segment_is_one_and_a_byte_more_is_not),
		TEST(what_a_record_can_t_hold_is_no_candidate),
		TEST(what_is_planned_is_not_marked_a_second_time),
		TEST(a_score_below_zero_takes_the_mark_away_and_another_brings_it_back),
		TEST(an_object_over_a_quarter_of_a_segment_stays_in_dram),
		TEST(a_clean_copy_is_no_candidate_however_often_it_is_read),
		TEST(neither_a_set_nor_a_read_makes_a_candidate_there),
		TEST(what_is_worth_the_threshold_is_a_candidate_once_it_is_offered),
		TEST(what_can_t_go_to_flash_is_not_offered),
		TEST(under_m_every_object_that_is_offered_is_a_candidate),
		TEST(another_rule_judges_what_comes),
	};

	return cmocka_run_group_tests_name("store: scores", tests, NULL, NULL);
}
