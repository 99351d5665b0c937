/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From events to a model in use, on a scripted clock: when a model comes, what it then admits,
 * when it is given up, and the thread beside busy workers.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/metrics/counters.h"
#include "base/rng.h"
#include "classifier/classifier.h"

#define WINDOW_MS 10000ull
#define HORIZON_MS 20000ull

static struct clk test_clock;
static struct clf *clf;

static void open_clf(enum clf_label_mode mode, uint64_t horizon_ms)
{
	clk_scripted_init(&test_clock, 5000000);
	struct clf_config config = {
		.clock = &test_clock,
		.seed = 5,
		.label_mode = mode,
		.threshold = 1,
		.training_window_ms = WINDOW_MS,
		.horizon_ms = horizon_ms,
		.memory_bytes = 1 << 20,
	};
	assert_int_equal(clf_create(&clf, &config), FS_OK);
}

static int close_clf(void **state)
{
	(void)state;
	clf_destroy(clf);
	clf = NULL;
	return 0;
}

static uint64_t now_ms(void)
{
	return clk_now_ms(&test_clock);
}

static void pass(uint64_t ms)
{
	clk_scripted_advance(&test_clock, ms * 1000);
}

static struct clf_status status(void)
{
	struct clf_status out;

	clf_get_status(clf, &out);
	return out;
}

/* An object that was read twice, gap_ms apart. */
static struct clf_features read_twice(uint64_t gap_ms)
{
	struct clf_features features;

	clf_features_written(&features, now_ms() - 2 * gap_ms);
	clf_features_read(&features, now_ms() - gap_ms);
	clf_features_read(&features, now_ms());
	return features;
}

static void read_keys(uint64_t first, unsigned count, uint64_t gap_ms)
{
	for (uint64_t key = first; key < first + count; key++) {
		struct clf_features features = read_twice(gap_ms + key % 50);
		clf_note_read(clf, key, &features, 100, 0, now_ms());
	}
}

static void flash_hits(uint64_t first, unsigned count)
{
	for (uint64_t key = first; key < first + count; key++)
		clf_note_read(clf, key, NULL, 0, 0, now_ms());
}

static float score_with_gap(uint64_t gap_ms)
{
	struct clf_features features = read_twice(gap_ms);

	return clf_score(clf, 0, 999999, &features, 100, 0);
}

/* 300 keys with short gaps that are read again, 300 with long ones that are not. */
static void learnable(uint64_t first)
{
	read_keys(first, 300, 100);
	read_keys(first + 300, 300, 4000);
	pass(1000);
	flash_hits(first, 300);
}

/* ---- no model -------------------------------------------------------------------------------- */

static void nothing_seen_nothing_trained(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	pass(10 * (WINDOW_MS + HORIZON_MS));
	assert_false(clf_train_now(clf));
	assert_false(status().model_in_use);
	assert_string_equal(status().reason, "0 labelled samples, 100 are needed");
}

/* Positives are known long before; taking them alone would teach that everything is flashy. */
static void a_horizon_longer_than_the_run_gives_no_model(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, 1000 * WINDOW_MS);
	for (unsigned i = 0; i < 50; i++) {
		learnable(i * 1000);
		pass(WINDOW_MS);
		assert_false(clf_train_now(clf));
	}
	assert_false(status().model_in_use);
	assert_true(status().samples_waiting > 0);
	assert_true(score_with_gap(4000) > 0); /* the rule is in place */
}

static void one_class_leaves_the_rule(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	read_keys(0, 600, 100);
	pass(WINDOW_MS + HORIZON_MS);
	assert_false(clf_train_now(clf));
	assert_non_null(strstr(status().reason, "10 of each are needed"));
	assert_true(score_with_gap(100) > 0);
}

static void simple_rules_train_nothing(void **state)
{
	(void)state;
	clk_scripted_init(&test_clock, 5000000);
	struct clf_config config = {
		.clock = &test_clock,
		.admission = CLF_ADMIT_READ_ONCE,
		.threshold = 1,
		.training_window_ms = WINDOW_MS,
		.horizon_ms = HORIZON_MS,
		.memory_bytes = 1 << 20,
	};
	assert_int_equal(clf_create(&clf, &config), FS_OK);
	learnable(0);
	pass(WINDOW_MS + HORIZON_MS);
	assert_false(clf_train_if_due(clf));
	assert_int_equal(status().tracked_keys, 0);
}

/* ---- a model --------------------------------------------------------------------------------- */

static void the_first_model_comes_after_window_and_horizon(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	uint64_t version = clf_version(clf);

	learnable(0);
	pass(WINDOW_MS + HORIZON_MS - 1000 - 1);
	assert_false(clf_train_if_due(clf));
	pass(1);
	assert_true(clf_train_if_due(clf));
	assert_true(clf_version(clf) > version);

	struct clf_status now = status();
	assert_true(now.model_in_use);
	assert_true(now.precision > 0.95 && now.recall > 0.95);
	assert_true(now.positive_share > 0.45 && now.positive_share < 0.55);
	assert_true(now.admitted_share > 0.4 && now.admitted_share < 0.6);
	assert_true(now.read_once_share == 1);
	assert_non_null(strstr(now.reason, "in use"));
	assert_true(score_with_gap(100) > 0);
	assert_true(score_with_gap(4000) < 0);
	assert_false(clf_train_if_due(clf)); /* nothing due */
	assert_false(clf_train_now(clf)); /* nothing new */
	pass(1234);
	assert_int_equal(status().model_age_ms, 1234);
}

/* What the model thinks of an object stays; how much it must be worth rises with what is written. */
static void the_write_budget_asks_more_of_the_model(void **state)
{
	(void)state;
	float before;

	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	learnable(0);
	pass(WINDOW_MS + HORIZON_MS);
	assert_true(clf_train_now(clf));
	before = score_with_gap(100);
	assert_true(before > 0);
	for (unsigned i = 0; i < 600 && status().threshold <= before; i++) {
		pass(1000);
		clf_budget(clf, 4000, 1000);
	}
	assert_true(status().threshold > before);
	assert_float_equal(score_with_gap(100), before - status().threshold, 0.001);
	clf_budget(clf, 0, 0);
	assert_float_equal(score_with_gap(100), before, 0.001);
}

static void unread_without_history_never_qualifies(void **state)
{
	(void)state;
	struct clf_features features;

	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	learnable(0);
	pass(WINDOW_MS + HORIZON_MS);
	assert_true(clf_train_now(clf));
	clf_features_written(&features, now_ms());
	assert_true(clf_score(clf, 0, 999999, &features, 100, 0) == -1);
}

static void a_key_that_comes_back_is_a_sample_at_its_write(void **state)
{
	(void)state;
	struct clf_features features;

	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	clf_features_written(&features, now_ms());
	clf_note_written(clf, 1, &features, 100, 0, now_ms());
	assert_int_equal(status().tracked_keys, 0);
	clf_note_evicted(clf, 1, now_ms());
	clf_note_missed(clf, 1, now_ms());
	clf_features_written(&features, now_ms());
	clf_note_written(clf, 1, &features, 100, 0, now_ms());
	assert_int_equal(status().tracked_keys, 1);
	assert_int_equal(features.history_short, 1);
	assert_int_equal(features.history_long, 1);
}

static void in_mode_paper_it_is_not(void **state)
{
	(void)state;
	struct clf_features features;

	open_clf(CLF_LABEL_PAPER, HORIZON_MS);
	clf_features_written(&features, now_ms());
	clf_note_evicted(clf, 1, now_ms());
	clf_note_written(clf, 1, &features, 100, 0, now_ms());
	assert_int_equal(status().tracked_keys, 0);
	assert_int_equal(features.history_long, 0);
	assert_true(clf_score(clf, 0, 1, &features, 100, 0) < 0);
}

static void paper_counts_after_its_window(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_PAPER, HORIZON_MS);
	learnable(0); /* the hits fall into the window: no label comes of them */
	pass(WINDOW_MS);
	flash_hits(300, 300);
	pass(HORIZON_MS);
	assert_true(clf_train_if_due(clf));
	assert_true(score_with_gap(100) < 0);
	assert_true(score_with_gap(4000) > 0);
}

/* The world turns round: what was flashy is not any more. The model follows. */
static void training_rolls_on(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, WINDOW_MS);
	learnable(0);
	pass(2 * WINDOW_MS);
	assert_true(clf_train_if_due(clf));
	assert_true(score_with_gap(4000) < 0);
	for (uint64_t i = 1; i < 12; i++) {
		read_keys(i * 1000, 300, 100);
		read_keys(i * 1000 + 300, 300, 4000);
		pass(1000);
		flash_hits(i * 1000 + 300, 300);
		pass(WINDOW_MS - 1000);
		clf_train_if_due(clf);
	}
	assert_true(status().model_in_use);
	assert_true(score_with_gap(100) < 0);
	assert_true(score_with_gap(4000) > 0);
}

/* Hardly anything can be learnt any more, and the former model is wrong: it goes, whether a new one
   is good enough to follow it or the rule does. */
static void a_wrong_model_does_not_stay(void **state)
{
	(void)state;
	struct rng rng;

	open_clf(CLF_LABEL_FULL, WINDOW_MS);
	learnable(0);
	pass(2 * WINDOW_MS);
	assert_true(clf_train_if_due(clf));
	rng_init(&rng, 9);
	for (uint64_t i = 1; i < 16; i++) {
		read_keys(i * 1000, 20, 100);
		read_keys(i * 1000 + 300, 600, 4000);
		pass(1000);
		for (unsigned key = 0; key < 600; key++)
			if (rng_below(&rng, 100) < 97)
				flash_hits(i * 1000 + 300 + key, 1);
		pass(WINDOW_MS - 1000);
		clf_train_if_due(clf);
	}
	assert_true(score_with_gap(4000) > 0);
}

static void unknown_residence_trains_after_two_windows(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, 0);
	learnable(0);
	pass(2 * WINDOW_MS - 1001);
	assert_false(clf_train_if_due(clf));
	pass(1);
	assert_true(clf_train_if_due(clf));
}

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic bool workers_stop;
static _Atomic uint64_t workers_scored;

static void *work(void *argument)
{
	struct rng rng;

	rng_init(&rng, (uint64_t)(uintptr_t)argument);
	while (!atomic_load(&workers_stop)) {
		uint64_t key = rng_below(&rng, 3000);
		bool hot = key % 2;
		struct clf_features features = read_twice(hot ? 100 + key % 50 : 4000);
		if (hot || rng_below(&rng, 20) == 0)
			clf_note_read(clf, key, &features, 100, 0, now_ms());
		if (rng_below(&rng, 10) == 0)
			clf_note_evicted(clf, key, now_ms());
		if (rng_below(&rng, 1000) == 0) {
			clf_note_deleted(clf, key, now_ms());
			clf_note_missed(clf, key, now_ms());
			clf_note_written(clf, key, &features, 100, 0, now_ms());
		}
		clf_score(clf, clf_app(clf, "a:b", 3), key, &features, 100, 0);
		if (rng_below(&rng, 100) == 0)
			clf_budget(clf, (double)rng_below(&rng, 200), 100);
		atomic_fetch_add(&workers_scored, 1);
	}
	return NULL;
}

static void workers_go_on_while_the_thread_trains(void **state)
{
	(void)state;
	pthread_t thread[3];

	open_clf(CLF_LABEL_FULL, WINDOW_MS);
	uint64_t before = ctr_sum(CTR_trainings);
	assert_int_equal(clf_start(clf), FS_OK);
	atomic_store(&workers_stop, false);
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, (void *)(i + 1)), 0);
	/* Time moves with the work that is done, until three models were trained. */
	for (uint64_t seen = 0; ctr_sum(CTR_trainings) < before + 3;) {
		struct clf_status now = status();
		assert_true(now.tracked_keys <= 3000);
		if (atomic_load(&workers_scored) > seen + 200) {
			seen = atomic_load(&workers_scored);
			pass(WINDOW_MS / 50);
		}
		sched_yield();
	}
	atomic_store(&workers_stop, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	clf_stop(clf);
	clf_stop(clf); /* once more does no harm */
	assert_int_equal(clf_start(clf), FS_OK);
}

/* Each instance has its own model, although a thread keeps one copy only. */
static void instances_dont_mix_their_models(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	learnable(0);
	pass(WINDOW_MS + HORIZON_MS);
	assert_true(clf_train_now(clf));
	struct clf *trained = clf;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	for (unsigned i = 0; i < 3; i++) {
		struct clf_features features = read_twice(4000);
		assert_true(clf_score(trained, 0, 1, &features, 100, 0) < 0);
		assert_true(clf_score(clf, 0, 1, &features, 100, 0) > 0);
	}
	clf_destroy(trained);
}

#define TEST(test) cmocka_unit_test_teardown(test, close_clf)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_seen_nothing_trained),
		TEST(a_horizon_longer_than_the_run_gives_no_model),
		TEST(one_class_leaves_the_rule),
		TEST(simple_rules_train_nothing),
		TEST(the_first_model_comes_after_window_and_horizon),
		TEST(the_write_budget_asks_more_of_the_model),
		TEST(unread_without_history_never_qualifies),
		TEST(a_key_that_comes_back_is_a_sample_at_its_write),
		TEST(in_mode_paper_it_is_not),
		TEST(paper_counts_after_its_window),
		TEST(training_rolls_on),
		TEST(a_wrong_model_does_not_stay),

		TEST(unknown_residence_trains_after_two_windows),
		TEST(workers_go_on_while_the_thread_trains),
		TEST(instances_dont_mix_their_models),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
