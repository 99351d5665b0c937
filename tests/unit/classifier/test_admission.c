/* SPDX-License-Identifier: BSD-3-Clause */
/* Scores under the rules that ask at reads, without a model too, and their write budget. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/rng.h"
#include "classifier/classifier.h"
#include "tests/unit/classifier/clf_test.h"

static struct clf_config config_of(enum clf_admission admission)
{
	clk_scripted_init(&test_clock, 1000000);
	return (struct clf_config){
		.clock = &test_clock,
		.seed = 5,
		.admission = admission,
		.label_mode = CLF_LABEL_PAPER, /* in which SVM asks at reads */
		.threshold = 1,
		.training_window_ms = 10000,
		.memory_bytes = 256 << 10,
		.counts_bytes = 4096, /* ageing many takes time */
		.app_delimiter = ':',
	};
}

static void open_clf(enum clf_admission admission)
{
	struct clf_config config = config_of(admission);

	assert_int_equal(clf_create(&clf, &config), FS_OK);
}

static float score_of(uint64_t hash, unsigned reads, uint64_t gap_ms)
{
	struct clf_features features;
	uint64_t now_ms = 0;

	clf_features_written(&features, now_ms);
	for (unsigned i = 0; i < reads; i++)
		clf_features_read(&features, now_ms += gap_ms);
	return clf_score(clf, hash, &features);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void before_the_first_model_unread_objects_dont_qualify(void **state)
{
	(void)state;
	struct clf_status status;

	open_clf(CLF_ADMIT_SVM);
	assert_true(score_of(1, 0, 0) < 0);
	assert_true(score_of(1, 1, 100) >= 1);
	assert_true(score_of(1, 5, 100) > score_of(1, 1, 100));
	clf_get_status(clf, &status);
	assert_false(status.model_in_use);
	assert_string_equal(status.reason, "no model yet: what was read in DRAM is admitted");
}

static void read_once_asks_for_no_past(void **state)
{
	(void)state;
	open_clf(CLF_ADMIT_READ_ONCE);
	clf_note_evicted(clf, 1, NULL, 1000);
	assert_true(score_of(1, 0, 0) < 0);
	assert_true(score_of(1, 1, 100) >= 0);
}

/* Does the object qualify that is written now, with so many reads? */
static bool takes(uint64_t hash, unsigned reads)
{
	struct clf_features features;

	clf_features_written(&features, 1000);
	clf_note_written(clf, hash, NULL, &features.past, 1000);
	for (unsigned i = 0; i < reads; i++)
		clf_features_read(&features, 1100);
	return clf_score(clf, hash, &features) >= 0;
}

static void second_hit_takes_keys_that_left_the_cache_before(void **state)
{
	(void)state;
	open_clf(CLF_ADMIT_SECOND_HIT);
	clf_note_missed(clf, 1, 1000);
	assert_false(takes(1, 0));
	assert_false(takes(1, 5)); /* read in DRAM, as often as may be */
	clf_note_evicted(clf, 1, NULL, 1000);
	assert_true(takes(1, 0));
	assert_true(takes(1, 5));
	assert_false(takes(2, 0));
	assert_false(takes(2, 1));
}

static void read_or_second_hit_takes_what_was_read_too(void **state)
{
	(void)state;
	open_clf(CLF_ADMIT_READ_OR_SECOND_HIT);
	assert_false(takes(1, 0));
	assert_true(takes(1, 1));
	clf_note_evicted(clf, 1, NULL, 1000);
	assert_true(takes(1, 0));
	assert_false(takes(2, 0));
}

/* What its write found, however the table has changed meanwhile. */
static void a_history_is_that_of_the_write(void **state)
{
	static const enum clf_admission rules[] = { CLF_ADMIT_SECOND_HIT, CLF_ADMIT_READ_OR_SECOND_HIT };
	struct clf_features features;

	for (unsigned rule = 0; rule < 2; rule++) {
		open_clf(rules[rule]);
		clf_features_written(&features, 0);
		clf_note_evicted(clf, 1, NULL, 1000);
		assert_true(clf_score(clf, 1, &features) < 0);
		features.past = 1;
		assert_true(clf_score(clf, 2, &features) >= 0);
		close_clf(state);
	}
}

static void a_delete_forgets_the_history(void **state)
{
	(void)state;
	struct clf_features features;

	open_clf(CLF_ADMIT_SECOND_HIT);
	clf_note_evicted(clf, 1, NULL, 1000);
	clf_features_written(&features, 1000);
	clf_note_deleted(clf, 1, &features, 1000);
	assert_false(takes(1, 0));
	clf_note_evicted(clf, 1, &features, 1000);
	clf_note_deleted(clf, 1, NULL, 1000);
	assert_false(takes(1, 0));
}

static void all_takes_all_and_so_does_freq_at_a_read(void **state)
{
	(void)state;
	static const enum clf_admission rules[] = { CLF_ADMIT_ALL, CLF_ADMIT_FREQ };

	for (unsigned rule = 0; rule < 2; rule++) {
		open_clf(rules[rule]);
		for (uint64_t i = 0; i < 100; i++)
			assert_true(score_of(mix64(i), 0, 0) >= 0);
		close_clf(state);
	}
}

/* ---- write budget ---------------------------------------------------------------------------- */

static void second(double written, double allowed)
{
	clk_scripted_advance(&test_clock, 1000000);
	clf_budget(clf, &(struct clf_written){ .seconds = 1, .flash_bytes = (uint64_t)written, .limit = allowed });
}

static double threshold_now(void)
{
	struct clf_status status;

	clf_get_status(clf, &status);
	return status.threshold;
}

static void no_limit_and_slack_leave_the_threshold_at_zero(void **state)
{
	(void)state;
	open_clf(CLF_ADMIT_READ_ONCE);
	uint64_t version = clf_version(clf);
	for (int i = 0; i < 100; i++)
		second(1e9, 0);
	for (int i = 0; i < 100; i++)
		second(10, 1000);
	for (int i = 0; i < 100; i++)
		second(0, 1000);
	assert_true(threshold_now() == 0);
	assert_true(clf_version(clf) == version);
	assert_true(score_of(1, 1, 100) >= 0);
}

/* What flash would take of a stream of objects, as a share, at the present threshold. */
static double admitted_share(void)
{
	unsigned admitted = 0;
	struct rng rng;

	rng_init(&rng, 11);
	for (unsigned i = 0; i < 500; i++) {
		unsigned reads = (unsigned)exp(4 * rng_real(&rng));
		admitted += score_of(rng_next(&rng), reads, 1 + rng_below(&rng, 100000)) >= 0;
	}
	return admitted / 500.0;
}

static void the_budget_is_met_and_left_again(void **state)
{
	(void)state;
	double sum = 0;

	open_clf(CLF_ADMIT_READ_ONCE);
	uint64_t version = clf_version(clf);
	for (int i = 0; i < 900; i++) {
		double share = admitted_share();
		second(share * 1000, 250);
		if (i >= 600)
			sum += share;
	}
	assert_true(fabs(sum / 300 - 0.25) < 0.03);
	assert_true(threshold_now() > 0);
	assert_true(clf_version(clf) > version);
	assert_true(score_of(1, 0, 0) < 0);
	/* The best are still taken. */
	assert_true(score_of(1, 1000, 100) >= 0);
	for (int i = 0; i < 600; i++)
		second(admitted_share() * 1000, 5000);
	assert_true(threshold_now() == 0);
	assert_true(admitted_share() == 1);
}

/* Segments are written whole: nothing for a while, then much at once. The mean is what counts. */
static void bursts_are_budgeted_by_their_mean(void **state)
{
	(void)state;
	double waiting = 0, written = 0;
	const double segment = 60000, allowed = 250; /* a segment in four minutes */

	open_clf(CLF_ADMIT_READ_ONCE);
	for (int i = 0; i < 12000; i++) {
		double burst = 0;
		waiting += admitted_share() * 1000;
		if (waiting >= segment) {
			waiting -= segment;
			burst = segment;
		}
		second(burst, allowed);
		if (i >= 6000)
			written += burst;
	}
	assert_true(fabs(written / 6000 - allowed) < 0.1 * allowed);
}

/* The store's own cap holds the rate at the limit; that more would be written shows in its holding up. */
static void a_segment_that_was_held_up_raises_the_threshold(void **state)
{
	(void)state;
	open_clf(CLF_ADMIT_ALL);
	for (int i = 0; i < 1000; i++) {
		clk_scripted_advance(&test_clock, 1000000);
		clf_budget(clf, &(struct clf_written){
					.seconds = 1, .flash_bytes = 990, .limit = 1000, .held_up = i >= 500 });
		assert_true(i >= 500 || threshold_now() == 0);
	}
	assert_true(threshold_now() > 0);
}

/* The ratio is for rules that ask at eviction. */
static void the_ratio_holds_nothing_back_here(void **state)
{
	(void)state;
	open_clf(CLF_ADMIT_ALL);
	for (int i = 0; i < 1000; i++) {
		clk_scripted_advance(&test_clock, 1000000);
		clf_budget(clf, &(struct clf_written){
					.seconds = 1, .app_bytes = 1000, .flash_bytes = 1000, .ratio = 0.01 });
	}
	assert_true(threshold_now() == 0);
}

static void the_limit_taken_away_frees_at_once(void **state)
{
	(void)state;
	open_clf(CLF_ADMIT_ALL);
	for (int i = 0; i < 1000; i++)
		second(1e6, 1e5);
	double high = threshold_now();
	assert_true(high > 1 && high <= 20);
	assert_true(score_of(1, 3, 100) < 0);
	second(1e6, 0);
	assert_true(threshold_now() == 0);
	assert_true(score_of(1, 3, 100) >= 0);
}

#define TEST(test) cmocka_unit_test_teardown(test, close_clf)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(before_the_first_model_unread_objects_dont_qualify),
		TEST(read_once_asks_for_no_past),
		TEST(second_hit_takes_keys_that_left_the_cache_before),
		TEST(read_or_second_hit_takes_what_was_read_too),
		TEST(a_history_is_that_of_the_write),
		TEST(a_delete_forgets_the_history),
		TEST(all_takes_all_and_so_does_freq_at_a_read),

		TEST(no_limit_and_slack_leave_the_threshold_at_zero),
		TEST(the_budget_is_met_and_left_again),
		TEST(bursts_are_budgeted_by_their_mean),
		TEST(a_segment_that_was_held_up_raises_the_threshold),
		TEST(the_ratio_holds_nothing_back_here),
		TEST(the_limit_taken_away_frees_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
