/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a model better than no model? It is judged on samples that it was not trained with, next to the simple rules on
 * the same samples:
 *
 *   read-once   the object was read in DRAM
 *   second-hit  the object was read, or had an earlier stay. All samples qualify, for an object that has
 *               neither is never a sample (and neither rule nor model admits it).
 *
 * A rule is cheap and never far off. A model is of no use if it keeps most of the later hits from flash, or if it picks
 * fewer objects than the rule and no better ones. With little memory there are only some hundred samples to judge by,
 * so a model loses only if it is worse by more than twice the standard error: otherwise chance would put it in use and
 * out again.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "classifier/classifier_internal.h"

#define POSITIVES_MIN 5 /* held-out flashy samples; recall means nothing with fewer */
#define HITS_MIN_SHARE 0.5 /* of the hits that the better rule would bring */
#define PRECISION_SLACK 0.01 /* smaller differences of precision are noise */
#define HITS_COUNTED 8 /* per object, so that one hot object doesn't decide */

struct tally {
	size_t admitted, flashy;
	double hits;
};

static void tally_add(struct tally *tally, bool admitted, bool flashy, double hits)
{
	if (!admitted)
		return;
	tally->admitted++;
	tally->flashy += flashy;
	tally->hits += hits;
}

static struct choice choice_of(const struct tally *tally, const struct tally *all)
{
	struct choice choice = { 0 };

	must(tally->admitted <= all->admitted && tally->flashy <= tally->admitted);
	if (all->admitted)
		choice.share = (double)tally->admitted / (double)all->admitted;
	if (tally->admitted)
		choice.precision = (double)tally->flashy / (double)tally->admitted;
	if (all->flashy)
		choice.recall = (double)tally->flashy / (double)all->flashy;
	if (all->hits > 0)
		choice.hits = tally->hits / all->hits;
	return choice;
}

void guard_judge(const struct clf_model *model, const struct clf_sample *samples, size_t count, uint32_t threshold,
		 struct judgement *out)
{
	struct tally by_model = { 0 }, by_read = { 0 }, all = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct clf_sample *sample = &samples[i];
		bool flashy = sample->reads >= threshold;
		double hits = sample->reads < HITS_COUNTED ? sample->reads : HITS_COUNTED;
		if (!sample_held_out(sample))
			continue;
		tally_add(&by_model, model_decide(model, &sample->state) >= 0, flashy, hits);
		tally_add(&by_read, sample->state.features.reads > 0, flashy, hits);
		tally_add(&all, true, flashy, hits);
	}
	out->samples = all.admitted;
	out->positives = all.flashy;
	out->model = choice_of(&by_model, &all);
	out->read_once = choice_of(&by_read, &all);
	out->second_hit = choice_of(&all, &all);
}

/* Twice the standard error of a share p among n. */
static double noise(double p, double n)
{
	return n >= 1 ? 2 * sqrt(p * (1 - p) / n) : 1;
}

static double precision_noise(const struct choice *choice, size_t samples)
{
	return noise(choice->precision, choice->share * (double)samples);
}

static bool loses_to(const struct judgement *judgement, const struct choice *rule, const char *name,
		     char reason[CLF_REASON_BYTES])
{
	const struct choice *model = &judgement->model;
	double slack = fmax(PRECISION_SLACK, hypot(precision_noise(model, judgement->samples),
						   precision_noise(rule, judgement->samples)));

	if (model->hits + noise(model->hits, (double)judgement->positives) < HITS_MIN_SHARE * rule->hits) {
		snprintf(reason, CLF_REASON_BYTES, "not used: admits %.1f%% for %.0f%% of the hits, %s has %.0f%%",
			 100 * model->share, 100 * model->hits, name, 100 * rule->hits);
		return true;
	}
	if (model->recall < rule->recall && model->precision < rule->precision - slack) {
		snprintf(reason, CLF_REASON_BYTES, "not used: precision %.2f and recall %.2f, %s has %.2f and %.2f",
			 model->precision, model->recall, name, rule->precision, rule->recall);
		return true;
	}
	return false;
}

bool guard_can_tell(const struct judgement *judgement)
{
	return judgement->positives >= POSITIVES_MIN;
}

bool guard_accepts(const struct judgement *judgement, char reason[CLF_REASON_BYTES])
{
	const struct choice *model = &judgement->model;

	if (!guard_can_tell(judgement)) {
		snprintf(reason, CLF_REASON_BYTES, "not used: %zu flashy among %zu held-out samples",
			 judgement->positives, judgement->samples);
		return false;
	}
	if (loses_to(judgement, &judgement->read_once, "read-once", reason) ||
	    loses_to(judgement, &judgement->second_hit, "second-hit", reason))
		return false;
	snprintf(reason, CLF_REASON_BYTES, "in use: admits %.1f%%, precision %.2f, recall %.2f", 100 * model->share,
		 model->precision, model->recall);
	return true;
}
