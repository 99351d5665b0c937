/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard: its figures on made-up samples, and its verdict on made-up judgements. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "classifier/classifier_internal.h"

static char reason[CLF_REASON_BYTES];

/* ---- judging --------------------------------------------------------------------------------- */

/* Admits objects by their size alone: those of LARGE bytes, not those of SMALL. */
static const struct clf_model by_size = {
	.weight = { [CLF_SIZE] = 1 },
	.scale = { [CLF_SIZE] = 1 },
	.bias = -9, /* sizes count by their binary logarithm */
};
#define LARGE 4000
#define SMALL 100

/* The next key after *key that is held out, or that is not. */
static uint64_t next_key(uint64_t *key, bool held_out)
{
	struct clf_sample sample = { .key = *key };

	do
		sample.key++;
	while (sample_held_out(&sample) != held_out);
	return *key = sample.key;
}

static struct clf_sample sample_of(uint64_t key, uint32_t size, bool read, uint32_t after)
{
	struct clf_sample sample = { .key = key, .reads = after, .state.size_bytes = size };

	clf_features_written(&sample.state.features, 1000);
	if (read)
		clf_features_read(&sample.state.features, 2000);
	return sample;
}

static void assert_choice(const struct choice *choice, double share, double precision, double recall, double hits)
{
	assert_true(fabs(choice->share - share) < 1e-9);
	assert_true(fabs(choice->precision - precision) < 1e-9);
	assert_true(fabs(choice->recall - recall) < 1e-9);
	assert_true(fabs(choice->hits - hits) < 1e-9);
}

static void no_samples_give_zeros(void **state)
{
	(void)state;
	struct judgement judgement;

	memset(&judgement, 0xff, sizeof(judgement));
	guard_judge(&by_size, NULL, 0, 1, &judgement);
	assert_int_equal(judgement.samples, 0);
	assert_int_equal(judgement.positives, 0);
	assert_choice(&judgement.model, 0, 0, 0, 0);
	assert_choice(&judgement.read_once, 0, 0, 0, 0);
	assert_choice(&judgement.second_hit, 0, 0, 0, 0);
	assert_false(guard_can_tell(&judgement));
}

static void what_was_trained_with_is_not_judged(void **state)
{
	(void)state;
	struct clf_sample samples[100];
	struct judgement judgement;
	uint64_t key = 0;

	for (unsigned i = 0; i < 100; i++)
		samples[i] = sample_of(next_key(&key, false), LARGE, true, 5);
	guard_judge(&by_size, samples, 100, 1, &judgement);
	assert_int_equal(judgement.samples, 0);
	samples[77] = sample_of(next_key(&key, true), LARGE, true, 5);
	guard_judge(&by_size, samples, 100, 1, &judgement);
	assert_int_equal(judgement.samples, 1);
	assert_choice(&judgement.model, 1, 1, 1, 1);
}

/* None flashy, none admitted: no share is a division by zero. */
static void shares_of_nothing_are_zero(void **state)
{
	(void)state;
	struct clf_sample samples[3];
	struct judgement judgement;
	uint64_t key = 0;

	for (unsigned i = 0; i < 3; i++)
		samples[i] = sample_of(next_key(&key, true), SMALL, false, 0);
	guard_judge(&by_size, samples, 3, 1, &judgement);
	assert_int_equal(judgement.samples, 3);
	assert_choice(&judgement.model, 0, 0, 0, 0);
	assert_choice(&judgement.read_once, 0, 0, 0, 0);
	assert_choice(&judgement.second_hit, 1, 0, 0, 0);
}

/* Five held-out samples with 3 + 8 + 0 + 1 + 0 hits: of a hot object's hundred, eight count. */
static void model_and_rules_are_judged_by_the_same_samples(void **state)
{
	(void)state;
	struct clf_sample samples[6];
	struct judgement judgement;
	uint64_t key = 0;

	samples[0] = sample_of(next_key(&key, true), LARGE, true, 3);
	samples[1] = sample_of(next_key(&key, true), LARGE, false, 100);
	samples[2] = sample_of(next_key(&key, true), LARGE, true, 0);
	samples[3] = sample_of(next_key(&key, true), SMALL, true, 1);
	samples[4] = sample_of(next_key(&key, true), SMALL, false, 0);
	samples[5] = sample_of(next_key(&key, false), SMALL, false, 8);
	guard_judge(&by_size, samples, 6, 2, &judgement);
	assert_int_equal(judgement.samples, 5);
	assert_int_equal(judgement.positives, 2);
	assert_choice(&judgement.model, 3 / 5.0, 2 / 3.0, 1, 11 / 12.0);
	assert_choice(&judgement.read_once, 3 / 5.0, 1 / 3.0, 1 / 2.0, 4 / 12.0);
	assert_choice(&judgement.second_hit, 1, 2 / 5.0, 1, 1);
	/* With another threshold another one is flashy too. */
	guard_judge(&by_size, samples, 6, 1, &judgement);
	assert_int_equal(judgement.positives, 3);
	assert_choice(&judgement.model, 3 / 5.0, 2 / 3.0, 2 / 3.0, 11 / 12.0);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static struct judgement judgement_of(double share, double precision, double recall, double hits)
{
	return (struct judgement){
		.samples = 1000,
		.positives = 500,
		.model = { share, precision, recall, hits },
		.read_once = { .share = 0.8, .precision = 0.5, .recall = 0.8, .hits = 0.9 },
		.second_hit = { .share = 1, .precision = 0.5, .recall = 1, .hits = 1 },
	};
}

static void without_positives_nothing_is_judged(void **state)
{
	(void)state;
	struct judgement judgement = judgement_of(0.4, 0.9, 0.8, 0.8);

	judgement.positives = 4;
	assert_false(guard_accepts(&judgement, reason));
	assert_non_null(strstr(reason, "4 flashy among 1000"));
}

static void five_flashy_samples_are_enough_to_tell(void **state)
{
	(void)state;
	struct judgement judgement = judgement_of(0.4, 0.9, 0.72, 0.8);

	judgement.positives = 4;
	assert_false(guard_can_tell(&judgement));
	judgement.positives = 5;
	assert_true(guard_can_tell(&judgement));
	assert_true(guard_accepts(&judgement, reason));
}

static void a_model_that_admits_nothing_is_not_used(void **state)
{
	(void)state;
	struct judgement judgement = judgement_of(0, 0, 0, 0);

	assert_false(guard_accepts(&judgement, reason));
	assert_non_null(strstr(reason, "not used: admits 0.0% for 0% of the hits"));
}

static void a_model_that_loses_most_hits_is_not_used(void **state)
{
	(void)state;
	struct judgement judgement = judgement_of(0.05, 0.99, 0.1, 0.2);

	assert_false(guard_accepts(&judgement, reason));
	assert_non_null(strstr(reason, "read-once has 90%"));
}

static void a_model_that_picks_worse_than_a_rule_is_not_used(void **state)
{
	(void)state;
	struct judgement judgement = judgement_of(0.7, 0.45, 0.63, 0.7);

	assert_false(guard_accepts(&judgement, reason));
	assert_non_null(strstr(reason, "precision 0.45"));
}

/* With a tenth of the samples the same figures may be chance. */
static void a_little_worse_among_few_samples_is_no_reason(void **state)
{
	(void)state;
	struct judgement judgement = judgement_of(0.7, 0.45, 0.63, 0.7);

	judgement.samples = 100;
	judgement.positives = 50;
	assert_true(guard_accepts(&judgement, reason));
	judgement = judgement_of(0.05, 0.99, 0.1, 0.2);
	judgement.positives = 5;
	assert_true(guard_accepts(&judgement, reason));
}

/* It finds fewer flashy objects than the rule, and those that it picks are better; or the other way round. */
static void a_model_that_is_better_in_one_way_is_used(void **state)
{
	(void)state;
	struct judgement fewer = judgement_of(0.3, 0.7, 0.42, 0.6), more = judgement_of(1, 0.4, 1, 1);

	assert_true(guard_accepts(&fewer, reason));
	more.read_once.precision = 0.6;
	assert_true(guard_accepts(&more, reason));
}

static void a_better_model_is_used(void **state)
{
	(void)state;
	struct judgement judgement = judgement_of(0.4, 0.9, 0.72, 0.8);

	assert_true(guard_accepts(&judgement, reason));
	assert_non_null(strstr(reason, "in use"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_samples_give_zeros),
		cmocka_unit_test(what_was_trained_with_is_not_judged),
		cmocka_unit_test(shares_of_nothing_are_zero),
		cmocka_unit_test(model_and_rules_are_judged_by_the_same_samples),
		cmocka_unit_test(without_positives_nothing_is_judged),
		cmocka_unit_test(five_flashy_samples_are_enough_to_tell),
		cmocka_unit_test(a_model_that_admits_nothing_is_not_used),
		cmocka_unit_test(a_model_that_loses_most_hits_is_not_used),
		cmocka_unit_test(a_model_that_picks_worse_than_a_rule_is_not_used),
		cmocka_unit_test(a_little_worse_among_few_samples_is_no_reason),
		cmocka_unit_test(a_model_that_is_better_in_one_way_is_used),
		cmocka_unit_test(a_better_model_is_used),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
