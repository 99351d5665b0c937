/* SPDX-License-Identifier: BSD-3-Clause */
/* The worth of an object, and the count of accesses that it comes from, through all that happens to a key. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics/counters.h"
#include "classifier/classifier_internal.h"
#include "tests/unit/classifier/clf_test.h"

#define HALF_LIFE_MS 10000
#define KEY 77
#define ROUNDED 1.4143 /* a count in the table is off by a step at the most */

#define FLASH_BYTES (1u << 20)

static void open_rule(enum clf_admission admission, enum clf_label_mode mode, double size_exponent)
{
	clk_scripted_init(&test_clock, 1000000000);
	const struct clf_config config = {
		.clock = &test_clock,
		.seed = 5,
		.admission = admission,
		.label_mode = mode,
		.threshold = 1,
		.training_window_ms = 10000,
		.memory_bytes = 256 << 10,
		.flash_bytes = FLASH_BYTES,
		.size_exponent = size_exponent,
	};

	assert_int_equal(clf_create(&clf, &config), FS_OK);
	clf_budget(clf, &(struct clf_written){ .seconds = HALF_LIFE_MS / 4000.0, .app_bytes = FLASH_BYTES });
}

static void open_freq(void)
{
	open_rule(CLF_ADMIT_FREQ, CLF_LABEL_FULL, 1);
}

static bool near(double got, double wanted, double off)
{
	return fabs(got - wanted) <= off;
}

static bool within(double got, double wanted, double factor)
{
	return got <= wanted * factor && got >= wanted / factor;
}

/* An object that was written now and read so many times since, all in this millisecond. */
static struct clf_features read_times(unsigned reads)
{
	struct clf_features features;

	clf_features_written(&features, now_ms());
	for (unsigned i = 0; i < reads; i++)
		clf_features_read(&features, now_ms());
	return features;
}

/* The past that a write of the key finds. */
static double past_after_write(const struct clf_features *old)
{
	struct clf_features features;

	clf_features_written(&features, now_ms());
	clf_note_written(clf, KEY, old, &features.past, now_ms());
	return past_count(features.past);
}

/* ---- a count in a byte --------------------------------------------------------------------------- */

static void a_count_in_a_byte_comes_back_within_half_a_step(void **state)
{
	(void)state;
	for (double count = 0.25; count < 14000; count *= 1.01)
		assert_true(within(past_count(past_code(count)), count, exp2(1 / 32.0) + 1e-9));
	for (unsigned code = 0; code < 256; code++)
		assert_int_equal(past_code(past_count((uint8_t)code)), code);
}

static void nothing_negative_and_too_much_have_codes_too(void **state)
{
	(void)state;
	assert_int_equal(past_code(0), 0);
	assert_int_equal(past_code(-1), 0);
	assert_int_equal(past_code(0.1), 0);
	assert_int_equal(past_code(1e300), 255);
	assert_int_equal(past_code(HUGE_VAL), 255);
	assert_true(past_count(0) == 0);
}

/* ---- the count of an object ------------------------------------------------------------------------ */

static void an_object_without_reads_and_past_counts_nothing(void **state)
{
	(void)state;
	struct clf_features features;

	clf_features_written(&features, 1000);
	assert_true(features_count(&features, 1000, HALF_LIFE_MS) == 0);
	assert_true(features_count(&features, 900000, HALF_LIFE_MS) == 0);
}

static void the_past_halves_in_a_half_life(void **state)
{
	(void)state;
	struct clf_features features;

	clf_features_written(&features, 1000);
	features.past = past_code(8);
	assert_true(near(features_count(&features, 1000, HALF_LIFE_MS), 8, 1e-9));
	assert_true(near(features_count(&features, 1000 + HALF_LIFE_MS, HALF_LIFE_MS), 4, 1e-9));
	assert_true(near(features_count(&features, 1000 + 3 * HALF_LIFE_MS, HALF_LIFE_MS), 1, 1e-9));
}

/* Written at 1 s with a past of 4, read at 2, 3 and 5 s; now it is 8 s. */
static void the_count_is_what_one_computes_by_hand(void **state)
{
	(void)state;
	struct clf_features features;
	double life = 4000.0 / HALF_LIFE_MS * M_LN2;

	clf_features_written(&features, 1000);
	features.past = past_code(4);
	clf_features_read(&features, 2000);
	clf_features_read(&features, 3000);
	clf_features_read(&features, 5000);
	double by_hand = 4 * exp2(-0.7) + 3 * (1 - exp(-life)) / life * exp2(-0.3);
	assert_true(near(features_count(&features, 8000, HALF_LIFE_MS), by_hand, 1e-3)); /* the mean gap is rounded */
}

/* The times of reads are not kept; spread evenly they are close to the sum of each one's weight. */
static void reads_in_even_gaps_count_as_if_each_had_aged_by_itself(void **state)
{
	(void)state;
	static const uint64_t gaps_ms[] = { 1, 100, 1000, 3000 };

	for (unsigned g = 0; g < 4; g++) {
		struct clf_features features;
		double sum = 0;

		clf_features_written(&features, 0);
		for (uint64_t i = 1; i <= 50; i++) {
			clf_features_read(&features, i * gaps_ms[g]);
			sum += exp2(-(double)((50 - i) * gaps_ms[g]) / HALF_LIFE_MS);
		}
		assert_true(within(features_count(&features, 50 * gaps_ms[g], HALF_LIFE_MS), sum, 1.12));
	}
}

static void a_time_that_lies_ahead_is_now(void **state)
{
	(void)state;
	struct clf_features features;

	clf_features_written(&features, 5000);
	features.past = past_code(2);
	clf_features_read(&features, 5001);
	assert_true(near(features_count(&features, 4990, HALF_LIFE_MS), 3, 1e-3));
}

/* A turn is the time in which applications write as many bytes as the flash has. */
static void counts_halve_in_four_turns_and_a_second_at_least(void **state)
{
	(void)state;
	open_freq();
	assert_true(near(clf_half_life_ms(clf), HALF_LIFE_MS, 1e-6 * HALF_LIFE_MS));
	clf_destroy(clf);
	open_rule(CLF_ADMIT_FREQ, CLF_LABEL_FULL, 1);
	clf_budget(clf, &(struct clf_written){ .seconds = 0.001, .app_bytes = 1000 * FLASH_BYTES });
	assert_true(clf_half_life_ms(clf) == 1000);
}

/* Whatever the clock says: nothing is forgotten before it is known how fast it should be. */
static void without_a_write_counts_stay(void **state)
{
	const struct clf_config config = { .clock = clk_boot(),
					   .admission = CLF_ADMIT_FREQ,
					   .threshold = 1,
					   .training_window_ms = 10000,
					   .memory_bytes = 256 << 10,
					   .flash_bytes = FLASH_BYTES,
					   .size_exponent = 1 };

	(void)state;
	assert_int_equal(clf_create(&clf, &config), FS_OK);
	assert_true(clf_half_life_ms(clf) >= 0x1p40);
	clf_budget(clf, &(struct clf_written){ .seconds = 1e6 });
	assert_true(clf_half_life_ms(clf) >= 0x1p40);
}

/* ---- worth -------------------------------------------------------------------------------------------- */

static double worth_of(const struct clf_features *features, uint32_t record_bytes)
{
	return (double)clf_worth(
		clf, &(struct clf_object){ .hash = KEY, .features = features, .record_bytes = record_bytes }, now_ms());
}

static void worth_is_the_logarithm_of_accesses_per_byte(void **state)
{
	(void)state;
	struct clf_features none, one, eight;

	open_freq();
	none = read_times(0), one = read_times(1), eight = read_times(8);
	double tie = (double)offers_tie(sampler_key(&clf->sampler, KEY));
	assert_true(near(worth_of(&one, 1024), -10 + tie, 1e-4));
	assert_true(near(worth_of(&eight, 1024), -7 + tie, 1e-4));
	assert_true(near(worth_of(&none, 1024), -12 + tie, 1e-4)); /* a quarter of an access */
	assert_true(near(worth_of(&one, 4096), -12 + tie, 1e-4));
}

static void what_was_read_more_or_later_or_is_smaller_is_worth_more(void **state)
{
	(void)state;
	struct clf_features early, late, often;

	open_freq();
	early = read_times(3);
	pass(HALF_LIFE_MS);
	late = read_times(3);
	often = read_times(4);
	assert_true(near(worth_of(&late, 100) - worth_of(&early, 100), 1, 1e-4));
	assert_true(worth_of(&often, 100) > worth_of(&late, 100));
	assert_true(worth_of(&late, 99) > worth_of(&late, 100));
	early = late;
	early.past = past_code(1);
	assert_true(worth_of(&early, 100) > worth_of(&late, 100));
}

static void with_a_size_exponent_of_0_the_size_says_nothing_and_with_2_it_counts_twice(void **state)
{
	(void)state;
	struct clf_features features;

	open_rule(CLF_ADMIT_FREQ, CLF_LABEL_FULL, 0);
	features = read_times(2);
	assert_true(worth_of(&features, 100) == worth_of(&features, 100000));
	close_clf(state);
	open_rule(CLF_ADMIT_FREQ, CLF_LABEL_FULL, 2);
	assert_true(near(worth_of(&features, 128) - worth_of(&features, 1024), 6, 1e-4));
}

/* ---- which rules ask ------------------------------------------------------------------------------------ */

static void freq_asks_at_eviction_and_svm_in_mode_full(void **state)
{
	(void)state;
	static const struct {
		enum clf_admission rule;
		bool full, paper;
	} rows[] = {
		{ CLF_ADMIT_SVM, true, false },        { CLF_ADMIT_FREQ, true, true },
		{ CLF_ADMIT_READ_ONCE, false, false }, { CLF_ADMIT_SECOND_HIT, false, false },
		{ CLF_ADMIT_ALL, false, false },       { CLF_ADMIT_READ_OR_SECOND_HIT, false, false },
	};

	assert_int_equal(sizeof(rows) / sizeof(rows[0]), CLF_ADMIT_LAST + 1);
	for (unsigned i = 0; i <= CLF_ADMIT_LAST; i++) {
		open_rule(rows[i].rule, CLF_LABEL_FULL, 1);
		assert_int_equal(clf_asks_at_eviction(clf), rows[i].full);
		close_clf(state);
		open_rule(rows[i].rule, CLF_LABEL_PAPER, 1);
		assert_int_equal(clf_asks_at_eviction(clf), rows[i].paper);
		close_clf(state);
	}
}

/* ---- a key's count, wherever its object is ---------------------------------------------------------------- */

static void misses_and_hits_on_flash_count_for_the_next_stay(void **state)
{
	(void)state;
	open_freq();
	assert_true(past_after_write(NULL) == 0);
	clf_note_missed(clf, KEY, now_ms());
	assert_true(past_after_write(NULL) == 1);
	clf_note_read_on_flash(clf, KEY, now_ms());
	assert_true(past_after_write(NULL) == 2);
	for (unsigned i = 0; i < 30; i++)
		clf_note_read_on_flash(clf, KEY, now_ms());
	assert_true(within(past_after_write(NULL), 32, 2));
}

/* These are in the object's own features. */
static void hits_in_dram_do_not_count_in_the_table(void **state)
{
	(void)state;
	struct clf_features features;

	open_freq();
	features = read_times(5);
	for (unsigned i = 0; i < 5; i++)
		clf_note_read(clf, KEY, &features, now_ms());
	assert_true(past_after_write(NULL) == 0);
}

static void eviction_and_a_move_to_flash_keep_the_count(void **state)
{
	(void)state;
	struct clf_features features;

	open_freq();
	features = read_times(16);
	clf_note_evicted(clf, KEY, &features, now_ms());
	assert_true(within(past_after_write(NULL), 16, ROUNDED));
	features = read_times(64);
	clf_note_moved(clf, KEY, &features, now_ms());
	assert_true(within(past_after_write(NULL), 64, ROUNDED)); /* instead of the old count, not beside it */
	features = read_times(64);
	pass(4 * HALF_LIFE_MS);
	clf_note_moved(clf, KEY, &features, now_ms());
	assert_true(within(past_after_write(NULL), 4, ROUNDED)); /* as of now */
	clf_note_evicted(clf, KEY, NULL, now_ms()); /* from flash: the table has the count already */
	assert_true(within(past_after_write(NULL), 4, ROUNDED));
}

static void an_overwritten_object_passes_its_count_on(void **state)
{
	(void)state;
	struct clf_features features;

	open_freq();
	clf_note_missed(clf, KEY, now_ms());
	features = read_times(16);
	assert_true(past_after_write(&features) == 16); /* of the object, not of the table */
	pass(HALF_LIFE_MS);
	assert_true(within(past_after_write(&features), 8, 1.03));
	features = read_times(0);
	assert_true(past_after_write(&features) == 0);
}

static void rules_without_counts_neither_note_nor_fill_in_a_past(void **state)
{
	(void)state;
	static const enum clf_admission without[] = { CLF_ADMIT_READ_ONCE, CLF_ADMIT_ALL, CLF_ADMIT_SVM };
	struct clf_features features;

	for (unsigned i = 0; i < 3; i++) {
		open_rule(without[i], CLF_LABEL_PAPER, 1);
		features = read_times(16);
		clf_note_missed(clf, KEY, now_ms());
		clf_note_read_on_flash(clf, KEY, now_ms());
		clf_note_moved(clf, KEY, &features, now_ms());
		clf_note_evicted(clf, KEY, &features, now_ms());
		assert_true(past_after_write(NULL) == 0);
		assert_true(past_after_write(&features) == 0);
		assert_true(counts_get(&clf->counts, sampler_key(&clf->sampler, KEY)) == 0);
		close_clf(state);
	}
}

static void counts_age_with_the_budgets_seconds(void **state)
{
	(void)state;
	open_freq();
	for (unsigned i = 0; i < 4; i++)
		clf_note_missed(clf, KEY, now_ms());
	double before = past_after_write(NULL);
	clf_budget(clf, &(struct clf_written){ .seconds = 2 * HALF_LIFE_MS / 1000 });
	assert_true(near(past_after_write(NULL), before / 4, 1e-9));
}

static void features_again_are_those_of_a_write_with_the_counts_past(void **state)
{
	(void)state;
	struct clf_features again, fresh;

	open_freq();
	memset(&again, 0xff, sizeof(again));
	clf_features_again(clf, KEY, false, now_ms(), &again);
	clf_features_written(&fresh, now_ms());
	fresh.reads.stay = CLF_STAY_AGAIN;
	assert_memory_equal(&again, &fresh, sizeof(fresh));
	clf_features_again(clf, KEY, true, now_ms(), &again);
	assert_int_equal(again.reads.stay, CLF_STAY_READ_AGAIN);
	clf_note_missed(clf, KEY, now_ms());
	clf_features_again(clf, KEY, false, now_ms(), &again);
	assert_true(past_count(again.past) == 1);
	assert_int_equal(again.reads.count, 0);
}

/* ---- offers ----------------------------------------------------------------------------------------------------- */

static bool offer(uint64_t hash, const struct clf_features *features, uint32_t record_bytes)
{
	return clf_offer(clf, &(struct clf_object){ .hash = hash, .features = features, .record_bytes = record_bytes },
			 now_ms());
}

static void an_offer_passes_from_the_threshold_on_and_is_counted(void **state)
{
	(void)state;
	uint64_t scored = ctr_sum(CTR_objects_scored), admitted = ctr_sum(CTR_objects_admitted);
	struct clf_features one;

	open_freq();
	one = read_times(1);
	assert_true(offer(KEY, &one, 1024));
	atomic_store(&clf->offers.threshold, (float)worth_of(&one, 1024));
	assert_true(clf_threshold(clf) == (float)worth_of(&one, 1024));
	assert_true(offer(KEY, &one, 1024));
	assert_false(offer(KEY, &one, 1030));
	assert_int_equal(ctr_sum(CTR_objects_scored) - scored, 3);
	assert_int_equal(ctr_sum(CTR_objects_admitted) - admitted, 2);
}

/* By the ratio, by the rate, and by the lesser one of both; with neither everything passes. */
static void the_budget_is_the_lesser_of_rate_and_ratio(void **state)
{
	(void)state;
	static const struct {
		double limit, ratio, share;
	} rows[] = { { 0, 0.25, 0.25 }, { 250, 0, 0.25 }, { 500, 0.25, 0.25 }, { 250, 0.5, 0.25 }, { 0, 0, 1 } };

	for (unsigned i = 0; i < 5; i++) {
		struct clf_features one;

		open_freq();
		one = read_times(1);
		for (uint64_t hash = 0; hash < 1000; hash++)
			(void)!offer(hash, &one, 10);
		clf_budget(clf, &(struct clf_written){ .seconds = 10,
						       .app_bytes = 10000,
						       .flash_bytes = 2500,
						       .limit = rows[i].limit,
						       .ratio = rows[i].ratio });
		assert_true(near(offers_share(&clf->offers), rows[i].share, 0.02));
		close_clf(state);
	}
}

static void an_offer_is_a_sample_under_svm_alone(void **state)
{
	(void)state;
	struct clf_status status;
	struct clf_features one;

	open_freq();
	one = read_times(1);
	offer(KEY, &one, 100);
	clf_get_status(clf, &status);
	assert_int_equal(status.tracked_keys, 0);
	clf_set_admission(clf, CLF_ADMIT_SVM);
	offer(KEY, &one, 100);
	clf_get_status(clf, &status);
	assert_int_equal(status.tracked_keys, 1);
	clf_note_read(clf, KEY + 1, &one, now_ms()); /* a read is none any more */
	clf_get_status(clf, &status);
	assert_int_equal(status.tracked_keys, 1);
}

static void a_state_has_all_that_a_model_may_see(void **state)
{
	(void)state;
	struct clf_features features;
	struct clf_object object = { .hash = KEY, .features = &features, .record_bytes = 200, .ttl_seconds = 60 };

	open_rule(CLF_ADMIT_SVM, CLF_LABEL_FULL, 1);
	features = read_times(2);
	features.past = past_code(4);
	features.gaps = (struct clf_gaps){ 1, 2, 3 };
	pass(3000);
	struct clf_state full = clf_state_of(clf, &object, now_ms());
	assert_int_equal(full.idle_ms, 3000);
	assert_int_equal(full.record_bytes, 200);
	assert_int_equal(full.ttl_seconds, 60);
	assert_true(near((double)full.count, 6 * exp2(-0.3), 1e-3));
	assert_int_equal(full.features.past, past_code(4));
	assert_int_equal(full.features.reads.count, 2);
	assert_int_equal(full.features.gaps.first + full.features.gaps.last + full.features.gaps.max, 0);
	assert_false(clf_keeps_gaps(clf));
}

/* Mode paper is a matter of the model alone. */
static void freq_is_the_same_in_mode_paper(void **state)
{
	(void)state;
	struct clf_features features;
	struct clf_object object = { .hash = KEY, .features = &features, .record_bytes = 200 };

	open_rule(CLF_ADMIT_FREQ, CLF_LABEL_FULL, 1);
	features = read_times(3);
	float worth = clf_worth(clf, &object, now_ms());
	close_clf(state);
	open_rule(CLF_ADMIT_FREQ, CLF_LABEL_PAPER, 1);
	assert_true(clf_keeps_gaps(clf));
	features = read_times(3);
	assert_true(near((double)clf_worth(clf, &object, now_ms()), (double)worth, 1e-6));
	assert_true(clf_offer(clf, &object, now_ms()));
	clf_set_admission(clf, CLF_ADMIT_SVM); /* asked by a thread that saw the rule before */
	assert_true(isfinite(clf_worth(clf, &object, now_ms())));
}

/* A time that seems to lie ahead comes from another thread's clock; half of the clock's range does not. */
static void what_was_untouched_for_weeks_is_old(void **state)
{
	(void)state;
	const uint64_t weeks_ms = 35ull * 86400000;
	struct clf_features features;

	clf_features_written(&features, 1000);
	features.past = past_code(4);
	assert_true(features_count(&features, 1000 + weeks_ms, 86400000) < 1e-6);
}

#define TEST(test) cmocka_unit_test_teardown(test, close_clf)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_count_in_a_byte_comes_back_within_half_a_step),
		TEST(nothing_negative_and_too_much_have_codes_too),
		TEST(an_object_without_reads_and_past_counts_nothing),
		TEST(the_past_halves_in_a_half_life),
		TEST(the_count_is_what_one_computes_by_hand),
		TEST(reads_in_even_gaps_count_as_if_each_had_aged_by_itself),
		TEST(a_time_that_lies_ahead_is_now),
		TEST(counts_halve_in_four_turns_and_a_second_at_least),
		TEST(without_a_write_counts_stay),
		TEST(worth_is_the_logarithm_of_accesses_per_byte),
		TEST(what_was_read_more_or_later_or_is_smaller_is_worth_more),
		TEST(with_a_size_exponent_of_0_the_size_says_nothing_and_with_2_it_counts_twice),
		TEST(freq_asks_at_eviction_and_svm_in_mode_full),
		TEST(misses_and_hits_on_flash_count_for_the_next_stay),
		TEST(hits_in_dram_do_not_count_in_the_table),
		TEST(eviction_and_a_move_to_flash_keep_the_count),
		TEST(an_overwritten_object_passes_its_count_on),
		TEST(rules_without_counts_neither_note_nor_fill_in_a_past),
		TEST(counts_age_with_the_budgets_seconds),
		TEST(features_again_are_those_of_a_write_with_the_counts_past),
		TEST(an_offer_passes_from_the_threshold_on_and_is_counted),
		TEST(the_budget_is_the_lesser_of_rate_and_ratio),
		TEST(an_offer_is_a_sample_under_svm_alone),
		TEST(a_state_has_all_that_a_model_may_see),
		TEST(freq_is_the_same_in_mode_paper),
		TEST(what_was_untouched_for_weeks_is_old),
	};

	return cmocka_run_group_tests_name("worth", tests, NULL, NULL);
}
