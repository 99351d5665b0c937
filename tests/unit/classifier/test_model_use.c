/* SPDX-License-Identifier: BSD-3-Clause */
/* Models of files in use: saved, loaded, replaced by a training, given up, pinned. On a scripted clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/metrics/counters.h"
#include "classifier/classifier_internal.h"

#define WINDOW_MS 10000ull
#define HORIZON_MS 20000ull
#define AGE_SECONDS 100000

static char folder[] = "/tmp/flashield-use-XXXXXX";
static char path[64], saved_path[64], reason[256];
static struct clk test_clock;
static struct clf *clf;

/* Takes long gaps for worth, unlike what the samples below teach. */
static const struct clf_model backward = {
	.weight = { [CLF_MEAN_GAP] = 1 },
	.scale = { [CLF_MEAN_GAP] = 1 },
	.bias = -10,
	.samples = 500,
	.steps = 2,
	.step_decision = { -10, 10 },
	.step_worth = { -10, 10 },
};

static void write_model(const struct clf_model *model, enum clf_label_mode mode)
{
	const struct model_terms terms = { .mode = mode,
					   .threshold = 1,
					   .horizon_ms = HORIZON_MS,
					   .size_exponent = 1,
					   .trained_seconds = clk_wall_seconds() - AGE_SECONDS };

	assert_int_equal(model_write(path, model, &terms), FS_OK);
}

static int open_clf(void **state)
{
	struct clf_config config = {
		.clock = &test_clock,
		.seed = 5,
		.threshold = 1,
		.training_window_ms = WINDOW_MS,
		.horizon_ms = HORIZON_MS,
		.memory_bytes = 1 << 20,
		.flash_bytes = 1 << 20,
		.size_exponent = 1,
	};

	(void)state;
	clk_scripted_init(&test_clock, 5000000);
	assert_int_equal(clf_create(&clf, &config), FS_OK);
	clf_set_residence(clf, 1000000);
	write_model(&backward, CLF_LABEL_FULL);
	return 0;
}

static int close_clf(void **state)
{
	(void)state;
	clf_destroy(clf);
	unlink(saved_path);
	return 0;
}

static int load(enum clf_origin origin)
{
	reason[0] = '\0';
	return clf_load_model(clf, path, origin, reason);
}

static struct clf_status status(void)
{
	struct clf_status out;

	clf_get_status(clf, &out);
	return out;
}

static void pass(uint64_t ms)
{
	clk_scripted_advance(&test_clock, ms * 1000);
}

static struct clf_object read_twice(uint64_t key, uint64_t gap_ms, struct clf_features *features)
{
	uint64_t now_ms = clk_now_ms(&test_clock);

	clf_features_written(features, now_ms - 2 * gap_ms);
	clf_features_read(features, now_ms - gap_ms);
	clf_features_read(features, now_ms);
	return (struct clf_object){ .hash = key, .features = features, .record_bytes = 100 };
}

/* 300 keys with short gaps that are read again, 300 with long ones that are not. Half of the bytes may be written. */
static bool train(uint64_t first)
{
	struct clf_features features;

	for (uint64_t key = first; key < first + 600; key++) {
		struct clf_object object = read_twice(key, (key < first + 300 ? 100 : 4000) + key % 50, &features);
		(void)!clf_offer(clf, &object, clk_now_ms(&test_clock));
	}
	pass(1000);
	for (uint64_t key = first; key < first + 300; key++)
		clf_note_read_on_flash(clf, key, clk_now_ms(&test_clock));
	clf_budget(clf, &(struct clf_written){ .seconds = 1, .app_bytes = 60000, .flash_bytes = 30000, .ratio = 0.5 });
	pass(WINDOW_MS + HORIZON_MS);
	return clf_train_now(clf);
}

static float worth_with_gap(uint64_t gap_ms)
{
	struct clf_features features;
	struct clf_object object = read_twice(999999, gap_ms, &features);

	return clf_worth(clf, &object, clk_now_ms(&test_clock));
}

static bool prefers_long_gaps(void)
{
	return worth_with_gap(4000) > worth_with_gap(100) + 1;
}

static bool prefers_short_gaps(void)
{
	return worth_with_gap(100) > worth_with_gap(4000) + 1;
}

/* ---- what can't be used ---------------------------------------------------------------------- */

static void a_file_that_is_not_there_changes_nothing(void **state)
{
	uint64_t version = clf_version(clf);

	(void)state;
	unlink(path);
	assert_int_equal(load(CLF_ORIGIN_IMPORTED), FS_ESYS);
	assert_non_null(strstr(reason, "No such file"));
	assert_int_equal(clf_version(clf), version);
	assert_false(status().model_in_use);
	assert_int_equal(status().model_origin, CLF_ORIGIN_NONE);
}

static void another_mode_is_refused(void **state)
{
	(void)state;
	write_model(&backward, CLF_LABEL_PAPER);
	assert_int_equal(load(CLF_ORIGIN_SAVED), FS_EINVAL);
	assert_non_null(strstr(reason, "\"label_mode\" is \"paper\", but --label-mode is \"full\""));
	assert_false(status().model_in_use);
}

static void a_broken_file_leaves_the_model_in_use(void **state)
{
	FILE *file;

	(void)state;
	assert_int_equal(load(CLF_ORIGIN_PINNED), FS_OK);
	file = fopen(path, "w");
	fputs("{", file);
	fclose(file);
	assert_int_equal(load(CLF_ORIGIN_PINNED), FS_EINVAL);
	assert_int_equal(status().model_origin, CLF_ORIGIN_PINNED);
	assert_true(prefers_long_gaps());
}

/* ---- what is in use -------------------------------------------------------------------------- */

static void a_model_is_used_at_once_and_has_its_age(void **state)
{
	uint64_t version = clf_version(clf);

	(void)state;
	assert_false(prefers_long_gaps());
	assert_int_equal(load(CLF_ORIGIN_IMPORTED), FS_OK);
	assert_true(prefers_long_gaps());
	assert_true(clf_version(clf) > version);
	assert_true(status().model_in_use && !status().judged);
	assert_int_equal(status().model_origin, CLF_ORIGIN_IMPORTED);
	assert_int_equal(status().model_samples, 500);
	assert_in_range(status().model_age_ms, AGE_SECONDS * 1000ull, (AGE_SECONDS + 3600) * 1000ull);
	assert_string_equal(status().reason, "in use: imported, and not judged yet");
}

/* As an older daemon had them. */
static void gaps_that_objects_do_not_keep_are_forgotten(void **state)
{
	struct clf_model older = backward;

	(void)state;
	older.weight[CLF_LAST_GAP] = older.weight[CLF_MAX_GAP] = older.weight[CLF_FIRST_GAP] = -5;
	older.scale[CLF_LAST_GAP] = older.scale[CLF_MAX_GAP] = older.scale[CLF_FIRST_GAP] = 1;
	write_model(&older, CLF_LABEL_FULL);
	assert_int_equal(load(CLF_ORIGIN_IMPORTED), FS_OK);
	assert_true(prefers_long_gaps());
	assert_true(status().weight[CLF_MEAN_GAP] == 1);
	assert_true(status().weight[CLF_LAST_GAP] == 0 && status().weight[CLF_MAX_GAP] == 0 &&
		    status().weight[CLF_FIRST_GAP] == 0);
}

static void a_training_replaces_it_and_the_same_file_does_not_come_back(void **state)
{
	(void)state;
	assert_int_equal(load(CLF_ORIGIN_IMPORTED), FS_OK);
	assert_true(train(0));
	assert_int_equal(status().model_origin, CLF_ORIGIN_TRAINED);
	assert_true(status().judged);
	assert_true(prefers_short_gaps());
	assert_int_equal(load(CLF_ORIGIN_IMPORTED), FS_OK);
	assert_int_equal(status().model_origin, CLF_ORIGIN_TRAINED);
	struct clf_model other = backward;
	other.bias = -9;
	write_model(&other, CLF_LABEL_FULL);
	assert_int_equal(load(CLF_ORIGIN_IMPORTED), FS_OK);
	assert_int_equal(status().model_origin, CLF_ORIGIN_IMPORTED);
	assert_true(status().bias == -9);
}

/* Also before any training of its own succeeds: short gaps alone are read again, and freq can't tell them apart. */
static void one_that_loses_is_given_up(void **state)
{
	struct clf_features features;

	(void)state;
	assert_int_equal(load(CLF_ORIGIN_SAVED), FS_OK);
	/* How often keys are asked for is all that tells, and one model of labels can't learn how often. */
	for (uint64_t key = 0; key < 600; key++) {
		struct clf_object object = read_twice(key, (key < 300 ? 4000 : 100) + key % 50, &features);

		features.past = key < 300 ? 0 : past_code(64);
		(void)!clf_offer(clf, &object, clk_now_ms(&test_clock));
	}
	pass(1000);
	for (uint64_t key = 0; key < 600; key++)
		for (unsigned i = 0; i < (key < 300 ? 1 : key % 2 ? 50 : 0); i++)
			clf_note_read_on_flash(clf, key, clk_now_ms(&test_clock));
	clf_budget(clf, &(struct clf_written){ .seconds = 1, .app_bytes = 60000, .flash_bytes = 30000, .ratio = 0.5 });
	pass(WINDOW_MS + HORIZON_MS);
	assert_false(clf_train_now(clf));
	assert_false(status().model_in_use);
	assert_int_equal(status().model_origin, CLF_ORIGIN_NONE);
}

static void a_pinned_model_stays_and_is_judged(void **state)
{
	uint64_t trainings = ctr_sum(CTR_trainings);

	(void)state;
	assert_int_equal(load(CLF_ORIGIN_PINNED), FS_OK);
	assert_false(train(0));
	assert_int_equal(ctr_sum(CTR_trainings), trainings);
	assert_int_equal(status().model_origin, CLF_ORIGIN_PINNED);
	assert_true(prefers_long_gaps());
	assert_true(status().judged && status().model_hits < status().freq_hits);
	assert_non_null(strstr(status().reason, "pinned; else not used: "));
}

/* ---- saved ----------------------------------------------------------------------------------- */

static void accepted_models_are_saved_and_found_again(void **state)
{
	struct model_terms terms;
	struct clf_model model;
	struct stat st;

	(void)state;
	assert_int_equal(clf_save_models(clf, saved_path), FS_OK);
	assert_int_equal(load(CLF_ORIGIN_IMPORTED), FS_OK);
	assert_int_equal(stat(saved_path, &st), -1); /* only what was trained here */
	assert_true(train(0));
	assert_int_equal(model_read(saved_path, &model, &terms, reason), FS_OK);
	assert_true(model.bias == status().bias && model.samples == status().model_samples);
	assert_int_equal(terms.horizon_ms, HORIZON_MS);
	assert_true(terms.mode == CLF_LABEL_FULL && terms.threshold == 1 && terms.size_exponent == 1);
	assert_true(llabs(terms.trained_seconds - clk_wall_seconds()) < 3600);
	clf_destroy(clf);
	open_clf(NULL);
	assert_int_equal(clf_load_model(clf, saved_path, CLF_ORIGIN_SAVED, reason), FS_OK);
	assert_int_equal(status().model_origin, CLF_ORIGIN_SAVED);
	assert_true(prefers_short_gaps());
}

static void a_model_that_cant_be_saved_is_used_all_the_same(void **state)
{
	(void)state;
	assert_int_equal(clf_save_models(clf, "/nonexistent/model.json"), FS_OK);
	assert_true(train(0));
	assert_int_equal(status().model_origin, CLF_ORIGIN_TRAINED);
}

static void origins_have_words(void **state)
{
	(void)state;
	assert_string_equal(clf_origin_word(CLF_ORIGIN_NONE), "none");
	assert_string_equal(clf_origin_word(CLF_ORIGIN_PINNED), "pinned");
	assert_string_equal(clf_feature_name(CLF_READS), "reads");
	assert_string_equal(clf_feature_name(CLF_TTL), "ttl");
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/given.json", folder);
	snprintf(saved_path, sizeof(saved_path), "%s/model.json", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_clf, close_clf)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_that_is_not_there_changes_nothing),
		TEST(another_mode_is_refused),
		TEST(a_broken_file_leaves_the_model_in_use),
		TEST(a_model_is_used_at_once_and_has_its_age),
		TEST(gaps_that_objects_do_not_keep_are_forgotten),
		TEST(a_training_replaces_it_and_the_same_file_does_not_come_back),
		TEST(one_that_loses_is_given_up),
		TEST(a_pinned_model_stays_and_is_judged),
		TEST(accepted_models_are_saved_and_found_again),
		TEST(a_model_that_cant_be_saved_is_used_all_the_same),
		TEST(origins_have_words),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
