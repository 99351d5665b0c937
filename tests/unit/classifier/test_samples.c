/* SPDX-License-Identifier: BSD-3-Clause */
/* Labelled samples as reports see them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "classifier/classifier_internal.h"
#include "tests/unit/classifier/clf_test.h"

#define WINDOW_MS 10000
#define HORIZON_MS 1000
#define KEYS 400u
#define RECORD_BYTES 128

static void open_clf(enum clf_label_mode mode, double size_exponent)
{
	clk_scripted_init(&test_clock, 1000000000);
	const struct clf_config config = {
		.clock = &test_clock,
		.seed = 5,
		.admission = CLF_ADMIT_SVM,
		.label_mode = mode,
		.threshold = 1,
		.training_window_ms = WINDOW_MS,
		.horizon_ms = HORIZON_MS,
		.memory_bytes = 1 << 20,
		.flash_bytes = 1 << 20,
		.size_exponent = size_exponent,
	};

	assert_int_equal(clf_create(&clf, &config), FS_OK);
}

/* Every key was read as often as its number says, modulo 4, and is offered; those with an even number are read again. */
static void offer_keys(void)
{
	for (uint64_t key = 1; key <= KEYS; key++) {
		struct clf_features features;

		clf_features_written(&features, now_ms() - 100);
		for (unsigned reads = 0; reads < key % 4; reads++)
			clf_features_read(&features, now_ms() - 50);
		(void)!clf_offer(
			clf, &(struct clf_object){ .hash = key, .features = &features, .record_bytes = RECORD_BYTES },
			now_ms());
	}
	pass(HORIZON_MS / 2);
	for (uint64_t key = 2; key <= KEYS; key += 2)
		clf_note_read_on_flash(clf, key, now_ms());
	pass(WINDOW_MS + HORIZON_MS);
}

static long samples(struct clf_labelled **out)
{
	long count = clf_get_samples(clf, out);

	assert_true(count >= 0);
	assert_non_null(*out);
	return count;
}

static void nothing_labelled_gives_none(void **state)
{
	struct clf_labelled *labelled;

	(void)state;
	open_clf(CLF_LABEL_FULL, 1);
	assert_int_equal(samples(&labelled), 0);
	mem_free(labelled);
}

static void labels_and_features_are_the_samples(void **state)
{
	struct clf_labelled *labelled;
	unsigned held_out = 0, read = 0;
	long count;

	(void)state;
	open_clf(CLF_LABEL_FULL, 0.5);
	offer_keys();
	(void)clf_train_now(clf); /* its sweep labels them */
	count = samples(&labelled);
	assert_int_equal(count, KEYS);
	for (long i = 0; i < count; i++) {
		assert_true(labelled[i].size_octaves == 3.5); /* half of log2(128) */
		assert_true(labelled[i].feature[CLF_SIZE] == RECORD_BYTES);
		assert_true(labelled[i].feature[CLF_READS] <= 3);
		assert_true(labelled[i].by_count >= -2 && labelled[i].by_count <= 2);
		assert_in_range(labelled[i].accesses, 0, 1);
		held_out += labelled[i].held_out;
		read += labelled[i].accesses;
	}
	assert_int_equal(read, KEYS / 2);
	assert_in_range(held_out, KEYS / 10, KEYS / 3);
	mem_free(labelled);
}

static void ids_tell_samples_apart_and_stay(void **state)
{
	struct clf_labelled *first, *second;
	long count;

	(void)state;
	open_clf(CLF_LABEL_FULL, 1);
	offer_keys();
	(void)clf_train_now(clf);
	count = samples(&first);
	assert_int_equal(samples(&second), count);
	for (long i = 0; i < count; i++) {
		assert_true(first[i].id == second[i].id);
		for (long j = 0; j < i; j++)
			assert_true(first[i].id != first[j].id);
	}
	mem_free(first);
	mem_free(second);
}

/* Without a model only the count expects something; with one, both do. */
static void a_model_in_use_is_asked(void **state)
{
	struct judgement judgement = { 0 };
	struct clf_model model = { .samples = 1, .steps = 2, .step_decision = { -1, 1 }, .step_worth = { 3, 3 } };
	struct clf_labelled *labelled;

	(void)state;
	open_clf(CLF_LABEL_FULL, 1);
	offer_keys();
	sampler_sweep(&clf->sampler, now_ms());
	assert_true(samples(&labelled) > 0 && isnan(labelled[0].by_model));
	mem_free(labelled);
	clf_publish(clf, &model, CLF_ORIGIN_TRAINED, &judgement);
	assert_true(samples(&labelled) > 0 && labelled[0].by_model == 3);
	mem_free(labelled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nothing_labelled_gives_none, close_clf),
		cmocka_unit_test_teardown(labels_and_features_are_the_samples, close_clf),
		cmocka_unit_test_teardown(ids_tell_samples_apart_and_stay, close_clf),
		cmocka_unit_test_teardown(a_model_in_use_is_asked, close_clf),
	};

	return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
