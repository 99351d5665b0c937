/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a model better than no model? It is judged on samples that it was not trained with, beside two simple rules:
 *
 *   freq        the aged count of accesses for each byte, which is what is used without a model
 *   second-hit  objects whose key was asked for before this stay, and of those whose segment is reclaimed the ones that
 *               were read on flash; of any size
 *
 * Each chooses as many bytes as are admitted at present, its best objects first. What counts is how many later accesses
 * go to them. A model that gets fewer than one of the rules is not used.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "classifier/classifier_internal.h"

#define POSITIVES_MIN 5 /* held-out flashy samples; fewer tell nothing */
#define HITS_COUNTED 8 /* per object, so that one hot object doesn't decide */
#define ACCESSES_COUNTED 64 /* the same, where bytes are compared too */

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

/* ---- at equal bytes ---------------------------------------------------------------------------- */

struct ranked {
	double worth, bytes, accesses;
};

static int by_worth(const void *a, const void *b)
{
	double x = ((const struct ranked *)a)->worth, y = ((const struct ranked *)b)->worth;

	return (x < y) - (x > y);
}

/* The share of all accesses that go to the best objects, of so many bytes. */
static double accesses_of_best(struct ranked *ranked, size_t count, double bytes)
{
	double chosen = 0, all = 0;

	qsort(ranked, count, sizeof(*ranked), by_worth);
	for (size_t i = 0; i < count; i++) {
		all += ranked[i].accesses;
		if (bytes >= ranked[i].bytes)
			chosen += ranked[i].accesses;
		else if (bytes > 0)
			chosen += ranked[i].accesses * bytes / ranked[i].bytes;
		bytes -= ranked[i].bytes;
	}
	return all > 0 ? chosen / all : 0;
}

enum ranking { RANK_MODEL, RANK_FREQ, RANK_SECOND_HIT };

/* The miss before a write is a part of the past, and no history: that begins with more than one access. */
static bool second_hit_takes(const struct clf_state *state)
{
	if (state->features.reads.stay != CLF_STAY_WRITTEN)
		return state->features.reads.stay == CLF_STAY_READ_AGAIN;
	return state->features.past > past_code(1);
}

static double rank_sample(const struct clf_model *model, const struct clf_sample *sample, enum ranking ranking,
			  double exponent)
{
	const struct clf_state *state = &sample->state;
	double size = exponent * log2(state->record_bytes > 0 ? state->record_bytes : 1);

	switch (ranking) {
	case RANK_MODEL:
		return model_expect(model, state) - size + (double)offers_tie(sample->key);
	case RANK_FREQ:
		return worth_of_count((double)state->count) - size + (double)offers_tie(sample->key);
	case RANK_SECOND_HIT:
		break;
	}
	return (second_hit_takes(state) ? 1 : 0) + (double)offers_tie(sample->key);
}

static double judge_ranking(const struct clf_model *model, const struct clf_sample *samples, size_t count,
			    enum ranking ranking, double exponent, double bytes_share, struct ranked *ranked)
{
	double bytes = 0;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (!sample_held_out(&samples[i]))
			continue;
		ranked[n] = (struct ranked){ .worth = rank_sample(model, &samples[i], ranking, exponent),
					     .bytes = samples[i].state.record_bytes,
					     .accesses = fmin(samples[i].reads, ACCESSES_COUNTED) };
		bytes += ranked[n++].bytes;
	}
	return accesses_of_best(ranked, n, bytes * bytes_share);
}

static int judge_at_equal_bytes(const struct clf_model *model, const struct clf_sample *samples, size_t count,
				double exponent, struct judgement *out)
{
	struct ranked *ranked = mem_alloc((count + 1) * sizeof(*ranked));

	if (!ranked)
		return FS_ENOMEM;
	out->model_hits = judge_ranking(model, samples, count, RANK_MODEL, exponent, out->bytes_share, ranked);
	out->freq_hits = judge_ranking(model, samples, count, RANK_FREQ, exponent, out->bytes_share, ranked);
	out->second_hit_hits =
		judge_ranking(model, samples, count, RANK_SECOND_HIT, exponent, out->bytes_share, ranked);
	mem_free(ranked);
	return FS_OK;
}

int guard_judge(const struct clf_model *model, const struct clf_sample *samples, size_t count, uint32_t threshold,
		double exponent, double bytes_share, struct judgement *out)
{
	struct tally by_model = { 0 }, by_read = { 0 }, by_history = { 0 }, all = { 0 };

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < count; i++) {
		const struct clf_sample *sample = &samples[i];
		bool flashy = sample->reads >= threshold;
		double hits = sample->reads < HITS_COUNTED ? sample->reads : HITS_COUNTED;
		if (!sample_held_out(sample))
			continue;
		tally_add(&by_model, model_decide(model, &sample->state) >= 0, flashy, hits);
		tally_add(&by_read, sample->state.features.reads.count > 0, flashy, hits);
		tally_add(&by_history, second_hit_takes(&sample->state), flashy, hits);
		tally_add(&all, true, flashy, hits);
	}
	out->samples = all.admitted;
	out->positives = all.flashy;
	out->model = choice_of(&by_model, &all);
	out->read_once = choice_of(&by_read, &all);
	out->second_hit = choice_of(&by_history, &all);
	out->bytes_share = bytes_share;
	return judge_at_equal_bytes(model, samples, count, exponent, out);
}

bool guard_can_tell(const struct judgement *judgement)
{
	return judgement->positives >= POSITIVES_MIN;
}

static bool loses_to(const struct judgement *judgement, double hits, const char *name, char reason[CLF_REASON_BYTES])
{
	if (judgement->model_hits >= hits)
		return false;
	snprintf(reason, CLF_REASON_BYTES, "not used: %.1f%% of the hits at %.0f%% of the bytes, %s has %.1f%%",
		 100 * judgement->model_hits, 100 * judgement->bytes_share, name, 100 * hits);
	return true;
}

bool guard_accepts(const struct judgement *judgement, char reason[CLF_REASON_BYTES])
{
	if (!guard_can_tell(judgement)) {
		snprintf(reason, CLF_REASON_BYTES, "not used: %zu flashy among %zu held-out samples",
			 judgement->positives, judgement->samples);
		return false;
	}
	if (loses_to(judgement, judgement->freq_hits, "freq", reason) ||
	    loses_to(judgement, judgement->second_hit_hits, "second-hit", reason))
		return false;
	snprintf(reason, CLF_REASON_BYTES, "in use: %.1f%% of the hits at %.0f%% of the bytes, freq has %.1f%%",
		 100 * judgement->model_hits, 100 * judgement->bytes_share, 100 * judgement->freq_hits);
	return true;
}
