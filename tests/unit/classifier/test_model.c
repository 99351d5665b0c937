/* SPDX-License-Identifier: BSD-3-Clause */
/* Training on made-up samples: what can be learnt, and when there is too little to learn from. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "classifier/classifier_internal.h"

#define SAMPLES 2000

static struct clf_sample samples[SAMPLES];
static char reason[CLF_REASON_BYTES];

/* Read `reads` times with a gap of gap_ms each; `after` reads follow within the horizon. */
static struct clf_sample sample_of(uint64_t key, unsigned reads, uint64_t gap_ms, uint32_t after)
{
	struct clf_sample sample = { .key = mix64(key), .reads = after };
	uint64_t now_ms = 1000;

	clf_features_written(&sample.state.features, now_ms);
	for (unsigned i = 0; i < reads; i++)
		clf_features_read(&sample.state.features, now_ms += gap_ms);
	sample.state.record_bytes = 300;
	sample.state.count = (float)reads;
	return sample;
}

/* Short gaps are flashy, long ones not, with `noise` permille of wrong labels. */
static void make_separable(unsigned noise_permille)
{
	struct rng rng;

	rng_init(&rng, 3);
	for (unsigned i = 0; i < SAMPLES; i++) {
		bool flashy = rng_below(&rng, 10) < 3;
		uint64_t gap_ms = flashy ? 50 + rng_below(&rng, 1000) : 5000 + rng_below(&rng, 90000);
		if (rng_below(&rng, 1000) < noise_permille)
			flashy = !flashy;
		samples[i] = sample_of(i, 1 + (unsigned)rng_below(&rng, 5), gap_ms, flashy ? 3 : 0);
	}
}

static int train_with(size_t count, struct clf_model *model)
{
	memset(reason, 0, sizeof(reason));
	return model_train(model, samples, count, 1, CLF_LABEL_FULL, reason);
}

static void judge(const struct clf_model *model, struct judgement *out)
{
	assert_int_equal(guard_judge(model, samples, SAMPLES, 1, 1, 0.3, out), FS_OK);
}

/* ---- what can't be trained ------------------------------------------------------------------- */

static void no_samples_no_model(void **state)
{
	(void)state;
	struct clf_model model;

	assert_int_equal(train_with(0, &model), FS_EFULL);
	assert_string_equal(reason, "0 labelled samples, 100 are needed");
}

static void too_few_samples_no_model(void **state)
{
	(void)state;
	struct clf_model model;

	make_separable(0);
	assert_int_equal(train_with(99, &model), FS_EFULL);
	assert_int_equal(train_with(200, &model), FS_OK);
}

static void one_class_no_model(void **state)
{
	(void)state;
	struct clf_model model;

	for (unsigned after = 0; after < 2; after++) {
		for (unsigned i = 0; i < SAMPLES; i++)
			samples[i] = sample_of(i, 1, 100 + i, after);
		assert_int_equal(train_with(SAMPLES, &model), FS_EFULL);
		assert_non_null(strstr(reason, "10 of each are needed"));
	}
}

/* ---- what can -------------------------------------------------------------------------------- */

static void separable_data_is_learnt(void **state)
{
	(void)state;
	struct clf_model model;
	struct judgement judgement;

	make_separable(0);
	assert_int_equal(train_with(SAMPLES, &model), FS_OK);
	judge(&model, &judgement);
	assert_true(judgement.samples > SAMPLES / 8 && judgement.samples < SAMPLES / 3);
	assert_true(judgement.model.precision > 0.99);
	assert_true(judgement.model.recall > 0.99);
	assert_true(judgement.read_once.share == 1 && judgement.read_once.recall == 1);
	assert_true(guard_accepts(&judgement, reason));
	assert_int_equal(model.samples + judgement.samples, SAMPLES);
	/* features that never vary say nothing */
	assert_true(model.weight[CLF_SIZE] == 0 && model.weight[CLF_TTL] == 0);
	/* all have 300 bytes, and the mean is one of logarithms */
	assert_true(model.mean[CLF_SIZE] > 8 && model.mean[CLF_SIZE] < 9);
}

static void wrong_labels_are_borne(void **state)
{
	(void)state;
	struct clf_model model;
	struct judgement judgement;

	make_separable(50);
	assert_int_equal(train_with(SAMPLES, &model), FS_OK);
	judge(&model, &judgement);
	assert_true(judgement.model.precision > 0.85 && judgement.model.recall > 0.85);
}

static void the_label_follows_the_threshold(void **state)
{
	(void)state;
	struct clf_model model;

	make_separable(0); /* flashy ones have 3 reads */
	assert_int_equal(model_train(&model, samples, SAMPLES, 3, CLF_LABEL_FULL, reason), FS_OK);
	assert_int_equal(model_train(&model, samples, SAMPLES, 4, CLF_LABEL_FULL, reason), FS_EFULL);
}

/* One flashy object in fifty, and labels that depend on little. */
static void make_rare(void)
{
	struct rng rng;

	rng_init(&rng, 4);
	for (unsigned i = 0; i < SAMPLES; i++) {
		bool flashy = i % 50 == 0;
		uint64_t gap_ms = (flashy ? 500 : 1500) + rng_below(&rng, 2000);
		samples[i] = sample_of(i, 1, gap_ms, flashy);
	}
}

static void class_weights_keep_rare_positives(void **state)
{
	(void)state;
	struct clf_model model;
	struct judgement judgement;

	make_rare();
	assert_int_equal(model_train(&model, samples, SAMPLES, 1, CLF_LABEL_FULL, reason), FS_OK);
	judge(&model, &judgement);
	assert_true(judgement.model.recall > 0.5);
}

/* Without weights a model finds it cheapest to admit nothing; its bias is moved no further than it has to be. */
static void in_mode_paper_four_of_five_flashy_samples_pass(void **state)
{
	(void)state;
	struct clf_model model;
	unsigned flashy = 0, passed = 0;

	make_rare();
	assert_int_equal(model_train(&model, samples, SAMPLES, 1, CLF_LABEL_PAPER, reason), FS_OK);
	for (unsigned i = 0; i < SAMPLES; i++) {
		if (sample_held_out(&samples[i]) || samples[i].reads == 0)
			continue;
		flashy++;
		passed += model_decide(&model, &samples[i].state) >= 0;
	}
	assert_true(passed >= 0.8 * flashy && passed <= 0.8 * flashy + 2);
}

/* A model that lets more pass by itself keeps its bias. */
static void in_mode_paper_a_good_recall_stays(void **state)
{
	(void)state;
	struct clf_model model;
	struct judgement judgement;

	make_separable(0);
	assert_int_equal(model_train(&model, samples, SAMPLES, 1, CLF_LABEL_PAPER, reason), FS_OK);
	judge(&model, &judgement);
	assert_true(judgement.model.recall > 0.95);
	assert_true(judgement.model.precision > 0.95);
}

static void the_count_speaks_for_unread_objects(void **state)
{
	(void)state;
	struct clf_model model;
	struct judgement judgement;

	for (unsigned i = 0; i < SAMPLES; i++) {
		unsigned accesses = 1 + i % 8;
		samples[i] = sample_of(i, 0, 0, accesses > 4);
		samples[i].state.count = (float)accesses;
		samples[i].state.features.past = past_code(accesses);
	}
	assert_int_equal(train_with(SAMPLES, &model), FS_OK);
	judge(&model, &judgement);
	assert_true(judgement.model.precision > 0.9 && judgement.model.recall > 0.9);
	assert_true(judgement.read_once.share == 0 && fabs(judgement.second_hit.share - 7 / 8.0) < 0.05);
}

/* ---- what a decision value means --------------------------------------------------------------- */

/* Objects with a count of 1, 2, 4 ... 128; each is asked for as often again, times a half. */
static void make_proportional(void)
{
	struct rng rng;

	rng_init(&rng, 8);
	for (unsigned i = 0; i < SAMPLES; i++) {
		unsigned count = 1u << i % 8;

		samples[i] = sample_of(i, 0, 0, (uint32_t)(rng_real(&rng) * count + 0.5)); /* half, in the mean */
		samples[i].state.count = (float)count;
	}
}

static double expect_of_count(const struct clf_model *model, double count)
{
	struct clf_sample sample = sample_of(1, 0, 0, 0);

	sample.state.count = (float)count;
	return model_expect(model, &sample.state);
}

static void worth_by_the_model_is_in_units_of_counts(void **state)
{
	(void)state;
	struct clf_model model;

	make_proportional();
	assert_int_equal(train_with(SAMPLES, &model), FS_OK);
	assert_int_equal(model.steps, CLF_STEPS);
	/* Later accesses are half of the count, but worth is what freq would say. */
	for (unsigned count = 2; count <= 64; count *= 2)
		assert_true(fabs(expect_of_count(&model, count) - log2(count)) < 0.6);
}

static void a_higher_decision_never_means_less(void **state)
{
	(void)state;
	struct clf_model model;

	make_separable(200); /* with much noise neighbouring steps fall */
	assert_int_equal(train_with(SAMPLES, &model), FS_OK);
	for (unsigned s = 1; s < CLF_STEPS; s++) {
		assert_true(model.step_decision[s] >= model.step_decision[s - 1]);
		assert_true(model.step_worth[s] >= model.step_worth[s - 1]);
	}
	double before = -HUGE_VAL, before_decision = -HUGE_VAL;
	for (uint64_t gap_ms = 200000; gap_ms > 10; gap_ms -= gap_ms / 10 + 1) {
		struct clf_sample sample = sample_of(1, 2, gap_ms, 0);
		double decision = model_decide(&model, &sample.state), expect = model_expect(&model, &sample.state);

		assert_true(isfinite(expect));
		assert_true(decision < before_decision || expect >= before);
		before = expect, before_decision = decision;
	}
}

static void between_the_steps_worth_is_interpolated(void **state)
{
	(void)state;
	const struct clf_model model = {
		.weight = { [CLF_COUNT] = 1 },
		.scale = { [CLF_COUNT] = 1 },
		.steps = 4,
		.step_decision = { 0, 2, 2, 10 }, /* two are equal */
		.step_worth = { -1, 0, 3, 4 },
	};

	assert_true(fabs(expect_of_count(&model, 0) + 1) < 1e-9);
	assert_true(fabs(expect_of_count(&model, 0.25) + 0.5) < 1e-9); /* decision 1 */
	double at = expect_of_count(&model, 0.75); /* decision 2 */
	assert_true(at >= 0 && at <= 3);
	assert_true(fabs(expect_of_count(&model, 3.75) - 3.25) < 1e-9); /* decision 4 */
}

static void between_steps_that_are_equal_is_the_middle(void **state)
{
	(void)state;
	const struct clf_model model = {
		.weight = { [CLF_COUNT] = 1 },
		.scale = { [CLF_COUNT] = 1 },
		.steps = 2,
		.step_decision = { 2, 2 },
		.step_worth = { 0, 3 },
	};

	assert_true(fabs(expect_of_count(&model, 0.25) - 1.5) < 1e-9); /* decision 1 */
	assert_true(fabs(expect_of_count(&model, 0.75) - 1.5) < 1e-9); /* decision 2 */
	assert_true(fabs(expect_of_count(&model, 3.75) - 1.5) < 1e-9); /* decision 4 */
}

/* With as many steps there is one of which each has none. */
static void steps_without_any_access_have_a_worth_too(void **state)
{
	(void)state;
	struct clf_model model;

	make_separable(0);
	for (unsigned i = 0; i < SAMPLES; i++)
		samples[i].state.count = 0; /* nor is there any count */
	assert_int_equal(train_with(SAMPLES, &model), FS_OK);
	for (unsigned s = 0; s < CLF_STEPS; s++)
		assert_true(isfinite(model.step_worth[s]));
	assert_true(model.step_worth[CLF_STEPS - 1] > model.step_worth[0] + 3);
}

/* One hot object among many: it doesn't decide alone what its step is worth. */
static void of_a_hot_objects_accesses_only_some_count(void **state)
{
	(void)state;
	struct clf_model one, other;

	make_separable(0);
	unsigned hot = 0;
	while (samples[hot].reads == 0 || sample_held_out(&samples[hot]))
		hot++;
	samples[hot].reads = 64;
	assert_int_equal(train_with(SAMPLES, &one), FS_OK);
	samples[hot].reads = 1000000000;
	assert_int_equal(train_with(SAMPLES, &other), FS_OK);
	assert_memory_equal(one.step_worth, other.step_worth, sizeof(one.step_worth));
}

static void training_repeats_exactly(void **state)
{
	(void)state;
	struct clf_model first, second;

	make_separable(50);
	assert_int_equal(train_with(SAMPLES, &first), FS_OK);
	assert_int_equal(train_with(SAMPLES, &second), FS_OK);
	assert_memory_equal(first.weight, second.weight, sizeof(first.weight));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_samples_no_model),
		cmocka_unit_test(too_few_samples_no_model),
		cmocka_unit_test(one_class_no_model),
		cmocka_unit_test(separable_data_is_learnt),
		cmocka_unit_test(wrong_labels_are_borne),
		cmocka_unit_test(the_label_follows_the_threshold),
		cmocka_unit_test(class_weights_keep_rare_positives),
		cmocka_unit_test(in_mode_paper_four_of_five_flashy_samples_pass),
		cmocka_unit_test(in_mode_paper_a_good_recall_stays),
		cmocka_unit_test(the_count_speaks_for_unread_objects),
		cmocka_unit_test(worth_by_the_model_is_in_units_of_counts),
		cmocka_unit_test(a_higher_decision_never_means_less),
		cmocka_unit_test(between_the_steps_worth_is_interpolated),
		cmocka_unit_test(between_steps_that_are_equal_is_the_middle),
		cmocka_unit_test(steps_without_any_access_have_a_worth_too),
		cmocka_unit_test(of_a_hot_objects_accesses_only_some_count),
		cmocka_unit_test(training_repeats_exactly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
