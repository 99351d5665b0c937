/* SPDX-License-Identifier: BSD-3-Clause */
/* The classifier as a whole: creation, which rule samples and which has a past, the horizon, version and status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "classifier/classifier_internal.h"
#include "tests/unit/classifier/clf_test.h"

#define WINDOW_MS 10000u

static struct clf_config config_of(enum clf_admission admission)
{
	clk_scripted_init(&test_clock, 1000000);
	return (struct clf_config){
		.clock = &test_clock,
		.seed = 5,
		.admission = admission,
		.threshold = 1,
		.training_window_ms = WINDOW_MS,
		.memory_bytes = 256 << 10,
		.app_delimiter = ':',
	};
}

static void open_clf(const struct clf_config *config)
{
	assert_int_equal(clf_create(&clf, config), FS_OK);
}

static void open_rule(enum clf_admission admission)
{
	const struct clf_config config = config_of(admission);

	open_clf(&config);
}

static struct clf_status status(void)
{
	struct clf_status out;

	clf_get_status(clf, &out);
	return out;
}

/* ---- creation -------------------------------------------------------------------------------- */

static void bad_configurations_are_refused(void **state)
{
	(void)state;
	struct clf_config config;

	config = config_of(CLF_ADMIT_SVM), config.clock = NULL;
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of(CLF_ADMIT_SVM), config.threshold = 0;
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of(CLF_ADMIT_SVM), config.training_window_ms = 0;
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of(CLF_ADMIT_SVM), config.memory_bytes = (64 << 10) - 1;
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of(CLF_ADMIT_SVM), config.horizon_ms = UINT64_MAX;
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of(CLF_ADMIT_SVM), config.training_window_ms = UINT64_MAX;
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of(CLF_ADMIT_SVM), config.label_mode = (enum clf_label_mode)(CLF_LABEL_PAPER + 1);
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of(CLF_ADMIT_SVM), config.counts_bytes = 63;
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of(CLF_ADMIT_SVM), config.size_exponent = -0.1;
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of(CLF_ADMIT_SVM), config.size_exponent = 2.1;
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	config = config_of((enum clf_admission)(CLF_ADMIT_LAST + 1));
	assert_int_equal(clf_create(&clf, &config), FS_EINVAL);
	assert_null(clf);
	clf_destroy(NULL);
}

static void the_least_memory_is_enough_and_kept(void **state)
{
	(void)state;
	struct clf_config config = config_of(CLF_ADMIT_SVM);

	config.memory_bytes = 64 << 10;
	assert_int_equal(clf_create(&clf, &config), FS_OK);
	/* beside the tables there is the handle with its stripes, a few kilobytes */
	assert_true(clf_memory_bytes(clf) <= config.memory_bytes + (16 << 10));
	assert_true(clf_memory_bytes(clf) >= config.memory_bytes * 9 / 10);
	close_clf(state);
}

static void the_counts_get_the_bytes_that_are_given(void **state)
{
	(void)state;
	struct clf_config config = config_of(CLF_ADMIT_SVM);
	size_t before;

	open_clf(&config);
	before = clf_memory_bytes(clf) - clf->counts.buckets * 64;
	close_clf(state);
	config.counts_bytes = 1 << 20;
	open_clf(&config);
	assert_int_equal(clf_memory_bytes(clf), before + (1 << 20));
}

static void a_new_classifier_has_nothing(void **state)
{
	(void)state;
	open_rule(CLF_ADMIT_SVM);
	struct clf_status now = status();

	assert_false(now.model_in_use);
	assert_string_equal(now.reason, "no model yet: freq admits");
	assert_int_equal(now.model_age_ms, 0);
	assert_int_equal(now.model_samples, 0);
	assert_int_equal(now.tracked_keys, 0);
	assert_true(now.threshold == (double)clf_threshold(clf) && now.bias == 0);
	for (unsigned f = 0; f < CLF_FEATURES; f++)
		assert_true(now.weight[f] == 0);
	assert_true(clf_untouched_bytes(clf) <= clf_memory_bytes(clf));
}

/* ---- events ---------------------------------------------------------------------------------- */

/* A key's object is offered to flash, which may make a sample of it. */
static void offer_key(uint64_t hash)
{
	struct clf_features features;

	clf_features_written(&features, now_ms());
	clf_features_read(&features, now_ms());
	clf_note_read(clf, hash, &features, now_ms());
	(void)!clf_offer(clf, &(struct clf_object){ .hash = hash, .features = &features, .record_bytes = 100 },
			 now_ms());
}

/* A write after that many evictions of an object that was read once. Returns the past that it finds. */
static double past_after(uint64_t hash, unsigned evictions)
{
	struct clf_features features;

	for (unsigned i = 0; i < evictions; i++) {
		clf_features_written(&features, now_ms());
		clf_features_read(&features, now_ms());
		clf_note_evicted(clf, hash, &features, now_ms());
	}
	clf_features_written(&features, now_ms());
	clf_note_written(clf, hash, NULL, &features.past, now_ms());
	return past_count(features.past);
}

static void rules_without_a_model_sample_nothing(void **state)
{
	(void)state;
	for (int rule = CLF_ADMIT_READ_ONCE; rule <= CLF_ADMIT_LAST; rule++) {
		open_rule((enum clf_admission)rule);
		past_after(1, 2);
		offer_key(1);
		clf_note_missed(clf, 1, now_ms());
		clf_note_deleted(clf, 1, NULL, now_ms());
		assert_int_equal(status().tracked_keys, 0);
		close_clf(state);
	}
	open_rule(CLF_ADMIT_SVM);
	offer_key(1);
	assert_int_equal(status().tracked_keys, 1);
	assert_int_equal(status().samples_waiting, 1);
}

/* In mode full only an offer starts a sample, in mode paper only a read in DRAM. */
static void other_events_start_no_sample(void **state)
{
	(void)state;
	struct clf_config paper = config_of(CLF_ADMIT_SVM);
	struct clf_features features;

	paper.label_mode = CLF_LABEL_PAPER;
	for (unsigned mode = 0; mode < 2; mode++) {
		const struct clf_config full = config_of(CLF_ADMIT_SVM);

		open_clf(mode ? &paper : &full);
		past_after(5, 1);
		clf_note_read_on_flash(clf, 1, now_ms());
		clf_note_missed(clf, 2, now_ms());
		clf_note_deleted(clf, 3, NULL, now_ms());
		clf_note_evicted(clf, 4, NULL, now_ms());
		clf_features_written(&features, now_ms());
		clf_features_read(&features, now_ms());
		clf_note_moved(clf, 6, &features, now_ms());
		assert_int_equal(status().tracked_keys, 0);
		clf_note_read(clf, 7, &features, now_ms());
		assert_int_equal(status().tracked_keys, mode);
		close_clf(state);
	}
}

static void rules_that_ask_for_no_past_have_none(void **state)
{
	(void)state;
	static const enum clf_admission without[] = { CLF_ADMIT_READ_ONCE, CLF_ADMIT_ALL };
	struct clf_config paper = config_of(CLF_ADMIT_SVM);

	for (unsigned i = 0; i < 2; i++) {
		open_rule(without[i]);
		assert_true(past_after(1, 3) == 0);
		close_clf(state);
	}
	paper.label_mode = CLF_LABEL_PAPER;
	open_clf(&paper);
	assert_true(past_after(1, 3) == 0);
}

/* The second-hit rules count stays; svm and freq count accesses, of which the table has the latest sum. */
static void rules_that_ask_for_it_are_told_the_past(void **state)
{
	(void)state;
	for (int rule = 0; rule < 2; rule++) {
		open_rule(rule ? CLF_ADMIT_SECOND_HIT : CLF_ADMIT_READ_OR_SECOND_HIT);
		assert_true(past_after(1, 0) == 0);
		assert_true(past_after(1, 2) == 2);
		assert_true(past_after(1, 2) == 4);
		assert_true(past_after(2, 1) == 1); /* of this key alone */
		close_clf(state);
	}
	for (int rule = 0; rule < 2; rule++) {
		if (rule)
			close_clf(state);
		open_rule(rule ? CLF_ADMIT_SVM : CLF_ADMIT_FREQ);
		assert_true(past_after(1, 0) == 0);
		assert_true(past_after(1, 3) == 1);
		assert_true(past_after(2, 1) == 1);
	}
}

/* The rule in force decides, not the one at the start: what was evicted under another rule is not known. */
static void the_rule_in_force_decides(void **state)
{
	(void)state;
	open_rule(CLF_ADMIT_ALL);
	assert_true(past_after(1, 5) == 0);
	clf_set_admission(clf, CLF_ADMIT_SECOND_HIT);
	assert_int_equal(clf_get_admission(clf), CLF_ADMIT_SECOND_HIT);
	assert_true(past_after(1, 1) == 1);
	offer_key(1);
	assert_int_equal(status().tracked_keys, 0);
	clf_set_admission(clf, CLF_ADMIT_SVM);
	offer_key(1);
	assert_int_equal(status().tracked_keys, 1);
}

/* ---- version and horizon --------------------------------------------------------------------- */

static void the_version_rises_with_another_rule_alone(void **state)
{
	(void)state;
	open_rule(CLF_ADMIT_SVM);
	uint64_t version = clf_version(clf);

	clf_set_admission(clf, CLF_ADMIT_SVM);
	offer_key(1);
	clf_set_residence(clf, 5);
	assert_true(clf_version(clf) == version);
	clf_set_admission(clf, CLF_ADMIT_ALL);
	assert_true(clf_version(clf) > version);
}

static void a_model_that_is_published_is_in_use(void **state)
{
	(void)state;
	const struct judgement judgement = { .model = { .precision = 0.75, .recall = 0.5, .share = 0.25 },
					     .second_hit = { .share = 1 } };
	struct clf_model model = { .weight = { [CLF_READS] = 2 }, .bias = -1, .samples = 300 };

	open_rule(CLF_ADMIT_SVM);
	uint64_t version = clf_version(clf);
	model.trained_ms = now_ms();
	clf_publish(clf, &model, CLF_ORIGIN_TRAINED, &judgement);
	clk_scripted_advance(&test_clock, 7000);
	assert_true(clf_version(clf) > version);
	assert_true(status().model_in_use);
	assert_int_equal(status().model_age_ms, 7);
	assert_int_equal(status().model_samples, 300);
	assert_true(status().weight[CLF_READS] == 2 && status().bias == -1);
	assert_true(status().precision == 0.75 && status().recall == 0.5 && status().admitted_share == 0.25);
	assert_true(status().second_hit_share == 1);
	/* Taken out of use, it leaves nothing but the judgement. */
	version = clf_version(clf);
	clf_publish(clf, NULL, CLF_ORIGIN_NONE, &judgement);
	assert_true(clf_version(clf) > version);
	assert_false(status().model_in_use);
	assert_int_equal(status().model_samples, 0);
	assert_true(status().weight[CLF_READS] == 0 && status().bias == 0);
	assert_true(status().precision == 0.75);
}

static void a_horizon_that_is_given_stays(void **state)
{
	(void)state;
	struct clf_config config = config_of(CLF_ADMIT_SVM);

	config.horizon_ms = 77;
	for (int mode = CLF_LABEL_FULL; mode <= CLF_LABEL_PAPER; mode++) {
		config.label_mode = (enum clf_label_mode)mode;
		open_clf(&config);
		clf_set_residence(clf, 1234);
		clk_scripted_advance(&test_clock, 100 * WINDOW_MS * 1000ull);
		assert_int_equal(status().horizon_ms, 77);
		close_clf(state);
	}
}

static void in_mode_paper_the_horizon_is_an_hour(void **state)
{
	(void)state;
	struct clf_config config = config_of(CLF_ADMIT_SVM);

	config.label_mode = CLF_LABEL_PAPER;
	open_clf(&config);
	clf_set_residence(clf, 1234);
	assert_int_equal(status().horizon_ms, 3600000);
}

static void the_horizon_follows_the_residence(void **state)
{
	(void)state;
	open_rule(CLF_ADMIT_SVM);
	assert_int_equal(status().horizon_ms, WINDOW_MS);
	clk_scripted_advance(&test_clock, 5 * WINDOW_MS * 1000ull);
	assert_int_equal(status().horizon_ms, 5 * WINDOW_MS);
	clf_set_residence(clf, 1234);
	assert_int_equal(status().horizon_ms, 1234 / 4 + 1); /* one as long as the residence would learn too late */
	clf_set_residence(clf, UINT64_MAX); /* sums of times must not overflow */
	assert_true(status().horizon_ms >= 1 << 30 && status().horizon_ms <= UINT64_C(1) << 40);
}

#define TEST(test) cmocka_unit_test_teardown(test, close_clf)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bad_configurations_are_refused),
		TEST(the_least_memory_is_enough_and_kept),
		TEST(the_counts_get_the_bytes_that_are_given),
		TEST(a_new_classifier_has_nothing),
		TEST(rules_without_a_model_sample_nothing),
		TEST(other_events_start_no_sample),
		TEST(rules_that_ask_for_no_past_have_none),
		TEST(rules_that_ask_for_it_are_told_the_past),
		TEST(the_rule_in_force_decides),
		TEST(the_version_rises_with_another_rule_alone),
		TEST(a_model_that_is_published_is_in_use),
		TEST(a_horizon_that_is_given_stays),
		TEST(in_mode_paper_the_horizon_is_an_hour),
		TEST(the_horizon_follows_the_residence),
	};

	return cmocka_run_group_tests_name("classifier", tests, NULL, NULL);
}
