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
	sample.state.size_bytes = 300;
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
	return model_train(model, samples, count, 1, true, reason);
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
	guard_judge(&model, samples, SAMPLES, 1, &judgement);
	assert_true(judgement.samples > SAMPLES / 8 && judgement.samples < SAMPLES / 3);
	assert_true(judgement.model.precision > 0.99);
	assert_true(judgement.model.recall > 0.99);
	assert_true(judgement.read_once.share == 1 && judgement.read_once.recall == 1);
	assert_true(guard_accepts(&judgement, reason));
	assert_int_equal(model.samples + judgement.samples, SAMPLES);
	/* features that never vary say nothing */
	assert_true(model.weight[CLF_SIZE] == 0 && model.weight[CLF_TTL] == 0);
}

static void wrong_labels_are_borne(void **state)
{
	(void)state;
	struct clf_model model;
	struct judgement judgement;

	make_separable(50);
	assert_int_equal(train_with(SAMPLES, &model), FS_OK);
	guard_judge(&model, samples, SAMPLES, 1, &judgement);
	assert_true(judgement.model.precision > 0.85 && judgement.model.recall > 0.85);
}

static void the_label_follows_the_threshold(void **state)
{
	(void)state;
	struct clf_model model;

	make_separable(0); /* flashy ones have 3 reads */
	assert_int_equal(model_train(&model, samples, SAMPLES, 3, true, reason), FS_OK);
	assert_int_equal(model_train(&model, samples, SAMPLES, 4, true, reason), FS_EFULL);
}

/* With one flashy object in fifty and labels that depend on little, an unweighted model finds it
   cheapest to admit nothing; a weighted one does not. */
static void class_weights_keep_rare_positives(void **state)
{
	(void)state;
	struct clf_model weighted, plain;
	struct judgement by_weighted, by_plain;
	struct rng rng;

	rng_init(&rng, 4);
	for (unsigned i = 0; i < SAMPLES; i++) {
		bool flashy = i % 50 == 0;
		uint64_t gap_ms = (flashy ? 500 : 1500) + rng_below(&rng, 2000);
		samples[i] = sample_of(i, 1, gap_ms, flashy);
	}
	assert_int_equal(model_train(&weighted, samples, SAMPLES, 1, true, reason), FS_OK);
	assert_int_equal(model_train(&plain, samples, SAMPLES, 1, false, reason), FS_OK);
	guard_judge(&weighted, samples, SAMPLES, 1, &by_weighted);
	guard_judge(&plain, samples, SAMPLES, 1, &by_plain);
	assert_true(by_weighted.model.recall > 0.5);
	assert_true(by_plain.model.recall < 0.2);
	assert_true(guard_accepts(&by_weighted, reason));
	assert_false(guard_accepts(&by_plain, reason));
}

static void history_speaks_for_unread_objects(void **state)
{
	(void)state;
	struct clf_model model;
	struct judgement judgement;

	for (unsigned i = 0; i < SAMPLES; i++) {
		unsigned stays = 1 + i % 8;
		samples[i] = sample_of(i, 0, 0, stays > 4);
		samples[i].state.features.history_long = (uint8_t)stays;
	}
	assert_int_equal(train_with(SAMPLES, &model), FS_OK);
	guard_judge(&model, samples, SAMPLES, 1, &judgement);
	assert_true(judgement.model.precision > 0.9 && judgement.model.recall > 0.9);
	assert_true(judgement.read_once.share == 0 && judgement.second_hit.share == 1);
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
		cmocka_unit_test(history_speaks_for_unread_objects),
		cmocka_unit_test(training_repeats_exactly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
