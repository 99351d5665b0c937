/* SPDX-License-Identifier: BSD-3-Clause */
/* What may change while the store runs: what a new value does to what the old one has left behind. */
#include <pthread.h>

#include "harness.h"

#define CHANGES 2000

static void tune(struct harness *h, uint64_t limit, enum clf_admission admission)
{
	store_set_tuning(h->store, &(struct store_tuning){ .hot_fraction = 0.5,
							   .flash_write_limit = limit,
							   .read_timeout_ms = 1000,
							   .admission = admission });
}

static void a_limit_counts_from_when_it_is_set(void **state)
{
	struct harness *h = *state;

	for (int i = 0; i < 20; i++)
		assert_true(write_one(h)); /* without a limit: nothing is to be paid for later */
	store_clean_step(h->store);
	tune(h, h->store->segment_bytes, CLF_ADMIT_ALL);
	seconds_pass(h, 2);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->write_tokens > 0);
}

static void a_lower_limit_cuts_what_was_saved_up(void **state)
{
	struct harness *h = *state;

	tune(h, MIB(100), CLF_ADMIT_ALL);
	seconds_pass(h, 100);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->write_tokens > (int64_t)MIB(500));
	tune(h, KIB(1), CLF_ADMIT_ALL);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->write_tokens <= (int64_t)h->store->segment_bytes);
}

/* What the budget had asked for must not outlive the limit. */
static void without_a_limit_the_threshold_is_back_at_nothing(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	tune(h, KIB(1), CLF_ADMIT_SVM);
	for (int i = 0; i < 300; i++) {
		h->store->cleaner->held_up = true;
		seconds_pass(h, 1);
		store_tick(h->store);
	}
	store_get_status(h->store, &status);
	assert_true(status.classifier.threshold > 0);
	assert_int_equal(status.write_limit, KIB(1));
	tune(h, 0, CLF_ADMIT_SVM);
	seconds_pass(h, 1);
	store_tick(h->store);
	store_get_status(h->store, &status);
	assert_true(status.classifier.threshold == 0);
	assert_int_equal(status.write_limit, 0);
}

static void another_rule_judges_what_comes(void **state)
{
	struct harness *h = *state;
	uint64_t version = clf_version(h->store->classifier);

	tune(h, 0, CLF_ADMIT_READ_ONCE);
	assert_true(clf_version(h->store->classifier) > version);
	set(h, "never read", "x");
	assert_int_equal(candidate_total(h->store), 0);
	tune(h, 0, CLF_ADMIT_ALL);
	set(h, "not read either", "x");
	assert_true(candidate_total(h->store) > 0);
}

static void a_new_share_moves_the_hot_threshold(void **state)
{
	struct harness *h = *state;
	uint64_t before = store_hot_threshold(h->store);

	tune(h, 0, CLF_ADMIT_ALL); /* 0.7 -> 0.5 */
	assert_true(store_hot_threshold(h->store) < before);
}

static void *change(void *context)
{
	struct harness *h = context;

	for (unsigned i = 0; i < CHANGES; i++)
		tune(h, i % 3 ? MIB(1) << i % 7 : 0, (enum clf_admission)(i % (CLF_ADMIT_ALL + 1)));
	return NULL;
}

/* For TSan: values change beside commands and the cleaner's steps. */
static void values_change_beside_everything(void **state)
{
	struct harness *h = *state;
	pthread_t changer;
	char key[24], value[500] = "";

	assert_int_equal(pthread_create(&changer, NULL, change, h), 0);
	for (unsigned n = 0; n < 4 * CHANGES; n++) {
		snprintf(key, sizeof(key), "key:%u", n % 500);
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = key, .value = value, .length = sizeof(value)).result,
			STORE_STORED);
		(void)get(h, key);
		store_clean_step(h->store);
		if (n % 100 == 0)
			seconds_pass(h, 1);
	}
	assert_int_equal(pthread_join(changer, NULL), 0);
}

static int open_store(void **state)
{
	int result = setup(state);

	if (result == 0)
		harness_open(*state);
	return result;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_store, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_limit_counts_from_when_it_is_set),
		TEST(a_lower_limit_cuts_what_was_saved_up),
		TEST(without_a_limit_the_threshold_is_back_at_nothing),
		TEST(another_rule_judges_what_comes),
		TEST(a_new_share_moves_the_hot_threshold),
		TEST(values_change_beside_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
