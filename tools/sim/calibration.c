/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/calibration.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"

#define TENTHS 10
#define ACCESSES_MOST 64 /* of a sample, as in training */
#define FEATURE_ROWS 12
#define OFTEN 10 /* figure 4 of the paper: read more often than this */

static const char *const feature_names[CLF_FEATURES] = {
	[CLF_READS] = "reads",     [CLF_MEAN_GAP] = "mean_gap",   [CLF_LAST_GAP] = "last_gap",
	[CLF_MAX_GAP] = "max_gap", [CLF_FIRST_GAP] = "first_gap", [CLF_COUNT] = "count",
	[CLF_IDLE] = "idle",       [CLF_SIZE] = "size",           [CLF_TTL] = "ttl",
};

/* A sample by the number that it is sorted by. */
struct ranked {
	double by, expected, accesses;
};

static double accesses_of(const struct clf_labelled *sample)
{
	return sample->accesses < ACCESSES_MOST ? sample->accesses : ACCESSES_MOST;
}

static int by_number(const void *a, const void *b)
{
	double x = ((const struct ranked *)a)->by, y = ((const struct ranked *)b)->by;

	return (x > y) - (x < y);
}

/* ---- calibration ----------------------------------------------------------------------------- */

/* Accesses for each unit of count, by the samples that are not held out; 0: there were none. */
static double accesses_per_count(const struct sample_set *set)
{
	double accesses = 0, counts = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (set->sample[i].held_out)
			continue;
		accesses += accesses_of(&set->sample[i]);
		counts += exp2(set->sample[i].by_count);
	}
	return counts > 0 ? accesses / counts : 0;
}

static json_t *tenth(const struct ranked *ranked, size_t count)
{
	double worth = 0, expected = 0, accesses = 0;

	for (size_t i = 0; i < count; i++) {
		worth += ranked[i].by;
		expected += ranked[i].expected;
		accesses += ranked[i].accesses;
	}
	return json_pack("{s:I, s:f, s:f, s:f}", "samples", (json_int_t)count, "worth", worth / (double)count,
			 "expected", expected / (double)count, "observed", accesses / (double)count);
}

static json_t *tenths(const struct sample_set *set, bool by_model, double unit, struct ranked *ranked)
{
	json_t *rows;
	size_t n = 0;

	for (size_t i = 0; i < set->count; i++) {
		const struct clf_labelled *sample = &set->sample[i];
		double expected = by_model ? sample->by_model : sample->by_count;

		if (sample->held_out && !isnan(expected))
			ranked[n++] = (struct ranked){ expected - sample->size_octaves, exp2(expected) * unit,
						       accesses_of(sample) };
	}
	if (n < TENTHS)
		return json_null();
	qsort(ranked, n, sizeof(*ranked), by_number);
	rows = json_array();
	for (size_t t = 0; t < TENTHS; t++)
		json_array_append_new(rows, tenth(ranked + t * n / TENTHS, (t + 1) * n / TENTHS - t * n / TENTHS));
	return rows;
}

json_t *calibration_json(const struct sample_set *set)
{
	double unit = accesses_per_count(set);
	struct ranked *ranked;
	size_t held_out = 0;
	json_t *out;

	for (size_t i = 0; i < set->count; i++)
		held_out += set->sample[i].held_out;
	if (held_out < TENTHS || unit <= 0)
		return json_null();
	ranked = mem_must_zalloc(set->count * sizeof(*ranked));
	out = json_pack("{s:I, s:o, s:o}", "samples", (json_int_t)held_out, "model", tenths(set, true, unit, ranked),
			"count", tenths(set, false, unit, ranked));
	mem_free(ranked);
	return out;
}

/* ---- features -------------------------------------------------------------------------------- */

static bool is_gap(unsigned feature)
{
	return feature == CLF_MEAN_GAP || feature == CLF_LAST_GAP || feature == CLF_MAX_GAP || feature == CLF_FIRST_GAP;
}

static json_t *feature_row(const struct ranked *ranked, size_t count)
{
	double accesses = 0;
	size_t read = 0, often = 0;

	for (size_t i = 0; i < count; i++) {
		accesses += fmin(ranked[i].accesses, ACCESSES_MOST);
		read += ranked[i].accesses > 0;
		often += ranked[i].accesses > OFTEN;
	}
	return json_pack("{s:I, s:f, s:f, s:f, s:f}", "samples", (json_int_t)count, "value", ranked[count / 2].by,
			 "accesses", accesses / (double)count, "read", (double)read / (double)count, "read_often",
			 (double)often / (double)count);
}

/* Equal values share a row. */
static json_t *feature_rows(const struct sample_set *set, unsigned feature, struct ranked *ranked)
{
	json_t *rows = json_array();
	size_t n = 0, from = 0;

	for (size_t i = 0; i < set->count; i++)
		if (!is_gap(feature) || set->sample[i].feature[CLF_READS] > 0)
			ranked[n++] = (struct ranked){ set->sample[i].feature[feature], 0, set->sample[i].accesses };
	qsort(ranked, n, sizeof(*ranked), by_number);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && ((i - from) * FEATURE_ROWS < n || ranked[i].by <= ranked[i - 1].by))
			continue;
		json_array_append_new(rows, feature_row(ranked + from, i - from));
		from = i;
	}
	return rows;
}

json_t *features_json(const struct sample_set *set)
{
	struct ranked *ranked;
	json_t *out;

	if (set->count == 0)
		return json_null();
	ranked = mem_must_zalloc(set->count * sizeof(*ranked));
	out = json_array();
	for (unsigned feature = 0; feature < CLF_FEATURES; feature++)
		json_array_append_new(out, json_pack("{s:s, s:o}", "feature", feature_names[feature], "rows",
						     feature_rows(set, feature, ranked)));
	mem_free(ranked);
	return out;
}
