/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classifier as a whole: creation, the events of keys on their way to sampler and counts, and the status.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/resident.h"
#include "classifier/classifier_internal.h"

#define MEMORY_MIN (64u << 10)
#define SAMPLER_BYTES_MAX (4u << 20) /* about 25 000 keys and 37 000 samples; more would not improve the model */
#define TIME_MAX_MS (1ull << 40) /* 35 years: sums of times never overflow */
#define HORIZON_PART 4 /* of the residence on flash: one as long as that would learn too late */
#define PAPER_HORIZON_MS 3600000ull

static bool config_valid(const struct clf_config *config)
{
	return config->clock && config->threshold >= 1 && config->memory_bytes >= MEMORY_MIN &&
	       config->training_window_ms > 0 && config->training_window_ms <= TIME_MAX_MS &&
	       config->horizon_ms <= TIME_MAX_MS && (unsigned)config->label_mode <= CLF_LABEL_PAPER &&
	       (unsigned)config->admission <= CLF_ADMIT_LAST && config->size_exponent >= 0 &&
	       config->size_exponent <= 2;
}

static void init_parts(struct clf *clf)
{
	static _Atomic uint64_t next_id = 1;

	clf->id = atomic_fetch_add(&next_id, 1);
	clf->start_ms = clk_now_ms(clf->config.clock);
	atomic_init(&clf->admission, (int)clf->config.admission);
	atomic_init(&clf->version, 1);
	atomic_init(&clf->model_version, 1);
	snprintf(clf->reason, sizeof(clf->reason), "%s",
		 clf->config.label_mode == CLF_LABEL_FULL ? "no model yet: freq admits"
							  : "no model yet: what was read in DRAM is admitted");
	lock_init(&clf->apps.lock, LOCK_LEAF);
	lock_init(&clf->budget.lock, LOCK_LEAF);
	lock_init(&clf->model_lock, LOCK_LEAF);
	offers_init(&clf->offers, clf->config.flash_bytes);
	trainer_init(clf);
}

int clf_create(struct clf **out, const struct clf_config *config)
{
	if (!config_valid(config))
		return FS_EINVAL;
	struct clf *clf = mem_zaligned(64, sizeof(*clf));
	if (!clf)
		return FS_ENOMEM;
	clf->config = *config;
	init_parts(clf);

	struct sampler_config sampler = {
		.seed = mix64(config->seed + 1),
		.start_ms = clf->start_ms,
		.window_ms = config->training_window_ms,
		.mode = config->label_mode,
		.memory_bytes = config->memory_bytes / 2,
	};
	if (sampler.memory_bytes > SAMPLER_BYTES_MAX)
		sampler.memory_bytes = SAMPLER_BYTES_MAX;
	int error = sampler_init(&clf->sampler, &sampler);
	if (!error)
		error = counts_init(&clf->counts, config->counts_bytes ? config->counts_bytes
								       : config->memory_bytes - sampler.memory_bytes);
	if (error) {
		clf_destroy(clf);
		return error;
	}
	*out = clf;
	return FS_OK;
}

void clf_destroy(struct clf *clf)
{
	if (!clf)
		return;
	clf_stop(clf);
	counts_fini(&clf->counts);
	sampler_fini(&clf->sampler);
	trainer_fini(clf);
	mem_free(clf->save_path);
	lock_fini(&clf->model_lock);
	lock_fini(&clf->budget.lock);
	offers_fini(&clf->offers);
	lock_fini(&clf->apps.lock);
	mem_free(clf);
}

/*
 * Until the residence on flash is known, samples get the classifier's age as their horizon, and at least the training
 * window: the accesses seen so far tell about no longer time than that.
 */
uint64_t clf_horizon_ms(const struct clf *clf, uint64_t now_ms)
{
	uint64_t residence_ms = atomic_load_explicit(&clf->residence_ms, memory_order_relaxed);
	uint64_t age_ms = now_ms > clf->start_ms ? now_ms - clf->start_ms : 0;

	if (clf->config.horizon_ms)
		return clf->config.horizon_ms;
	if (clf->config.label_mode == CLF_LABEL_PAPER)
		return PAPER_HORIZON_MS;
	if (residence_ms)
		return residence_ms / HORIZON_PART + 1;
	return age_ms > clf->config.training_window_ms ? age_ms : clf->config.training_window_ms;
}

void clf_set_residence(struct clf *clf, uint64_t residence_ms)
{
	if (residence_ms > TIME_MAX_MS)
		residence_ms = TIME_MAX_MS;
	atomic_store_explicit(&clf->residence_ms, residence_ms, memory_order_relaxed);
}

void clf_set_admission(struct clf *clf, enum clf_admission admission)
{
	must((unsigned)admission <= CLF_ADMIT_LAST);
	if (atomic_exchange(&clf->admission, (int)admission) != (int)admission)
		atomic_fetch_add(&clf->version, 1);
}

bool clf_keeps_gaps(const struct clf *clf)
{
	return clf->config.label_mode == CLF_LABEL_PAPER;
}

enum clf_admission clf_get_admission(const struct clf *clf)
{
	return (enum clf_admission)atomic_load_explicit(&clf->admission, memory_order_relaxed);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool sampled(const struct clf *clf, uint64_t key)
{
	return clf_get_admission(clf) == CLF_ADMIT_SVM && sampler_wants(&clf->sampler, key);
}

static void note_event(struct clf *clf, uint64_t hash, enum sampler_event event, uint64_t now_ms)
{
	uint64_t key = sampler_key(&clf->sampler, hash);

	if (sampled(clf, key))
		sampler_note(&clf->sampler, key, event, NULL, now_ms, clf_horizon_ms(clf, now_ms));
}

/* Does the rule ask how often keys left the cache? */
static bool counts_stays(const struct clf *clf)
{
	enum clf_admission rule = clf_get_admission(clf);

	return rule == CLF_ADMIT_SECOND_HIT || rule == CLF_ADMIT_READ_OR_SECOND_HIT;
}

static uint8_t past_of(struct clf *clf, uint64_t key, const struct clf_features *old, uint64_t now_ms)
{
	if (clf_asks_at_eviction(clf) && old)
		return past_code(features_count(old, now_ms, clf_half_life_ms(clf)));
	return clf_asks_at_eviction(clf) || counts_stays(clf) ? past_code(counts_get(&clf->counts, key)) : 0;
}

void clf_note_made(struct clf *clf, uint64_t hash, const struct clf_features *old, uint8_t *past, uint64_t now_ms)
{
	*past = past_of(clf, sampler_key(&clf->sampler, hash), old, now_ms);
}

void clf_note_written(struct clf *clf, uint64_t hash, const struct clf_features *old, uint8_t *past, uint64_t now_ms)
{
	clf_note_made(clf, hash, old, past, now_ms);
	note_event(clf, hash, SAMPLER_WRITTEN, now_ms);
}

/* In mode paper each read in DRAM is a subject. */
void clf_note_read(struct clf *clf, uint64_t hash, const struct clf_features *features, uint64_t now_ms)
{
	uint64_t key = sampler_key(&clf->sampler, hash);
	bool is_subject = clf->config.label_mode == CLF_LABEL_PAPER;
	struct clf_state state;

	if (!sampled(clf, key))
		return;
	must(features || !is_subject);
	if (is_subject)
		state = (struct clf_state){ .features = *features };
	sampler_note(&clf->sampler, key, SAMPLER_READ, is_subject ? &state : NULL, now_ms, clf_horizon_ms(clf, now_ms));
}

void clf_note_read_on_flash(struct clf *clf, uint64_t hash, uint64_t now_ms)
{
	if (clf_asks_at_eviction(clf))
		counts_add(&clf->counts, sampler_key(&clf->sampler, hash), 1);
	note_event(clf, hash, SAMPLER_READ, now_ms);
}

void clf_note_missed(struct clf *clf, uint64_t hash, uint64_t now_ms)
{
	if (clf_asks_at_eviction(clf))
		counts_add(&clf->counts, sampler_key(&clf->sampler, hash), 1);
	note_event(clf, hash, SAMPLER_MISSED, now_ms);
}

void clf_note_deleted(struct clf *clf, uint64_t hash, const struct clf_features *features, uint64_t now_ms)
{
	if (counts_stays(clf))
		counts_set(&clf->counts, sampler_key(&clf->sampler, hash), 0);
	else if (features)
		clf_note_moved(clf, hash, features, now_ms);
	note_event(clf, hash, SAMPLER_DELETED, now_ms);
}

void clf_note_evicted(struct clf *clf, uint64_t hash, const struct clf_features *features, uint64_t now_ms)
{
	if (counts_stays(clf))
		counts_add(&clf->counts, sampler_key(&clf->sampler, hash), 1);
	else if (features)
		clf_note_moved(clf, hash, features, now_ms);
	note_event(clf, hash, SAMPLER_EVICTED, now_ms);
}

void clf_note_moved(struct clf *clf, uint64_t hash, const struct clf_features *features, uint64_t now_ms)
{
	if (clf_asks_at_eviction(clf))
		counts_set(&clf->counts, sampler_key(&clf->sampler, hash),
			   features_count(features, now_ms, clf_half_life_ms(clf)));
}

/* ---- state ----------------------------------------------------------------------------------- */

const char *clf_origin_word(enum clf_origin origin)
{
	static const char *const words[] = {
		[CLF_ORIGIN_NONE] = "none",         [CLF_ORIGIN_TRAINED] = "trained", [CLF_ORIGIN_SAVED] = "saved",
		[CLF_ORIGIN_IMPORTED] = "imported", [CLF_ORIGIN_PINNED] = "pinned",
	};

	must((unsigned)origin <= CLF_ORIGIN_PINNED);
	return words[origin];
}

void clf_publish(struct clf *clf, const struct clf_model *model, enum clf_origin origin,
		 const struct judgement *judgement)
{
	must((origin == CLF_ORIGIN_NONE) == !model);
	lock_acquire(&clf->model_lock);
	must(!model || model->samples > 0);
	clf->common.valid = model != NULL;
	clf->common.origin = origin;
	if (model)
		clf->common.model = *model;
	clf->judgement = *judgement;
	atomic_fetch_add_explicit(&clf->model_version, 1, memory_order_release);
	lock_release(&clf->model_lock);
	atomic_fetch_add(&clf->version, 1);
}

void clf_set_judgement(struct clf *clf, const struct judgement *judgement)
{
	lock_acquire(&clf->model_lock);
	clf->judgement = *judgement;
	lock_release(&clf->model_lock);
}

void clf_set_reason(struct clf *clf, const char *reason)
{
	lock_acquire(&clf->model_lock);
	snprintf(clf->reason, sizeof(clf->reason), "%s", reason);
	lock_release(&clf->model_lock);
}

uint64_t clf_version(const struct clf *clf)
{
	return atomic_load(&clf->version);
}

void clf_get_status(struct clf *clf, struct clf_status *out)
{
	uint64_t now_ms = clk_now_ms(clf->config.clock);
	const struct clf_model *model = &clf->common.model;
	const struct judgement *judgement = &clf->judgement;

	memset(out, 0, sizeof(*out));
	out->tracked_keys = out->samples_waiting = sampler_tracked(&clf->sampler);
	out->threshold = clf_asks_at_eviction(clf) ? (double)clf_threshold(clf) : budget_threshold(clf);
	out->horizon_ms = clf_horizon_ms(clf, now_ms);
	lock_acquire(&clf->model_lock);
	out->model_in_use = clf->common.valid;
	out->model_origin = clf->common.origin;
	out->judged = judgement->samples > 0;
	if (clf->common.valid) {
		out->model_age_ms = now_ms - model->trained_ms; /* also where that lies before the clock's zero */
		out->model_samples = model->samples;
		memcpy(out->weight, model->weight, sizeof(out->weight));
		out->bias = model->bias;
	}
	out->precision = judgement->model.precision;
	out->recall = judgement->model.recall;
	out->admitted_share = judgement->model.share;
	out->read_once_share = judgement->read_once.share;
	out->read_once_precision = judgement->read_once.precision;
	out->read_once_recall = judgement->read_once.recall;
	out->second_hit_share = judgement->second_hit.share;
	out->model_hits = judgement->model_hits;
	out->freq_hits = judgement->freq_hits;
	out->second_hit_hits = judgement->second_hit_hits;
	out->positive_share = clf->positive_share;
	snprintf(out->reason, sizeof(out->reason), "%s", clf->reason);
	lock_release(&clf->model_lock);
}

size_t clf_untouched_bytes(const struct clf *clf)
{
	return sampler_untouched(&clf->sampler) +
	       resident_untouched(clf->counts.bucket, clf->counts.buckets * sizeof(*clf->counts.bucket));
}

size_t clf_memory_bytes(const struct clf *clf)
{
	return sizeof(*clf) + sampler_bytes(&clf->sampler) + clf->counts.buckets * sizeof(*clf->counts.bucket);
}
