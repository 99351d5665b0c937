/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The score of an object, by the model in use or by a simple rule, less the write budget's threshold.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/metrics/counters.h"
#include "classifier/classifier_internal.h"

/*
 * The budget controller: proportional-integral, on the smoothed written / allowed less one.
 *
 * Segments come in bursts, possibly hours apart, so the rate is smoothed over two periods of the largest recent burst.
 * The error is linear in the rate: the mean error is zero exactly if the mean rate is the allowed one. (A controller on
 * the logarithm would let too much pass: the mean logarithm of a rate that is mostly zero is far below the logarithm of
 * its mean.)
 *
 * Decision values have a spread of about one, ranks (below) of a few. The integral moves 0.3 per
 * smoothing time and unit of error, slow enough not to swing behind the smoothing's delay.
 */
#define SMOOTHING_MIN_S 30.0
#define SMOOTHING_MAX_S 7200.0
#define BURST_FORGET_S 14400.0
#define BUDGET_PROPORTIONAL 0.1
#define BUDGET_INTEGRAL 0.3 /* per smoothing time */
#define BUDGET_ERROR_MAX 3.0
#define BUDGET_STEP_MAX_S 60.0 /* a late call doesn't count for more */
#define THRESHOLD_MAX 20.0 /* above every rank */
#define THRESHOLD_STEP 0.005 /* smaller moves are not worth new scores */

#define HELD_UP 1.25 /* a segment that the store's cap held back counts as so many times the limit */

#define RANK_SCALE 64.0 /* ranks stay below it */

/* A thread's copy of the model. One suffices, as a process that serves has one classifier. */
static _Thread_local struct {
	uint64_t clf_id;
	uint64_t version;
	bool valid;
	struct clf_model model;
} cached;

const struct clf_model *clf_model_now(struct clf *clf)
{
	uint64_t version = atomic_load_explicit(&clf->model_version, memory_order_acquire);

	if (cached.clf_id != clf->id || cached.version != version) {
		lock_acquire(&clf->model_lock);
		cached.version = atomic_load(&clf->model_version);
		cached.valid = clf->common.valid;
		cached.model = clf->common.model;
		lock_release(&clf->model_lock);
		cached.clf_id = clf->id;
	}
	return cached.valid ? &cached.model : NULL;
}

/*
 * Rank under the simple rules: by reads, among equals by the mean gap. Unread objects are all alike; their keys spread
 * them over [0, 1), so that the budget has a scale to move on and a key's rank is the same at each call.
 */
static double rank_of(uint64_t key, const struct clf_features *features)
{
	double vector[CLF_FEATURES];

	if (features->reads.count == 0)
		return (double)(mix64(key) >> 11) * 0x1.0p-53;
	clf_features_vector(features, vector);
	return log2(1 + vector[CLF_READS]) + 0.5 / (1 + vector[CLF_MEAN_GAP] / 60);
}

static double rule_score(const struct clf *clf, bool qualifies, uint64_t key, const struct clf_features *features)
{
	double rank = rank_of(key, features);

	return (qualifies && rank >= budget_threshold(clf) ? 1 : -1) + rank / RANK_SCALE;
}

/* In mode paper: an object that was never read doesn't qualify. */
static double svm_score(struct clf *clf, uint64_t key, const struct clf_features *features)
{
	const struct clf_model *model = clf_model_now(clf);

	if (!model)
		return rule_score(clf, features->reads.count > 0, key, features);
	if (features->reads.count == 0)
		return -1;
	const struct clf_state state = { .features = *features };
	return model_decide(model, &state) - budget_threshold(clf);
}

float clf_score(struct clf *clf, uint64_t hash, const struct clf_features *features)
{
	uint64_t key = sampler_key(&clf->sampler, hash);
	double score = 0;

	switch (clf_get_admission(clf)) {
	case CLF_ADMIT_SVM:
		score = svm_score(clf, key, features);
		break;
	case CLF_ADMIT_READ_ONCE:
		score = rule_score(clf, features->reads.count > 0, key, features);
		break;
	case CLF_ADMIT_READ_OR_SECOND_HIT:
		score = rule_score(clf, features->reads.count > 0 || features->past > 0, key, features);
		break;
	case CLF_ADMIT_SECOND_HIT:
		score = rule_score(clf, features->past > 0, key, features);
		break;
	case CLF_ADMIT_FREQ:
	case CLF_ADMIT_ALL:
		score = rule_score(clf, true, key, features);
		break;
	}
	ctr_add(CTR_objects_scored, 1);
	if (score >= 0)
		ctr_add(CTR_objects_admitted, 1);
	return (float)score;
}

/* ---- write budget ---------------------------------------------------------------------------- */

double budget_threshold(const struct clf *clf)
{
	uint32_t bits = atomic_load_explicit(&clf->budget.threshold_bits, memory_order_relaxed);
	float threshold;

	memcpy(&threshold, &bits, sizeof(threshold));
	return (double)threshold;
}

static void set_threshold(struct clf *clf, double threshold)
{
	double present = budget_threshold(clf);
	float value = (float)threshold;
	uint32_t bits;

	must(threshold >= 0 && threshold <= THRESHOLD_MAX);
	if (fabs(threshold - present) < THRESHOLD_STEP && (threshold > 0 || present <= 0))
		return;
	memcpy(&bits, &value, sizeof(bits));
	atomic_store_explicit(&clf->budget.threshold_bits, bits, memory_order_relaxed);
	atomic_fetch_add(&clf->version, 1);
}

static double clamp_double(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* Smooths the rate with what was written during step_s seconds. Returns the smoothing time in seconds. */
static double smooth_rate(struct budget *budget, double written, double allowed, double step_s)
{
	double kept = budget->largest_burst * (1 - clamp_double(step_s / BURST_FORGET_S, 0, 1));

	budget->largest_burst = fmax(kept, written * step_s);
	double time_s = clamp_double(2 * budget->largest_burst / allowed, SMOOTHING_MIN_S, SMOOTHING_MAX_S);
	budget->rate += (written - budget->rate) * step_s / (time_s + step_s);
	return time_s;
}

static void budget_move(struct clf *clf, double written_per_second, double allowed_per_second, uint64_t now_ms)
{
	struct budget *budget = &clf->budget;
	double step_s = 1;

	lock_acquire(&budget->lock);
	if (budget->updated_ms)
		step_s = clamp_double((double)(now_ms - budget->updated_ms) / 1000, 0, BUDGET_STEP_MAX_S);
	budget->updated_ms = now_ms;
	if (allowed_per_second <= 0) {
		budget->integral = budget->rate = budget->largest_burst = 0;
		set_threshold(clf, 0);
	} else {
		double time_s = smooth_rate(budget, written_per_second, allowed_per_second, step_s);
		double error = clamp_double(budget->rate / allowed_per_second - 1, -1, BUDGET_ERROR_MAX);
		double change = BUDGET_INTEGRAL * error * step_s / time_s;
		/* The integral stays within the threshold's range, so that it does not wind up at either end. */
		budget->integral = clamp_double(budget->integral + change, 0, THRESHOLD_MAX);
		set_threshold(clf, clamp_double(budget->integral + BUDGET_PROPORTIONAL * error, 0, THRESHOLD_MAX));
	}
	lock_release(&budget->lock);
}

/* The lesser of the two limits, in bytes; negative: neither is set. */
static double allowed_bytes(const struct clf_written *written)
{
	bool by_limit_alone = written->filling && written->limit > 0;
	double by_time = written->limit > 0 ? written->limit * written->seconds : HUGE_VAL;
	double by_ratio =
		written->ratio > 0 && !by_limit_alone ? written->ratio * (double)written->app_bytes : HUGE_VAL;
	double allowed = fmin(by_time, by_ratio);

	return allowed == HUGE_VAL ? -1 : allowed;
}

/* Where the store's own cap held a segment back, more would have been written than was. Only the controller of the rule
   in force moves; the other one begins anew. While nothing can be written, nothing is learned of the budget. */
void clf_budget(struct clf *clf, const struct clf_written *written)
{
	double rate = written->seconds > 0 ? (double)written->flash_bytes / written->seconds : 0;
	bool asks = clf_asks_at_eviction(clf);

	if (written->held_up)
		rate = fmax(rate, written->limit * HELD_UP);
	counts_age(&clf->counts, written->seconds * 1000 / clf_half_life_ms(clf));
	if (!written->offline)
		offers_budget(&clf->offers, &(struct offers_spent){ .ms = written->seconds * 1000,
								    .app_bytes = (double)written->app_bytes,
								    .written_bytes = (double)written->flash_bytes,
								    .allowed_bytes = asks ? allowed_bytes(written) : -1,
								    .held_up = written->held_up,
								    .free = written->filling && written->limit <= 0 });
	budget_move(clf, rate, asks ? 0 : written->limit, clk_now_ms(clf->config.clock));
}
