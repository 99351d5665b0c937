/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model: an L2-regularised linear SVM (liblinear) on log-scaled, standardised features.
 *
 * Counts, gaps and sizes span many powers of ten, and their ratios matter, so each goes through a logarithm first. An
 * object that was never read has no gaps: its gap features stand at their mean and so have no effect.
 *
 * This is the only file that knows liblinear. The primal solver is used because the dual one draws from rand(), which
 * threads share.
 */
#include <linear.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "classifier/classifier_internal.h"

#define SAMPLES_MIN 100 /* to train with and to hold out, together */
#define CLASS_MIN 10 /* of each label, to train with */
#define COST 1.0 /* liblinear's C, for thousands of samples with nine features */
#define TOLERANCE 0.01 /* liblinear's default for this solver */
#define BEYOND_OCTAVES 1 /* the most that worth goes beyond the steps */
#define ACCESSES_MOST 64 /* of a sample: a hot object doesn't decide alone */
#define ACCESSES_PRIOR 0.5 /* in each step, which may have none */
#define RECALL_LEAST 0.8 /* in mode paper, of the samples trained with */
#define COUNT_SCALE 4.0 /* so that parts of a count show in its logarithm */
#define TTL_NONE 31536000u /* an object without expiry counts as one of a year */

static void print_nothing(const char *text)
{
	(void)text;
}

static void silence_liblinear(void)
{
	set_print_string_function(print_nothing);
}

static bool is_gap(unsigned feature)
{
	return feature == CLF_MEAN_GAP || feature == CLF_LAST_GAP || feature == CLF_MAX_GAP || feature == CLF_FIRST_GAP;
}

/*
 * log2(1 + value), interpolated between the powers of two: the bits of a float, read as an integer, are nearly that.
 * The result is at most 0.09 off, which makes no difference to a linear model on such features.
 */
static double log_scale(double value)
{
	float one_more = (float)value + 1;
	uint32_t bits;

	memcpy(&bits, &one_more, sizeof(bits));
	return ((double)bits - 0x3f800000) * 0x1p-23;
}

void state_vector(const struct clf_state *state, double out[CLF_FEATURES])
{
	clf_features_vector(&state->features, out);
	out[CLF_COUNT] = (double)state->count;
	out[CLF_IDLE] = state->idle_ms / 1000.0;
	out[CLF_SIZE] = state->record_bytes;
	out[CLF_TTL] = state->ttl_seconds ? state->ttl_seconds : TTL_NONE;
}

static void log_scaled(const struct clf_state *state, double out[CLF_FEATURES])
{
	state_vector(state, out);
	out[CLF_COUNT] *= COUNT_SCALE;
	out[CLF_IDLE] = state->idle_ms;
	for (unsigned f = 0; f < CLF_FEATURES; f++)
		out[f] = log_scale(is_gap(f) ? out[f] * 1000 : out[f]);
}

static void standardised(const struct clf_model *model, const struct clf_state *state, double out[CLF_FEATURES])
{
	log_scaled(state, out);
	for (unsigned f = 0; f < CLF_FEATURES; f++) {
		if (is_gap(f) && state->features.reads.count == 0)
			out[f] = 0;
		else
			out[f] = (out[f] - model->mean[f]) * model->scale[f];
	}
}

double model_decide(const struct clf_model *model, const struct clf_state *state)
{
	double x[CLF_FEATURES], value = model->bias;

	standardised(model, state, x);
	for (unsigned f = 0; f < CLF_FEATURES; f++)
		value += model->weight[f] * x[f];
	return value;
}

double model_expect(const struct clf_model *model, const struct clf_state *state)
{
	double x = model_decide(model, state);
	unsigned i = 1;

	must(model->steps >= 2 && model->steps <= CLF_STEPS);
	while (i + 1 < model->steps && x > model->step_decision[i])
		i++;
	double low = model->step_decision[i - 1], high = model->step_decision[i];
	double part = high > low ? (x - low) / (high - low) : 0.5;

	double worth = model->step_worth[i - 1] + part * (model->step_worth[i] - model->step_worth[i - 1]);

	/* Beyond the first and the last step no sample tells more than that it is less, or more. */
	return fmin(fmax(worth, model->step_worth[0] - BEYOND_OCTAVES),
		    model->step_worth[model->steps - 1] + BEYOND_OCTAVES);
}

static void find_scales(struct clf_model *model, const struct clf_sample *samples, size_t count)
{
	double sum[CLF_FEATURES] = { 0 }, squares[CLF_FEATURES] = { 0 }, n[CLF_FEATURES] = { 0 };
	double x[CLF_FEATURES];

	for (size_t i = 0; i < count; i++) {
		if (sample_held_out(&samples[i]))
			continue;
		log_scaled(&samples[i].state, x);
		for (unsigned f = 0; f < CLF_FEATURES; f++) {
			if (is_gap(f) && samples[i].state.features.reads.count == 0)
				continue;
			n[f]++;
			sum[f] += x[f];
			squares[f] += x[f] * x[f];
		}
	}
	for (unsigned f = 0; f < CLF_FEATURES; f++) {
		double mean = n[f] > 0 ? sum[f] / n[f] : 0;
		double variance = n[f] > 0 ? squares[f] / n[f] - mean * mean : 0;
		model->mean[f] = mean;
		model->scale[f] = variance > 1e-9 * (1 + mean * mean) ? 1 / sqrt(variance) : 0;
	}
}

/* liblinear's problem: a row is a list of (index from 1, value) with the bias as one more feature and -1 as its end. */
struct rows {
	struct problem problem;
	struct feature_node (*node)[CLF_FEATURES + 2];
};

static void rows_fini(struct rows *rows)
{
	mem_free(rows->problem.y);
	mem_free(rows->problem.x);
	mem_free(rows->node);
}

/* After an error rows_fini is still to be called. */
static FS_MUST_CHECK int rows_init(struct rows *rows, const struct clf_model *model, const struct clf_sample *samples,
				   size_t count, uint32_t threshold)
{
	struct problem *problem = &rows->problem;

	memset(rows, 0, sizeof(*rows));
	problem->y = mem_alloc(count * sizeof(*problem->y));
	problem->x = mem_alloc(count * sizeof(struct feature_node *));
	rows->node = mem_alloc(count * sizeof(*rows->node));
	if (!problem->y || !problem->x || !rows->node)
		return FS_ENOMEM;
	problem->n = CLF_FEATURES + 1;
	problem->bias = 1;
	for (size_t i = 0; i < count; i++) {
		double x[CLF_FEATURES];
		struct feature_node *node = rows->node[problem->l];
		if (sample_held_out(&samples[i]))
			continue;
		standardised(model, &samples[i].state, x);
		for (int f = 0; f < CLF_FEATURES; f++)
			node[f] = (struct feature_node){ .index = f + 1, .value = x[f] };
		node[CLF_FEATURES] = (struct feature_node){ .index = CLF_FEATURES + 1, .value = 1 };
		node[CLF_FEATURES + 1].index = -1;
		problem->x[problem->l] = node;
		problem->y[problem->l++] = samples[i].reads >= threshold ? 1 : -1;
	}
	return FS_OK;
}

/* Counts the samples to train with by label. False with a reason if they are too few. */
static FS_MUST_CHECK bool samples_suffice(const struct clf_sample *samples, size_t count, uint32_t threshold,
					  size_t of[2], char reason[CLF_REASON_BYTES])
{
	of[0] = of[1] = 0;
	for (size_t i = 0; i < count; i++)
		if (!sample_held_out(&samples[i]))
			of[samples[i].reads >= threshold]++;
	if (count >= SAMPLES_MIN && of[0] >= CLASS_MIN && of[1] >= CLASS_MIN)
		return true;
	if (count < SAMPLES_MIN)
		snprintf(reason, CLF_REASON_BYTES, "%zu labelled samples, %d are needed", count, SAMPLES_MIN);
	else
		snprintf(reason, CLF_REASON_BYTES, "%zu flashy and %zu other samples, %d of each are needed", of[1],
			 of[0], CLASS_MIN);
	return false;
}

static void take_weights(struct clf_model *model, const struct model *trained)
{
	must(trained->nr_class == 2 && trained->nr_feature == CLF_FEATURES);
	for (int f = 0; f < CLF_FEATURES; f++)
		model->weight[f] = get_decfun_coef(trained, f + 1, 0);
	model->bias = get_decfun_bias(trained, 0);
	if (trained->label[0] == 1)
		return;
	for (int f = 0; f < CLF_FEATURES; f++) /* liblinear takes the class of the first row as the positive side */
		model->weight[f] = -model->weight[f];
	model->bias = -model->bias;
}

struct decided {
	double decision, accesses;
};

static int by_decision(const void *a, const void *b)
{
	double x = ((const struct decided *)a)->decision, y = ((const struct decided *)b)->decision;

	return (x > y) - (x < y);
}

/*
 * Moves the bias so that at least RECALL_LEAST of the flashy samples pass. Without class weights a linear SVM passes next
 * to none where they are a minority. The paper tells the precision of its models at a recall of 100 % (3.1, table 4).
 */
static int ensure_recall(struct clf_model *model, const struct clf_sample *samples, size_t count, uint32_t threshold)
{
	struct decided *decided = mem_alloc((count + 1) * sizeof(*decided));
	size_t n = 0;

	if (!decided)
		return FS_ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (!sample_held_out(&samples[i]) && samples[i].reads >= threshold)
			decided[n++].decision = model_decide(model, &samples[i].state);
	must(n > 0);
	qsort(decided, n, sizeof(*decided), by_decision);
	model->bias += fmax(0, -decided[(size_t)((1 - RECALL_LEAST) * (double)n)].decision);
	mem_free(decided);
	return FS_OK;
}

/* ---- what a decision value means -------------------------------------------------------------- */

/* Neighbouring steps that fall become equal (pool adjacent violators): a higher decision never means less. */
static void make_monotone(double value[], unsigned n)
{
	unsigned size[CLF_STEPS], blocks = 0;
	double mean[CLF_STEPS];

	for (unsigned i = 0; i < n; i++) {
		mean[blocks] = value[i];
		size[blocks++] = 1;
		for (; blocks > 1 && mean[blocks - 2] > mean[blocks - 1]; blocks--) {
			unsigned a = size[blocks - 2], b = size[blocks - 1];

			mean[blocks - 2] = (mean[blocks - 2] * a + mean[blocks - 1] * b) / (a + b);
			size[blocks - 2] = a + b;
		}
	}
	for (unsigned b = 0, i = 0; b < blocks; b++)
		for (unsigned j = 0; j < size[b]; j++)
			value[i++] = mean[b];
}

/*
 * Takes the samples by their decisions in steps of equally many, and the mean of the later accesses of each. A sum of
 * accesses over a sum of counts makes counts and accesses one unit, in which freq's worth is expressed too.
 */
static int calibrate(struct clf_model *model, const struct clf_sample *samples, size_t count)
{
	struct decided *decided = mem_alloc((count + 1) * sizeof(*decided));
	double accesses = 0, counts = 0;
	size_t n = 0;

	if (!decided)
		return FS_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (sample_held_out(&samples[i]))
			continue;
		decided[n].decision = model_decide(model, &samples[i].state);
		decided[n].accesses = fmin(samples[i].reads, ACCESSES_MOST);
		accesses += decided[n++].accesses;
		counts += exp2(worth_of_count((double)samples[i].state.count)); /* with its floor, as in freq's worth */
	}
	qsort(decided, n, sizeof(*decided), by_decision);
	model->steps = CLF_STEPS;
	must(n >= CLF_STEPS);
	for (unsigned s = 0; s < CLF_STEPS; s++) {
		size_t from = s * n / CLF_STEPS, to = (s + 1) * n / CLF_STEPS;
		double sum = 0;

		for (size_t i = from; i < to; i++)
			sum += decided[i].accesses;
		model->step_decision[s] = decided[(from + to) / 2].decision;
		model->step_worth[s] = (sum + ACCESSES_PRIOR) / (double)(to - from);
	}
	make_monotone(model->step_worth, CLF_STEPS);
	for (unsigned s = 0; s < CLF_STEPS; s++)
		model->step_worth[s] =
			log2(model->step_worth[s] * (counts > 0 ? counts : 1) / (accesses > 0 ? accesses : 1));
	mem_free(decided);
	return FS_OK;
}

int model_train(struct clf_model *model, const struct clf_sample *samples, size_t count, uint32_t threshold,
		enum clf_label_mode mode, char reason[CLF_REASON_BYTES])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int labels[2] = { -1, 1 };
	double weights[2] = { 1, 1 };
	size_t of[2];
	struct rows rows;

	pthread_once(&once, silence_liblinear);
	if (!samples_suffice(samples, count, threshold, of, reason))
		return FS_EFULL;
	for (unsigned c = 0; mode == CLF_LABEL_FULL && c < 2; c++)
		weights[c] = (double)(of[0] + of[1]) / (2 * (double)of[c]);
	memset(model, 0, sizeof(*model));
	model->samples = of[0] + of[1];
	find_scales(model, samples, count);

	int error = rows_init(&rows, model, samples, count, threshold);
	if (!error) {
		struct parameter parameter = {
			.solver_type = L2R_L2LOSS_SVC,
			.eps = TOLERANCE,
			.C = COST,
			.nr_weight = 2,
			.weight_label = labels,
			.weight = weights,
		};
		must((size_t)rows.problem.l == of[0] + of[1]);
		struct model *trained = train(&rows.problem, &parameter);
		take_weights(model, trained);
		free_and_destroy_model(&trained);
		if (mode == CLF_LABEL_PAPER)
			error = ensure_recall(model, samples, count, threshold);
		if (!error)
			error = calibrate(model, samples, count);
	}
	if (error)
		snprintf(reason, CLF_REASON_BYTES, "no memory to train");
	rows_fini(&rows);
	return error;
}
