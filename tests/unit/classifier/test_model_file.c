/* SPDX-License-Identifier: BSD-3-Clause */
/* A model as a file: written and read back, each field broken in turn, files that can't be written or read. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
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

#include "classifier/classifier_internal.h"

static char folder[] = "/tmp/flashield-model-XXXXXX";
static char path[64], beside[72], reason[256];
static struct clf_model model, got;
static struct model_terms terms, got_terms;

/* Values that need all digits, and the ends of ranges. */
static void make_model(void)
{
	model = (struct clf_model){ .bias = -1.0 / 3, .samples = 1ull << 53, .steps = CLF_STEPS };
	for (unsigned f = 0; f < CLF_FEATURES; f++) {
		model.weight[f] = (double)f / 7 - 1e-17;
		model.mean[f] = 1e6 / (f + 1);
		model.scale[f] = f ? 0.1 * f : 0;
	}
	for (unsigned s = 0; s < CLF_STEPS; s++) {
		model.step_decision[s] = -2 + s / 3.0;
		model.step_worth[s] = s < 2 ? -64 : s * 0.7;
	}
	terms = (struct model_terms){ .mode = CLF_LABEL_PAPER,
				      .threshold = 1000,
				      .horizon_ms = 123456789,
				      .size_exponent = 0.3,
				      .trained_seconds = 1795000000 };
}

static int read_it(void)
{
	reason[0] = '\0';
	memset(&got, 0x55, sizeof(got));
	memset(&got_terms, 0x55, sizeof(got_terms));
	return model_read(path, &got, &got_terms, reason);
}

static void write_bytes(const char *text, size_t length)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

static void write_text(const char *text)
{
	write_bytes(text, strlen(text));
}

static void expect_refused(const char *wanted)
{
	uint64_t samples = 0x5555555555555555ull;

	assert_int_equal(read_it(), FS_EINVAL);
	assert_int_equal(got.samples, samples); /* untouched */
	if (!strstr(reason, path) || !strstr(reason, wanted))
		fail_msg("\"%s\" doesn't say \"%s\"", reason, wanted);
}

/* ---- broken files ---------------------------------------------------------------------------- */

static void text_that_is_no_json_is_refused_with_its_line(void **state)
{
	(void)state;
	write_text("");
	expect_refused("line 1");
	write_text("{\n  \"format\": \"flashield model\",\n  oops\n}\n");
	expect_refused("line 3, column");
	write_text("{\"version\": 1, \"version\": 1}");
	expect_refused("duplicate");
	write_text("[]");
	expect_refused("\"format\" is not");
	write_text("{\"bias\": 1e999}");
	expect_refused("overflow");
	/* JSON has no word for what is not a number. */
	write_text("{\"bias\": NaN}");
	expect_refused("line 1, column");
	write_text("{\"bias\": -Infinity}");
	expect_refused("line 1, column");
}

struct breakage {
	const char *at; /* names and numbers, separated by slashes */
	const char *value; /* JSON; NULL: the field is taken away */
	const char *said;
};

static const struct breakage breakages[] = {
	{ "format", NULL, "\"format\" is not \"flashield model\"" },
	{ "format", "\"flashield\"", "\"format\" is not" },
	{ "format", "1", "\"format\" is not" },
	{ "version", NULL, "\"version\" is not 1" },
	{ "version", "0", "\"version\" is not 1" },
	{ "version", "2", "\"version\" is not 1" },
	{ "version", "1.0", "\"version\" is not 1" },
	{ "label_mode", NULL, "\"label_mode\" is missing" },
	{ "label_mode", "\"best\"", "\"label_mode\" is neither \"full\" nor \"paper\"" },
	{ "label_mode", "null", "\"label_mode\" is neither" },
	{ "threshold", NULL, "\"threshold\" is missing" },
	{ "threshold", "0", "\"threshold\" is not a whole number from 1 to 1000" },
	{ "threshold", "1001", "\"threshold\" is not a whole number from 1 to 1000" },
	{ "threshold", "1.5", "\"threshold\" is not a whole number" },
	{ "horizon_ms", NULL, "\"horizon_ms\" is missing" },
	{ "horizon_ms", "0", "\"horizon_ms\" is not a whole number from 1 to 1099511627776" },
	{ "horizon_ms", "1099511627777", "\"horizon_ms\" is not" },
	{ "size_exponent", NULL, "\"size_exponent\" is missing" },
	{ "size_exponent", "-0.1", "\"size_exponent\" is not a number from 0 to 2" },
	{ "size_exponent", "2.1", "\"size_exponent\" is not a number from 0 to 2" },
	{ "size_exponent", "\"1\"", "\"size_exponent\" is not a number" },
	{ "trained", NULL, "\"trained\" is missing" },
	{ "trained", "0", "\"trained\" is not a whole number" },
	{ "trained", "-5", "\"trained\" is not a whole number" },
	{ "samples", NULL, "\"samples\" is missing" },
	{ "samples", "0", "\"samples\" is not a whole number" },
	{ "samples", "9007199254740993", "\"samples\" is not a whole number from 1 to 9007199254740992" },
	{ "bias", NULL, "\"bias\" is missing" },
	{ "bias", "1000001", "\"bias\" is not a number from -1000000 to 1000000" },
	{ "bias", "[1]", "\"bias\" is not a number" },
	{ "other", "1", "\"other\" is no field of a model" },
	{ "features", NULL, "\"features\" is missing" },
	{ "features", "{}", "\"features\" is not a list of 9 features" },
	{ "features", "[]", "\"features\" is not a list of 9 features" },
	{ "features/8", NULL, "\"features\" is not a list of 9 features" },
	{ "features", "[1,2,3,4,5,6,7,8,9,10]", "\"features\" is not a list of 9 features" },
	{ "features/3", "7", "\"features[3]\" is not an object" },
	{ "features/3/name", NULL, "\"features[3].name\" is missing" },
	{ "features/3/name", "\"colour\"", "\"features[3].name\" is no feature's: \"colour\"" },
	{ "features/3/name", "3", "\"features[3].name\" is no feature's" },
	{ "features/3/name", "\"reads\"", "\"features[3].name\" is there a second time: \"reads\"" },
	{ "features/3/weight", NULL, "\"features[3].weight\" is missing" },
	{ "features/3/weight", "-1000001", "\"features[3].weight\" is not a number from -1000000 to 1000000" },
	{ "features/3/weight", "null", "\"features[3].weight\" is not a number" },
	{ "features/3/weight", "\"NaN\"", "\"features[3].weight\" is not a number" },
	{ "features/3/mean", NULL, "\"features[3].mean\" is missing" },
	{ "features/3/mean", "true", "\"features[3].mean\" is not a number" },
	{ "features/8/scale", NULL, "\"features[8].scale\" is missing" },
	{ "features/8/scale", "-1e-9", "\"features[8].scale\" is not a number from 0 to 1000000" },
	{ "features/0/unit", "1", "\"features[0].unit\" is no field of a model" },
	{ "calibration", NULL, "\"calibration\" is missing" },
	{ "calibration", "[{\"decision\": 1, \"worth\": 1}]", "\"calibration\" is not a list of 2 to 16 steps" },
	{ "calibration", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", "\"calibration\" is not a list of 2 to 16" },
	{ "calibration/0", "[]", "\"calibration[0]\" is not an object" },
	{ "calibration/5/decision", NULL, "\"calibration[5].decision\" is missing" },
	{ "calibration/5/decision", "-2", "\"calibration[5].decision\" is not a number from -0.666" },
	{ "calibration/0/worth", "-64.1", "\"calibration[0].worth\" is not a number from -64 to 64" },
	{ "calibration/5/worth", "2.7", "\"calibration[5].worth\" is not a number from 2.8" },
	{ "calibration/15/worth", "64.1", "\"calibration[15].worth\" is not a number from" },
	{ "calibration/2/reads", "1", "\"calibration[2].reads\" is no field of a model" },
};

/* The part that holds the last name of the path, which *name then is. */
static json_t *holder_of(json_t *json, char *at, char **name)
{
	char *slash;

	while ((slash = strchr(at, '/')) != NULL) {
		*slash = '\0';
		json = json_is_array(json) ? json_array_get(json, strtoul(at, NULL, 10)) : json_object_get(json, at);
		assert_non_null(json);
		at = slash + 1;
	}
	*name = at;
	return json;
}

static void break_file(const struct breakage *breakage)
{
	json_t *json = json_load_file(path, 0, NULL), *holder;
	char at[64], *name, *text;

	assert_non_null(json);
	snprintf(at, sizeof(at), "%s", breakage->at);
	holder = holder_of(json, at, &name);
	if (json_is_array(holder) && breakage->value)
		json_array_set_new(holder, strtoul(name, NULL, 10), json_loads(breakage->value, JSON_DECODE_ANY, NULL));
	else if (json_is_array(holder))
		json_array_remove(holder, strtoul(name, NULL, 10));
	else if (breakage->value)
		json_object_set_new(holder, name, json_loads(breakage->value, JSON_DECODE_ANY, NULL));
	else
		json_object_del(holder, name);
	text = json_dumps(json, JSON_REAL_PRECISION(17));
	write_text(text);
	free(text);
	json_decref(json);
}

static void each_broken_field_is_named_with_what_is_wanted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(breakages) / sizeof(breakages[0]); i++) {
		assert_int_equal(model_write(path, &model, &terms), FS_OK);
		break_file(&breakages[i]);
		expect_refused(breakages[i].said);
	}
}

/* A version that isn't known may have any fields: it is named before any of them. */
static void another_version_is_told_whatever_else_is_there(void **state)
{
	(void)state;
	write_text("{\"format\": \"flashield model\", \"version\": 2, \"trees\": []}");
	expect_refused("\"version\" is not 1, the only one that this program knows");
	write_text("{\"format\": \"flashield model\", \"version\": 0}");
	expect_refused("\"version\" is not 1, the only one that this program knows");
}

/* As a copy that a full disk ended. */
static void no_part_of_a_file_is_a_model(void **state)
{
	static char text[MODEL_FILE_BYTES_MAX];
	FILE *file;
	size_t length;

	(void)state;
	assert_int_equal(model_write(path, &model, &terms), FS_OK);
	file = fopen(path, "r");
	assert_non_null(file);
	length = fread(text, 1, sizeof(text), file);
	fclose(file);
	assert_in_range(length, 1000, sizeof(text) - 1);
	for (size_t end = 0; end < length - 2; end += 7) { /* its last bytes are "}" and a newline */
		write_bytes(text, end);
		expect_refused("line");
	}
}

static void files_that_cant_be_read_are_refused(void **state)
{
	static char large[MODEL_FILE_BYTES_MAX];

	(void)state;
	unlink(path);
	assert_int_equal(read_it(), FS_ESYS);
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(reason, "No such file"));
	memset(large, ' ', sizeof(large));
	write_bytes(large, sizeof(large));
	assert_int_equal(read_it(), FS_ESYS);
	assert_int_equal(errno, EFBIG);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(read_it(), FS_ESYS);
	assert_int_equal(errno, EISDIR);
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it: to wait would be for ever */
	expect_refused("it is not a regular file");
	unlink(path);
}

/* ---- whole files ----------------------------------------------------------------------------- */

static void what_is_written_is_read(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(model_write(path, &model, &terms), FS_OK);
	assert_int_equal(read_it(), FS_OK);
	for (unsigned f = 0; f < CLF_FEATURES; f++) {
		assert_true(got.weight[f] == model.weight[f] && got.mean[f] == model.mean[f]);
		assert_true(got.scale[f] == model.scale[f]);
	}
	assert_int_equal(got.steps, model.steps);
	for (unsigned s = 0; s < CLF_STEPS; s++)
		assert_true(got.step_decision[s] == model.step_decision[s] && got.step_worth[s] == model.step_worth[s]);
	assert_true(got.bias == model.bias && got.samples == model.samples && got.trained_ms == 0);
	assert_true(got_terms.mode == terms.mode && got_terms.threshold == terms.threshold);
	assert_true(got_terms.horizon_ms == terms.horizon_ms && got_terms.size_exponent == terms.size_exponent);
	assert_int_equal(got_terms.trained_seconds, terms.trained_seconds);
	assert_int_equal(stat(beside, &st), -1);
}

static void fields_and_features_may_stand_in_any_order(void **state)
{
	json_t *json, *features;
	char *text;

	(void)state;
	assert_int_equal(model_write(path, &model, &terms), FS_OK);
	json = json_load_file(path, 0, NULL);
	features = json_object_get(json, "features");
	for (unsigned i = 0; i < CLF_FEATURES; i++)
		json_array_insert(features, i, json_array_get(features, CLF_FEATURES - 1));
	while (json_array_size(features) > CLF_FEATURES)
		json_array_remove(features, CLF_FEATURES);
	for (unsigned i = 0; i < CLF_FEATURES / 2; i++) {
		json_t *low = json_incref(json_array_get(features, i));

		json_array_set(features, i, json_array_get(features, CLF_FEATURES - 1 - i));
		json_array_set_new(features, CLF_FEATURES - 1 - i, low);
	}
	text = json_dumps(json, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
	write_text(text);
	free(text);
	json_decref(json);
	assert_int_equal(read_it(), FS_OK);
	for (unsigned f = 0; f < CLF_FEATURES; f++)
		assert_true(got.weight[f] == model.weight[f]);
}

static void a_file_that_cant_be_written_leaves_the_old_one(void **state)
{
	(void)state;
	assert_int_equal(model_write("/nonexistent/model.json", &model, &terms), FS_ESYS);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(model_write(path, &model, &terms), FS_OK);
	assert_int_equal(mkdir(beside, 0700), 0);
	model.bias = 5;
	assert_int_equal(model_write(path, &model, &terms), FS_ESYS);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(rmdir(beside), 0);
	assert_int_equal(read_it(), FS_OK);
	assert_true(got.bias == -1.0 / 3);
}

/* Nobody's link leads the file elsewhere. */
static void a_link_beside_is_not_followed(void **state)
{
	char target[72];
	struct stat st;

	(void)state;
	snprintf(target, sizeof(target), "%s/target", folder);
	assert_int_equal(symlink(target, beside), 0);
	assert_int_equal(model_write(path, &model, &terms), FS_ESYS);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(stat(target, &st), -1);
	unlink(beside);
}

static int lowest_free_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	return fd;
}

static void no_descriptor_stays_open(void **state)
{
	int free_before = lowest_free_descriptor();

	(void)state;
	assert_int_equal(model_write(path, &model, &terms), FS_OK);
	assert_int_equal(lowest_free_descriptor(), free_before);
	assert_int_equal(read_it(), FS_OK);
	assert_int_equal(lowest_free_descriptor(), free_before);
	write_text("{");
	expect_refused("line 1");
	assert_int_equal(lowest_free_descriptor(), free_before);
}

static int prepare(void **state)
{
	(void)state;
	make_model();
	return 0;
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/model.json", folder);
	snprintf(beside, sizeof(beside), "%s.new", path);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

#define TEST(test) cmocka_unit_test_setup(test, prepare)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(text_that_is_no_json_is_refused_with_its_line),
		TEST(each_broken_field_is_named_with_what_is_wanted),
		TEST(another_version_is_told_whatever_else_is_there),
		TEST(no_part_of_a_file_is_a_model),
		TEST(files_that_cant_be_read_are_refused),
		TEST(what_is_written_is_read),
		TEST(fields_and_features_may_stand_in_any_order),
		TEST(a_file_that_cant_be_written_leaves_the_old_one),
		TEST(a_link_beside_is_not_followed),
		TEST(no_descriptor_stays_open),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
