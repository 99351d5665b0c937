/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model as a file: one object of JSON, written as a whole and read strictly. What a file says is never trusted: each
 * number has a range, in which no later computation overflows.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "classifier/classifier_internal.h"

#define FORMAT "flashield model"
#define DIGITS 17 /* that a double needs */
#define REAL_MOST 1e6 /* of weights, means and decisions, which are a few at most */
#define WORTH_MOST 64 /* octaves */
#define THRESHOLD_MOST 1000 /* of the option */
#define HORIZON_MOST (1ull << 40)
#define EXPONENT_MOST 2
#define COUNT_MOST (1ull << 53)
#define STEPS_LEAST 2
#define WHERE_BYTES 32
#define NAMES_MOST 12

static const char *const modes[] = { [CLF_LABEL_FULL] = "full", [CLF_LABEL_PAPER] = "paper" };

const char *clf_label_mode_word(enum clf_label_mode mode)
{
	return modes[mode];
}

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *features_json(const struct clf_model *model)
{
	json_t *list = json_array();

	for (unsigned f = 0; f < CLF_FEATURES; f++)
		json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f}", "name",
						      clf_feature_name((enum clf_feature)f), "weight", model->weight[f],
						      "mean", model->mean[f], "scale", model->scale[f]));
	return list;
}

static json_t *steps_json(const struct clf_model *model)
{
	json_t *list = json_array();

	for (unsigned s = 0; s < model->steps; s++)
		json_array_append_new(list, json_pack("{s:f, s:f}", "decision", model->step_decision[s], "worth",
						      model->step_worth[s]));
	return list;
}

/* NULL: no memory. The caller frees the text by free. */
static char *model_text(const struct clf_model *model, const struct model_terms *terms)
{
	json_t *json = json_pack("{s:s, s:i, s:s, s:I, s:I, s:f, s:I, s:I, s:f, s:o, s:o}", "format", FORMAT, "version",
				 MODEL_FILE_VERSION, "label_mode", modes[terms->mode], "threshold",
				 (json_int_t)terms->threshold, "horizon_ms", (json_int_t)terms->horizon_ms,
				 "size_exponent", terms->size_exponent, "trained", (json_int_t)terms->trained_seconds,
				 "samples", (json_int_t)model->samples, "bias", model->bias, "features",
				 features_json(model), "calibration", steps_json(model));
	char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) : NULL;

	json_decref(json);
	return text;
}

/* The text and a newline. */
static int write_all(int fd, const char *text)
{
	size_t length = strlen(text);

	while (length > 0) {
		ssize_t written = write(fd, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return FS_ESYS;
		text += written;
		length -= (size_t)written;
	}
	return write(fd, "\n", 1) == 1 ? FS_OK : FS_ESYS;
}

/* Makes a rename last. Its failure loses the newest model at a power cut, and nothing else. */
static void sync_folder(const char *path)
{
	char copy[4096];
	int fd;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
}

static int write_file(const char *path, const char *beside, const char *text)
{
	int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644), code, error;

	if (fd < 0)
		return FS_ESYS;
	code = write_all(fd, text);
	if (code == FS_OK && fsync(fd) != 0)
		code = FS_ESYS;
	error = errno;
	if (close(fd) != 0 && code == FS_OK) {
		code = FS_ESYS;
		error = errno;
	}
	if (code == FS_OK && rename(beside, path) != 0) {
		code = FS_ESYS;
		error = errno;
	}
	if (code == FS_OK)
		sync_folder(path);
	else
		unlink(beside);
	errno = error;
	return code;
}

int model_write(const char *path, const struct clf_model *model, const struct model_terms *terms)
{
	char *text = model_text(model, terms), *beside;
	int code = FS_ENOMEM;

	if (text && asprintf(&beside, "%s.new", path) >= 0) {
		code = write_file(path, beside, text);
		free(beside);
	}
	free(text);
	return code;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
	const char *path;
	char *reason; /* 256 bytes */
};

static int refuse(const struct reading *reading, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(const struct reading *reading, const char *format, ...)
{
	char text[160];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	snprintf(reading->reason, 256, "%.90s: %s", reading->path, text);
	return FS_EINVAL;
}

/* The object has these fields and no other; where is "" or as in "features[3].". */
static int check_fields(const struct reading *reading, json_t *object, const char *where,
			const char *const names[NAMES_MOST])
{
	const char *name;
	json_t *value;

	if (!json_is_object(object))
		return refuse(reading, "\"%.*s\" is not an object", (int)strcspn(where, "."), where);
	for (unsigned i = 0; i < NAMES_MOST && names[i]; i++)
		if (!json_object_get(object, names[i]))
			return refuse(reading, "\"%s%s\" is missing", where, names[i]);
	json_object_foreach(object, name, value)
	{
		unsigned i = 0;

		while (i < NAMES_MOST && names[i] && strcmp(names[i], name) != 0)
			i++;
		if (i == NAMES_MOST || !names[i])
			return refuse(reading, "\"%s%.40s\" is no field of a model", where, name);
	}
	return FS_OK;
}

static int take_real(const struct reading *reading, const json_t *object, const char *where, const char *name,
		     double low, double high, double *out)
{
	const json_t *value = json_object_get(object, name);

	*out = json_number_value(value);
	if (!json_is_number(value) || !isfinite(*out) || *out < low || *out > high)
		return refuse(reading, "\"%s%s\" is not a number from %.16g to %.16g", where, name, low, high);
	return FS_OK;
}

static int take_count(const struct reading *reading, const json_t *object, const char *name, uint64_t high,
		      uint64_t *out)
{
	const json_t *value = json_object_get(object, name);
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < 1 || (uint64_t)number > high)
		return refuse(reading, "\"%s\" is not a whole number from 1 to %llu", name, (unsigned long long)high);
	*out = (uint64_t)number;
	return FS_OK;
}

static bool is_text(const json_t *object, const char *name, const char *wanted)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && strcmp(text, wanted) == 0;
}

static int take_terms(const struct reading *reading, const json_t *json, struct clf_model *model,
		      struct model_terms *terms)
{
	uint64_t threshold, trained;
	int code;

	if (is_text(json, "label_mode", modes[CLF_LABEL_FULL]))
		terms->mode = CLF_LABEL_FULL;
	else if (is_text(json, "label_mode", modes[CLF_LABEL_PAPER]))
		terms->mode = CLF_LABEL_PAPER;
	else
		return refuse(reading, "\"label_mode\" is neither \"full\" nor \"paper\"");
	if ((code = take_count(reading, json, "threshold", THRESHOLD_MOST, &threshold)) != FS_OK ||
	    (code = take_count(reading, json, "horizon_ms", HORIZON_MOST, &terms->horizon_ms)) != FS_OK ||
	    (code = take_count(reading, json, "trained", COUNT_MOST, &trained)) != FS_OK ||
	    (code = take_count(reading, json, "samples", COUNT_MOST, &model->samples)) != FS_OK ||
	    (code = take_real(reading, json, "", "size_exponent", 0, EXPONENT_MOST, &terms->size_exponent)) != FS_OK)
		return code;
	terms->threshold = (uint32_t)threshold;
	terms->trained_seconds = (int64_t)trained;
	return take_real(reading, json, "", "bias", -REAL_MOST, REAL_MOST, &model->bias);
}

static int feature_by_name(const char *name)
{
	for (int f = 0; name && f < CLF_FEATURES; f++)
		if (strcmp(clf_feature_name((enum clf_feature)f), name) == 0)
			return f;
	return -1;
}

static int take_feature(const struct reading *reading, json_t *feature, size_t number, unsigned *seen,
			struct clf_model *model)
{
	static const char *const names[NAMES_MOST] = { "name", "weight", "mean", "scale" };
	const char *name = json_string_value(json_object_get(feature, "name"));
	char where[WHERE_BYTES];
	int f = feature_by_name(name), code;

	snprintf(where, sizeof(where), "features[%zu].", number);
	if ((code = check_fields(reading, feature, where, names)) != FS_OK)
		return code;
	if (f < 0)
		return refuse(reading, "\"%sname\" is no feature's: \"%.40s\"", where, name ? name : "");
	if (*seen & 1u << f)
		return refuse(reading, "\"%sname\" is there a second time: \"%s\"", where, name);
	*seen |= 1u << f;
	if ((code = take_real(reading, feature, where, "weight", -REAL_MOST, REAL_MOST, &model->weight[f])) != FS_OK ||
	    (code = take_real(reading, feature, where, "mean", -REAL_MOST, REAL_MOST, &model->mean[f])) != FS_OK)
		return code;
	return take_real(reading, feature, where, "scale", 0, REAL_MOST, &model->scale[f]);
}

static int take_features(const struct reading *reading, const json_t *json, struct clf_model *model)
{
	const json_t *list = json_object_get(json, "features");
	unsigned seen = 0;
	int code = FS_OK;

	if (!json_is_array(list) || json_array_size(list) != CLF_FEATURES)
		return refuse(reading, "\"features\" is not a list of %d features", CLF_FEATURES);
	for (size_t i = 0; i < CLF_FEATURES && code == FS_OK; i++)
		code = take_feature(reading, json_array_get(list, i), i, &seen, model);
	return code;
}

static int take_step(const struct reading *reading, json_t *step, unsigned s, struct clf_model *model)
{
	static const char *const names[NAMES_MOST] = { "decision", "worth" };
	char where[WHERE_BYTES];
	int code;

	snprintf(where, sizeof(where), "calibration[%u].", s);
	if ((code = check_fields(reading, step, where, names)) != FS_OK ||
	    (code = take_real(reading, step, where, "decision", s ? model->step_decision[s - 1] : -REAL_MOST, REAL_MOST,
			      &model->step_decision[s])) != FS_OK)
		return code;
	return take_real(reading, step, where, "worth", s ? model->step_worth[s - 1] : -WORTH_MOST, WORTH_MOST,
			 &model->step_worth[s]);
}

static int take_steps(const struct reading *reading, const json_t *json, struct clf_model *model)
{
	const json_t *list = json_object_get(json, "calibration");
	size_t steps = json_array_size(list);
	int code = FS_OK;

	if (!json_is_array(list) || steps < STEPS_LEAST || steps > CLF_STEPS)
		return refuse(reading, "\"calibration\" is not a list of %d to %d steps", STEPS_LEAST, CLF_STEPS);
	model->steps = (unsigned)steps;
	for (unsigned s = 0; s < steps && code == FS_OK; s++)
		code = take_step(reading, json_array_get(list, s), s, model);
	return code;
}

static int take_all(const struct reading *reading, json_t *json, struct clf_model *model, struct model_terms *terms)
{
	static const char *const names[NAMES_MOST] = { "format",  "version",  "label_mode", "threshold",
						       "trained", "samples",  "horizon_ms", "size_exponent",
						       "bias",    "features", "calibration" };
	json_t *version = json_object_get(json, "version");
	int code;

	/* Before anything else: other formats and versions have other fields. */
	if (!is_text(json, "format", FORMAT))
		return refuse(reading, "\"format\" is not \"" FORMAT "\"");
	if (!json_is_integer(version) || json_integer_value(version) != MODEL_FILE_VERSION)
		return refuse(reading, "\"version\" is not %d, the only one that this program knows",
			      MODEL_FILE_VERSION);
	if ((code = check_fields(reading, json, "", names)) != FS_OK ||
	    (code = take_terms(reading, json, model, terms)) != FS_OK ||
	    (code = take_features(reading, json, model)) != FS_OK)
		return code;
	return take_steps(reading, json, model);
}

static int parse(const struct reading *reading, const char *text, size_t length, struct clf_model *model,
		 struct model_terms *terms)
{
	json_error_t why;
	json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
	struct clf_model read_model = { 0 };
	struct model_terms read_terms = { 0 };
	int code;

	if (!json && json_error_code(&why) == json_error_out_of_memory) {
		refuse(reading, "%s", fs_strerror(FS_ENOMEM));
		return FS_ENOMEM;
	}
	if (!json)
		return refuse(reading, "line %d, column %d: %.100s", why.line, why.column, why.text);
	code = take_all(reading, json, &read_model, &read_terms);
	json_decref(json);
	if (code == FS_OK) {
		*model = read_model;
		*terms = read_terms;
		terms->digest = hash64(text, length, 0) | 1;
	}
	return code;
}

/* Returns the number of bytes read, or -1 with errno. */
static ssize_t read_text(int fd, char *text, size_t most)
{
	size_t length = 0;
	ssize_t got = 1;

	while (got > 0 && length < most) {
		got = read(fd, text + length, most - length);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			length += (size_t)got;
	}
	if (length == most)
		errno = EFBIG;
	return got < 0 || length == most ? -1 : (ssize_t)length;
}

static int refuse_by_errno(const struct reading *reading)
{
	int error = errno;

	refuse(reading, "%s", strerror(error));
	errno = error;
	return FS_ESYS;
}

static int read_open_file(const struct reading *reading, int fd, struct clf_model *model, struct model_terms *terms)
{
	struct stat file;
	ssize_t length;
	char *text;
	int code;

	if (fstat(fd, &file) != 0)
		return refuse_by_errno(reading);
	if (!S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode)) /* read() has the word for a folder */
		return refuse(reading, "it is not a regular file");
	text = mem_alloc(MODEL_FILE_BYTES_MAX);
	if (!text) {
		refuse(reading, "%s", fs_strerror(FS_ENOMEM));
		return FS_ENOMEM;
	}
	length = read_text(fd, text, MODEL_FILE_BYTES_MAX);
	code = length < 0 ? refuse_by_errno(reading) : parse(reading, text, (size_t)length, model, terms);
	mem_free(text);
	return code;
}

int model_read(const char *path, struct clf_model *model, struct model_terms *terms, char reason[256])
{
	const struct reading reading = { path, reason };
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), code, error; /* a pipe would wait for its writer */

	if (fd < 0)
		return refuse_by_errno(&reading);
	code = read_open_file(&reading, fd, model, terms);
	error = errno;
	close(fd);
	errno = error;
	return code;
}
