/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worth of an object on flash: how often it is asked for, by its aged count of accesses, for each byte that it
 * takes there. Sources: GreedyDual-Size-Frequency (Cherkasova, 1998) ranks so; ours ages by time, counts accesses from
 * before the present stay, misses and flash reads among them, and makes its threshold from a budget of bytes.
 */
#include <math.h>

#include "base/assert.h"
#include "base/metrics/counters.h"
#include "classifier/classifier_internal.h"

#define HALF_LIFE_TURNS 4.0 /* a turn: applications write as many bytes as the flash has */
#define HALF_LIFE_LEAST_MS 1000.0
#define HALF_LIFE_MOST_MS 0x1p40
#define COUNT_LEAST 0.25 /* of an object that was never asked for */
#define CLOCKS_APART_MS 60000u /* a time that lies ahead by less comes from another thread's clock */
#define PAST_STEPS 16.0 /* of an octave */
#define PAST_LEAST (-2.0) /* octaves: code 1 */

bool clf_asks_at_eviction(const struct clf *clf)
{
	enum clf_admission rule = clf_get_admission(clf);

	return rule == CLF_ADMIT_FREQ || (rule == CLF_ADMIT_SVM && clf->config.label_mode == CLF_LABEL_FULL);
}

/* By how much applications write, not by how much goes to flash: else a larger budget would shorten the memory. While
   that isn't known, counts are too young to age. */
double clf_half_life_ms(const struct clf *clf)
{
	double turn_ms = atomic_load_explicit(&clf->offers.turn_ms, memory_order_relaxed);

	return turn_ms > 0 ? fmax(turn_ms * HALF_LIFE_TURNS, HALF_LIFE_LEAST_MS) : HALF_LIFE_MOST_MS;
}

uint8_t past_code(double count)
{
	double code = count > 0 ? round((log2(count) - PAST_LEAST) * PAST_STEPS) + 1 : 0;

	return code < 1 ? 0 : code > 255 ? 255 : (uint8_t)code;
}

double past_count(uint8_t code)
{
	return code == 0 ? 0 : exp2((code - 1) / PAST_STEPS + PAST_LEAST);
}

static double ms_between(uint32_t then_ms, uint32_t now_ms)
{
	uint32_t ms = now_ms - then_ms;

	return ms > UINT32_MAX - CLOCKS_APART_MS ? 0 : ms;
}

/*
 * The aged count at now_ms: that of the time before this stay, and the reads since, taken as spread evenly from the
 * write to the last one.
 */
double features_count(const struct clf_features *features, uint64_t now_ms, double half_life_ms)
{
	double idle_ms = ms_between(features->accessed_ms, (uint32_t)now_ms);
	double life_ms =
		features->reads.count * clf_features_mean_gap_ms(features); /* from the write to the last read */
	double count = past_count(features->past) * exp2(-(life_ms + idle_ms) / half_life_ms);

	if (features->reads.count > 0) {
		double life = life_ms / half_life_ms * M_LN2;
		double spread = life > 0.01 ? (1 - exp(-life)) / life : 1;

		count += features->reads.count * spread * exp2(-idle_ms / half_life_ms);
	}
	return count;
}

double worth_of_count(double count)
{
	return log2(fmax(count, COUNT_LEAST));
}

struct clf_state clf_state_of(const struct clf *clf, const struct clf_object *object, uint64_t now_ms)
{
	const struct clf_features *features = object->features;
	struct clf_state state = { .features = *features };

	state.features.gaps = (struct clf_gaps){ 0 }; /* which are features of mode paper alone */
	state.count = (float)features_count(features, now_ms, clf_half_life_ms(clf));
	state.idle_ms = (uint32_t)ms_between(features->accessed_ms, (uint32_t)now_ms);
	state.record_bytes = object->record_bytes;
	state.ttl_seconds = object->ttl_seconds;
	return state;
}

/* By the model where one is in use, else by the count. */
static float worth_of(struct clf *clf, uint64_t key, const struct clf_state *state)
{
	const struct clf_model *model = clf_get_admission(clf) == CLF_ADMIT_SVM ? clf_model_now(clf) : NULL;
	double accesses = model ? model_expect(model, state) : worth_of_count((double)state->count);

	must(state->record_bytes > 0);
	return (float)(accesses - clf->config.size_exponent * log2(state->record_bytes)) + offers_tie(key);
}

float clf_worth(struct clf *clf, const struct clf_object *object, uint64_t now_ms)
{
	const struct clf_state state = clf_state_of(clf, object, now_ms);

	return worth_of(clf, sampler_key(&clf->sampler, object->hash), &state);
}

float clf_threshold(const struct clf *clf)
{
	return offers_threshold(&clf->offers);
}

bool clf_budget_binds(const struct clf *clf)
{
	return !offers_all_pass(&clf->offers);
}

bool clf_offer(struct clf *clf, const struct clf_object *object, uint64_t now_ms)
{
	uint64_t key = sampler_key(&clf->sampler, object->hash);
	const struct clf_state state = clf_state_of(clf, object, now_ms);
	bool admitted = offers_add(&clf->offers, worth_of(clf, key, &state), object->record_bytes);

	ctr_add(CTR_objects_scored, 1);
	if (admitted)
		ctr_add(CTR_objects_admitted, 1);
	if (clf_get_admission(clf) == CLF_ADMIT_SVM && sampler_wants(&clf->sampler, key))
		sampler_note(&clf->sampler, key, SAMPLER_OFFERED, &state, now_ms, clf_horizon_ms(clf, now_ms));
	return admitted;
}

void clf_features_again(struct clf *clf, uint64_t hash, bool was_read, uint64_t now_ms, struct clf_features *out)
{
	clf_features_written(out, now_ms);
	out->reads.stay = was_read ? CLF_STAY_READ_AGAIN : CLF_STAY_AGAIN;
	out->past = past_code(counts_get(&clf->counts, sampler_key(&clf->sampler, hash)));
}
