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
	.steps = 2,
	.step_decision = { -10, 10 }, /* worth is the decision value */
	.step_worth = { -10, 10 },
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
	struct clf_sample sample = { .key = key,
				     .reads = after,
				     .state = { .record_bytes = size, .count = read ? 2 : 0 } };

	clf_features_written(&sample.state.features, 1000);
	if (read) {
		clf_features_read(&sample.state.features, 2000);
		sample.state.features.past = past_code(2);
	}
	return sample;
}

static void judge(const struct clf_sample *samples, size_t count, uint32_t threshold, struct judgement *out)
{
	assert_int_equal(guard_judge(&by_size, samples, count, threshold, 1, 0.5, out), FS_OK);
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
	judge(NULL, 0, 1, &judgement);
	assert_int_equal(judgement.samples, 0);
	assert_int_equal(judgement.positives, 0);
	assert_choice(&judgement.model, 0, 0, 0, 0);
	assert_choice(&judgement.read_once, 0, 0, 0, 0);
	assert_choice(&judgement.second_hit, 0, 0, 0, 0);
	assert_true(judgement.model_hits == 0 && judgement.freq_hits == 0 && judgement.second_hit_hits == 0);
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
	judge(samples, 100, 1, &judgement);
	assert_int_equal(judgement.samples, 0);
	samples[77] = sample_of(next_key(&key, true), LARGE, true, 5);
	judge(samples, 100, 1, &judgement);
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
	judge(samples, 3, 1, &judgement);
	assert_int_equal(judgement.samples, 3);
	assert_choice(&judgement.model, 0, 0, 0, 0);
	assert_choice(&judgement.read_once, 0, 0, 0, 0);
	assert_choice(&judgement.second_hit, 0, 0, 0, 0);
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
	judge(samples, 6, 2, &judgement);
	assert_int_equal(judgement.samples, 5);
	assert_int_equal(judgement.positives, 2);
	assert_choice(&judgement.model, 3 / 5.0, 2 / 3.0, 1, 11 / 12.0);
	assert_choice(&judgement.read_once, 3 / 5.0, 1 / 3.0, 1 / 2.0, 4 / 12.0);
	assert_choice(&judgement.second_hit, 3 / 5.0, 1 / 3.0, 1 / 2.0, 4 / 12.0);
	/* With another threshold another one is flashy too. */
	judge(samples, 6, 1, &judgement);
	assert_int_equal(judgement.positives, 3);
	assert_choice(&judgement.model, 3 / 5.0, 2 / 3.0, 2 / 3.0, 11 / 12.0);
}

/* ---- at equal bytes -------------------------------------------------------------------------- */

#define EACH 40

/*
 * Four kinds of held-out objects of one size, as many of each. The count says that kind 3 is the best, and kind 0 the
 * worst; what follows is given. The model's decision is the logarithm of ttl_seconds.
 */
static void make_kinds(struct clf_sample samples[4 * EACH], const uint32_t after[4], const uint32_t ttl[4])
{
	uint64_t key = 0;

	for (unsigned i = 0; i < 4 * EACH; i++) {
		unsigned kind = i % 4;

		samples[i] = sample_of(next_key(&key, true), SMALL, kind > 0, after[kind]);
		samples[i].state.count = (float)(1u << kind) / 2;
		samples[i].state.features.past = past_code(samples[i].state.count);
		samples[i].state.ttl_seconds = ttl[kind];
	}
}

static const struct clf_model by_ttl = {
	.weight = { [CLF_TTL] = 1 },
	.scale = { [CLF_TTL] = 1 },
	.steps = 2,
	.step_decision = { 0, 10 },
	.step_worth = { 0, 10 },
};

static struct judgement judge_kinds(const uint32_t after[4], const uint32_t ttl[4], double bytes_share)
{
	struct clf_sample samples[4 * EACH];
	struct judgement judgement;

	make_kinds(samples, after, ttl);
	assert_int_equal(guard_judge(&by_ttl, samples, 4 * EACH, 1, 1, bytes_share, &judgement), FS_OK);
	return judgement;
}

static void a_model_that_ranks_better_than_freq_is_used(void **state)
{
	(void)state;
	static const uint32_t after[] = { 0, 6, 3, 1 }, ttl[] = { 1, 1000, 100, 10 };
	struct judgement judgement = judge_kinds(after, ttl, 0.25);

	assert_true(fabs(judgement.model_hits - 0.6) < 1e-9);
	assert_true(fabs(judgement.freq_hits - 0.1) < 1e-9);
	assert_true(judgement.second_hit_hits < 0.4);
	assert_true(guard_accepts(&judgement, reason));
	assert_string_equal(reason, "in use: 60.0% of the hits at 25% of the bytes, freq has 10.0%");
}

static void a_model_that_ranks_worse_than_freq_is_not_used(void **state)
{
	(void)state;
	static const uint32_t after[] = { 0, 1, 3, 6 }, ttl[] = { 1, 10, 1000, 100 };
	struct judgement judgement = judge_kinds(after, ttl, 0.25);

	assert_true(fabs(judgement.model_hits - 0.3) < 1e-9);
	assert_true(fabs(judgement.freq_hits - 0.6) < 1e-9);
	assert_false(guard_accepts(&judgement, reason));
	assert_string_equal(reason, "not used: 30.0% of the hits at 25% of the bytes, freq has 60.0%");
}

/* Where half of all bytes are admitted it makes no difference which of the better two kinds comes first. */
static void the_share_of_bytes_decides_which_ranks_count(void **state)
{
	(void)state;
	static const uint32_t after[] = { 0, 1, 3, 6 }, ttl[] = { 1, 10, 1000, 100 };
	struct judgement half = judge_kinds(after, ttl, 0.5), all = judge_kinds(after, ttl, 1);
	struct judgement none = judge_kinds(after, ttl, 0), eighth = judge_kinds(after, ttl, 0.125);

	assert_true(fabs(half.model_hits - 0.9) < 1e-9 && fabs(half.freq_hits - 0.9) < 1e-9);
	assert_true(guard_accepts(&half, reason));
	assert_true(all.model_hits == 1 && all.freq_hits == 1 && all.second_hit_hits == 1);
	assert_true(none.model_hits == 0 && none.freq_hits == 0);
	assert_true(fabs(eighth.freq_hits - 0.3) < 1e-9);
}

/* Objects that second-hit takes have a history; freq is misled here by what it takes for better. */
static void a_model_that_ranks_worse_than_second_hit_is_not_used(void **state)
{
	(void)state;
	static const uint32_t after[] = { 0, 0, 5, 1 }, ttl[] = { 1, 1000, 10, 100 };
	struct judgement judgement = judge_kinds(after, ttl, 0.5);

	judgement.freq_hits = 0;
	assert_true(judgement.second_hit_hits > judgement.model_hits);
	assert_false(guard_accepts(&judgement, reason));
	assert_non_null(strstr(reason, "second-hit has 100.0%"));
}

/* A miss began each stay. Reads in DRAM are no history, and of what comes back from flash only a read there is one. */
static void second_hit_takes_keys_with_a_history_and_what_was_read_on_flash(void **state)
{
	(void)state;
	static const struct {
		uint8_t stay;
		double past;
		unsigned reads;
		bool taken;
	} rows[] = {
		{ CLF_STAY_WRITTEN, 0, 0, false },   { CLF_STAY_WRITTEN, 1, 0, false },
		{ CLF_STAY_WRITTEN, 1, 9, false },   { CLF_STAY_WRITTEN, 1.4, 0, true },
		{ CLF_STAY_WRITTEN, 8, 0, true },    { CLF_STAY_AGAIN, 8, 0, false },
		{ CLF_STAY_READ_AGAIN, 1, 0, true },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t key = i;
		struct clf_sample sample = sample_of(next_key(&key, true), SMALL, false, 1);
		struct judgement judgement;

		for (unsigned read = 0; read < rows[i].reads; read++)
			clf_features_read(&sample.state.features, 2000);
		sample.state.features.past = past_code(rows[i].past);
		sample.state.features.reads.stay = rows[i].stay;
		judge(&sample, 1, 1, &judgement);
		assert_true(judgement.second_hit.share == (rows[i].taken ? 1 : 0));
	}
}

/* Small objects with as many accesses each: for the same bytes there are more of them. */
static void the_size_exponent_decides_if_small_objects_come_first(void **state)
{
	(void)state;
	struct clf_sample samples[100];
	struct judgement per_byte, whole;
	uint64_t key = 0;

	for (unsigned i = 0; i < 100; i++) {
		samples[i] = sample_of(next_key(&key, true), i % 2 ? 10 * SMALL : SMALL, true, i % 2 ? 2 : 1);
		samples[i].state.count = i % 2 ? 2 : 1;
		samples[i].state.ttl_seconds = i % 2 ? 2 : 1;
	}
	assert_int_equal(guard_judge(&by_ttl, samples, 100, 1, 1, 1 / 11.0, &per_byte), FS_OK);
	assert_int_equal(guard_judge(&by_ttl, samples, 100, 1, 0, 1 / 11.0, &whole), FS_OK);
	assert_true(fabs(per_byte.freq_hits - 50 / 150.0) < 1e-9); /* all the small ones */
	assert_true(fabs(per_byte.model_hits - 50 / 150.0) < 1e-9);
	assert_true(fabs(whole.freq_hits - 10 / 150.0) < 1e-9); /* a tenth of the large ones */
	assert_true(fabs(whole.model_hits - 10 / 150.0) < 1e-9);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static struct judgement judgement_of(double model, double freq, double second_hit)
{
	return (struct judgement){
		.samples = 1000,
		.positives = 500,
		.bytes_share = 0.3,
		.model_hits = model,
		.freq_hits = freq,
		.second_hit_hits = second_hit,
	};
}

static void without_positives_nothing_is_judged(void **state)
{
	(void)state;
	struct judgement judgement = judgement_of(0.8, 0.7, 0.6);

	judgement.positives = 4;
	assert_false(guard_accepts(&judgement, reason));
	assert_non_null(strstr(reason, "4 flashy among 1000"));
}

static void five_flashy_samples_are_enough_to_tell(void **state)
{
	(void)state;
	struct judgement judgement = judgement_of(0.8, 0.7, 0.6);

	judgement.positives = 4;
	assert_false(guard_can_tell(&judgement));
	judgement.positives = 5;
	assert_true(guard_can_tell(&judgement));
	assert_true(guard_accepts(&judgement, reason));
}

static void a_model_as_good_as_both_rules_is_used_and_a_little_worse_is_not(void **state)
{
	(void)state;
	struct judgement equal = judgement_of(0.7, 0.7, 0.7);
	struct judgement below_freq = judgement_of(0.7, 0.701, 0.6), below_second = judgement_of(0.7, 0.6, 0.701);

	assert_true(guard_accepts(&equal, reason));
	assert_non_null(strstr(reason, "in use"));
	assert_false(guard_accepts(&below_freq, reason));
	assert_non_null(strstr(reason, "freq has 70.1%"));
	assert_false(guard_accepts(&below_second, reason));
	assert_non_null(strstr(reason, "second-hit has 70.1%"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_samples_give_zeros),
		cmocka_unit_test(what_was_trained_with_is_not_judged),
		cmocka_unit_test(shares_of_nothing_are_zero),
		cmocka_unit_test(model_and_rules_are_judged_by_the_same_samples),
		cmocka_unit_test(a_model_that_ranks_better_than_freq_is_used),
		cmocka_unit_test(a_model_that_ranks_worse_than_freq_is_not_used),
		cmocka_unit_test(the_share_of_bytes_decides_which_ranks_count),
		cmocka_unit_test(a_model_that_ranks_worse_than_second_hit_is_not_used),
		cmocka_unit_test(second_hit_takes_keys_with_a_history_and_what_was_read_on_flash),
		cmocka_unit_test(the_size_exponent_decides_if_small_objects_come_first),
		cmocka_unit_test(without_positives_nothing_is_judged),
		cmocka_unit_test(five_flashy_samples_are_enough_to_tell),
		cmocka_unit_test(a_model_as_good_as_both_rules_is_used_and_a_little_worse_is_not),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
