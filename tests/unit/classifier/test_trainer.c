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
#include "classifier/classifier_internal.h"
#include "tests/unit/classifier/clf_test.h"

#define WINDOW_MS 10000ull
#define HORIZON_MS 20000ull
#define RESIDENCE_MS 1000000ull

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
		.flash_bytes = 1 << 20,
		.size_exponent = 1,
	};
	assert_int_equal(clf_create(&clf, &config), FS_OK);
	if (horizon_ms)
		clf_set_residence(clf, RESIDENCE_MS); /* counts hardly age, and say the same of all gaps */
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

/* A key's object is read, and then would be evicted: either may make a sample, by the mode. */
static void subject(uint64_t key, const struct clf_features *features)
{
	clf_note_read(clf, key, features, now_ms());
	if (clf_asks_at_eviction(clf))
		(void)!clf_offer(clf, &(struct clf_object){ .hash = key, .features = features, .record_bytes = 100 },
				 now_ms());
}

static void read_keys(uint64_t first, unsigned count, uint64_t gap_ms)
{
	for (uint64_t key = first; key < first + count; key++) {
		struct clf_features features = read_twice(gap_ms + key % 50);
		subject(key, &features);
	}
}

/* Half of what was offered may be written, and is. */
static void budget_of_half(void)
{
	clf_budget(clf, &(struct clf_written){ .seconds = 1, .app_bytes = 60000, .flash_bytes = 30000, .ratio = 0.5 });
}

static void flash_hits(uint64_t first, unsigned count)
{
	for (uint64_t key = first; key < first + count; key++)
		clf_note_read_on_flash(clf, key, now_ms());
}

static float score_with_gap(uint64_t gap_ms)
{
	struct clf_features features = read_twice(gap_ms);

	return clf_score(clf, 999999, &features);
}

static float worth_with_gap(uint64_t gap_ms)
{
	struct clf_features features = read_twice(gap_ms);

	return clf_worth(clf, &(struct clf_object){ .hash = 999999, .features = &features, .record_bytes = 100 },
			 now_ms());
}

/* By their counts objects with such gaps are worth about the same. */
static bool model_prefers(uint64_t better_gap_ms, uint64_t gap_ms)
{
	return worth_with_gap(better_gap_ms) > worth_with_gap(gap_ms) + 1;
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
	assert_false(model_prefers(100, 4000)); /* the count decides */
}

static void one_class_leaves_the_rule(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	read_keys(0, 600, 100);
	pass(WINDOW_MS + HORIZON_MS);
	assert_false(clf_train_now(clf));
	assert_non_null(strstr(status().reason, "10 of each are needed"));
	assert_false(model_prefers(100, 4000));
}

static void simple_rules_train_nothing(void **state)
{
	(void)state;
	for (int rule = CLF_ADMIT_READ_ONCE; rule <= CLF_ADMIT_LAST; rule++) {
		open_clf(CLF_LABEL_FULL, HORIZON_MS);
		clf_set_admission(clf, (enum clf_admission)rule);
		learnable(0);
		pass(WINDOW_MS + HORIZON_MS);
		assert_false(clf_train_if_due(clf));
		assert_int_equal(status().tracked_keys, 0);
		close_clf(state);
	}
}

/* The paper samples reads; here an object is a sample as it would be evicted. */
static void reads_without_offers_train_nothing_in_mode_full(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	for (uint64_t key = 0; key < 600; key++) {
		struct clf_features features = read_twice(100);

		clf_note_read(clf, key, &features, now_ms());
	}
	pass(WINDOW_MS + HORIZON_MS);
	assert_false(clf_train_now(clf));
	assert_string_equal(status().reason, "0 labelled samples, 100 are needed");
}

/* ---- a model --------------------------------------------------------------------------------- */

static void the_first_model_comes_from_offers_after_window_and_horizon(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	uint64_t version = clf_version(clf);

	learnable(0);
	budget_of_half();
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
	assert_true(now.model_hits > 0.95 && now.freq_hits < now.model_hits);
	assert_non_null(strstr(now.reason, "in use"));
	assert_true(model_prefers(100, 4000));
	assert_false(clf_train_if_due(clf)); /* nothing due */
	assert_false(clf_train_now(clf)); /* nothing new */
	pass(1234);
	assert_int_equal(status().model_age_ms, 1234);
}

/* Another rule needs no model, and the model is there when svm is in force again. */
static void worth_is_the_models_while_svm_is_in_force(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	learnable(0);
	pass(WINDOW_MS + HORIZON_MS);
	float by_count = worth_with_gap(100);
	assert_true(clf_train_now(clf));
	float by_model = worth_with_gap(100);
	assert_true(by_model > by_count + 0.5f || by_model < by_count - 0.1f);
	clf_set_admission(clf, CLF_ADMIT_FREQ);
	assert_true(worth_with_gap(100) == by_count);
	clf_set_admission(clf, CLF_ADMIT_SVM);
	assert_true(worth_with_gap(100) == by_model);
}

/* A paper's model: short gaps are flashy. */
static void learn_in_mode_paper(void)
{
	open_clf(CLF_LABEL_PAPER, HORIZON_MS);
	learnable(0);
	pass(WINDOW_MS);
	flash_hits(0, 300);
	pass(HORIZON_MS);
	assert_true(clf_train_if_due(clf));
}

/* What the model thinks of an object stays; how much it must be worth rises with what is written. */
static void the_write_budget_asks_more_of_the_model(void **state)
{
	(void)state;
	float before;

	learn_in_mode_paper();
	before = score_with_gap(100);
	assert_true(before > 0);
	for (unsigned i = 0; i < 600 && status().threshold <= before; i++) {
		pass(1000);
		clf_budget(clf, &(struct clf_written){ .seconds = 1, .flash_bytes = 4000, .limit = 1000 });
	}
	assert_true(status().threshold > before);
	assert_float_equal(score_with_gap(100), before - status().threshold, 0.001);
	clf_budget(clf, &(struct clf_written){ .seconds = 1 });
	assert_float_equal(score_with_gap(100), before, 0.001);
}

static void in_mode_paper_an_unread_object_never_qualifies(void **state)
{
	(void)state;
	struct clf_features features;

	learn_in_mode_paper();
	clf_features_written(&features, now_ms());
	features.past = 200;
	assert_true(clf_score(clf, 999999, &features) == -1);
}

static void in_mode_paper_a_write_is_no_sample_and_has_no_past(void **state)
{
	(void)state;
	struct clf_features features;

	open_clf(CLF_LABEL_PAPER, HORIZON_MS);
	clf_features_written(&features, now_ms());
	clf_note_evicted(clf, 1, &features, now_ms());
	clf_note_missed(clf, 1, now_ms());
	clf_note_written(clf, 1, NULL, &features.past, now_ms());
	assert_int_equal(status().tracked_keys, 0);
	assert_int_equal(features.past, 0);
	assert_true(clf_score(clf, 1, &features) < 0);
}

static void in_mode_paper_hits_beyond_the_horizon_do_not_count(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_PAPER, HORIZON_MS);
	learnable(0);
	pass(HORIZON_MS);
	flash_hits(300, 300); /* of the objects with long gaps */
	pass(WINDOW_MS);
	assert_true(clf_train_if_due(clf));
	assert_true(score_with_gap(100) > 0);
	assert_true(score_with_gap(4000) < 0);
}

/* The world turns round: what was flashy is not any more. The model follows. */
static void training_rolls_on(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, WINDOW_MS);
	learnable(0);
	pass(2 * WINDOW_MS);
	assert_true(clf_train_if_due(clf));
	assert_true(model_prefers(100, 4000));
	for (uint64_t i = 1; i < 12; i++) {
		read_keys(i * 1000, 300, 100);
		read_keys(i * 1000 + 300, 300, 4000);
		pass(1000);
		flash_hits(i * 1000 + 300, 300);
		pass(WINDOW_MS - 1000);
		clf_train_if_due(clf);
	}
	assert_true(status().model_in_use);
	assert_true(model_prefers(4000, 100));
}

/*
 * Whether an object is read again shows in its gaps, and how often in its count: of 300 keys with short gaps each is
 * read once, of 300 with long gaps and a past every second one 50 times. A model of labels ranks these wrong.
 */
static void better_left_to_freq(uint64_t first)
{
	for (uint64_t key = first; key < first + 600; key++) {
		bool rare = key < first + 300;
		struct clf_features features = read_twice((rare ? 100 : 4000) + key % 50);

		features.past = rare ? 0 : past_code(64);
		subject(key, &features);
	}
	pass(1000);
	flash_hits(first, 300);
	for (uint64_t key = first + 300; key < first + 600; key += 2)
		for (unsigned i = 0; i < 50; i++)
			flash_hits(key, 1);
}

static void a_model_that_ranks_worse_than_freq_is_not_used(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	uint64_t rejected = ctr_sum(CTR_models_rejected);

	better_left_to_freq(0);
	budget_of_half();
	pass(WINDOW_MS + HORIZON_MS);
	assert_false(clf_train_now(clf));
	assert_int_equal(ctr_sum(CTR_models_rejected), rejected + 1);
	assert_false(status().model_in_use);
	assert_non_null(strstr(status().reason, "freq has"));
	assert_false(model_prefers(100, 4000));
}

static void a_model_in_use_is_given_up_when_it_loses(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	learnable(0);
	budget_of_half();
	pass(WINDOW_MS + HORIZON_MS);
	assert_true(clf_train_now(clf));
	pass(10 * (WINDOW_MS + HORIZON_MS)); /* its samples are forgotten */
	uint64_t version = clf_version(clf);

	better_left_to_freq(1000);
	budget_of_half();
	pass(WINDOW_MS + HORIZON_MS);
	assert_false(clf_train_now(clf));
	assert_false(status().model_in_use);
	assert_true(status().model_hits < status().freq_hits);
	assert_true(clf_version(clf) > version);
	assert_false(model_prefers(100, 4000));
}

/* Too few flashy samples to tell are no reason to give up what was good. */
static void a_model_in_use_stays_while_nothing_can_be_told(void **state)
{
	(void)state;
	open_clf(CLF_LABEL_FULL, HORIZON_MS);
	learnable(0);
	budget_of_half();
	pass(WINDOW_MS + HORIZON_MS);
	assert_true(clf_train_now(clf));
	pass(10 * (WINDOW_MS + HORIZON_MS));
	read_keys(1000, 600, 100);
	pass(WINDOW_MS + HORIZON_MS);
	assert_false(clf_train_now(clf));
	assert_true(status().model_in_use);
	assert_non_null(strstr(status().reason, "0 flashy"));
	assert_true(model_prefers(100, 4000));
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
		const struct clf_object object = { .hash = key, .features = &features, .record_bytes = 100 };
		if (hot || rng_below(&rng, 20) == 0)
			subject(key, &features);
		if (rng_below(&rng, 10) == 0)
			clf_note_evicted(clf, key, &features, now_ms());
		if (rng_below(&rng, 1000) == 0) {
			clf_note_deleted(clf, key, NULL, now_ms());
			clf_note_missed(clf, key, now_ms());
			clf_note_written(clf, key, NULL, &features.past, now_ms());
			clf_features_again(clf, key, false, now_ms(), &features);
		}
		(void)!clf_app(clf, "a:b", 3);
		assert_true(clf_worth(clf, &object, now_ms()) < 1000);
		if ((uintptr_t)argument == 1 && rng_below(&rng, 100) == 0) /* one thread at a time ages the counts */
			clf_budget(clf, &(struct clf_written){ .seconds = 0.1,
							       .app_bytes = 2000,
							       .flash_bytes = rng_below(&rng, 2000),
							       .ratio = 0.5 });
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
		struct clf *fresh = clf;

		clf = trained;
		assert_true(model_prefers(100, 4000));
		clf = fresh;
		assert_false(model_prefers(100, 4000));
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
		TEST(reads_without_offers_train_nothing_in_mode_full),
		TEST(the_first_model_comes_from_offers_after_window_and_horizon),
		TEST(worth_is_the_models_while_svm_is_in_force),
		TEST(the_write_budget_asks_more_of_the_model),
		TEST(in_mode_paper_an_unread_object_never_qualifies),
		TEST(in_mode_paper_a_write_is_no_sample_and_has_no_past),
		TEST(in_mode_paper_hits_beyond_the_horizon_do_not_count),
		TEST(training_rolls_on),
		TEST(a_model_that_ranks_worse_than_freq_is_not_used),
		TEST(a_model_in_use_is_given_up_when_it_loses),
		TEST(a_model_in_use_stays_while_nothing_can_be_told),
		TEST(unknown_residence_trains_after_two_windows),
		TEST(workers_go_on_while_the_thread_trains),
		TEST(instances_dont_mix_their_models),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
