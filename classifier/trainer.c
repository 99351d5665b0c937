/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The times at which models are trained, and the thread that trains them.
 *
 *   full    first when the first window and the horizon of its samples are over, then four times
 *           per window with the samples of the last few windows
 *   paper   each time that a window and a horizon are over, with the samples of the last few windows
 *
 * The thread wakes in real time; the classifier's clock decides if a training is due. Models that the guard accepts are
 * saved here, and those of files are put in use, as neither may happen during a training.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/events.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "base/thread.h"
#include "classifier/classifier_internal.h"

#define TRAININGS_PER_WINDOW 4
#define PAST_KEPT 4 /* times the sum of window and horizon; older samples are left out */
#define WAKE_MIN_MS 20u
#define WAKE_MAX_MS 1000u
#define NICENESS 19
#define SHARE_MOST 0.5 /* of the bytes: where all are admitted, a model is judged by the better half */

static uint64_t training_step_ms(const struct clf *clf, uint64_t now_ms)
{
	if (clf->config.label_mode == CLF_LABEL_PAPER)
		return clf->config.training_window_ms + clf_horizon_ms(clf, now_ms);
	uint64_t step = clf->config.training_window_ms / TRAININGS_PER_WINDOW;
	return step ? step : 1;
}

static void set_reason(struct clf *clf, const char *reason, double positive_share)
{
	clf_set_reason(clf, reason);
	lock_acquire(&clf->model_lock);
	clf->positive_share = positive_share;
	lock_release(&clf->model_lock);
}

static enum clf_origin copy_model_in_use(struct clf *clf, struct clf_model *out)
{
	lock_acquire(&clf->model_lock);
	enum clf_origin origin = clf->common.origin;
	*out = clf->common.model;
	lock_release(&clf->model_lock);
	return origin;
}

static void save_model(const struct clf *clf, const struct clf_model *model, uint64_t now_ms)
{
	const struct model_terms terms = { .mode = clf->config.label_mode,
					   .threshold = clf->config.threshold,
					   .horizon_ms = clf_horizon_ms(clf, now_ms),
					   .size_exponent = clf->config.size_exponent,
					   .trained_seconds = clk_wall_seconds() };

	if (!clf->save_path)
		return;
	int code = model_write(clf->save_path, model, &terms);
	if (code != FS_OK)
		log_warn("classifier: the model can't be saved: %s: %s", clf->save_path,
			 code == FS_ESYS ? strerror(errno) : fs_strerror(code));
}

static FS_MUST_CHECK int judge(struct clf *clf, const struct clf_model *model, const struct clf_sample *samples,
			       size_t count, struct judgement *out)
{
	return guard_judge(model, samples, count, clf->config.threshold, clf->config.size_exponent,
			   fmin(offers_share(&clf->offers), SHARE_MOST), out);
}

/* Gives up the model in use if it does not stand up to the newer samples either. */
static void judge_former(struct clf *clf, const struct clf_sample *samples, size_t count)
{
	char reason[CLF_REASON_BYTES];
	struct judgement judgement;
	struct clf_model model;

	if (copy_model_in_use(clf, &model) == CLF_ORIGIN_NONE)
		return;
	if (judge(clf, &model, samples, count, &judgement) != FS_OK)
		return;
	if (!guard_can_tell(&judgement) || guard_accepts(&judgement, reason))
		return;
	clf_publish(clf, NULL, CLF_ORIGIN_NONE, &judgement);
	log_info("classifier: the former model is given up too (%s)", reason);
}

static bool judge_new(struct clf *clf, struct clf_model *model, const struct clf_sample *samples, size_t count,
		      char reason[CLF_REASON_BYTES])
{
	struct judgement judgement;

	if (judge(clf, model, samples, count, &judgement) != FS_OK) {
		snprintf(reason, CLF_REASON_BYTES, "not used: no memory to judge it");
		return false;
	}
	bool accepted = guard_accepts(&judgement, reason);
	if (!accepted && clf->config.label_mode == CLF_LABEL_PAPER) {
		/* The paper has no guard, and this mode shows the paper's results. */
		snprintf(reason, CLF_REASON_BYTES, "in use (mode paper has no guard): admits %.1f%%, recall %.2f",
			 100 * judgement.model.share, judgement.model.recall);
		accepted = true;
	}
	if (accepted) {
		clf_publish(clf, model, CLF_ORIGIN_TRAINED, &judgement);
		save_model(clf, model, model->trained_ms);
	} else {
		ctr_add(CTR_models_rejected, 1);
		judge_former(clf, samples, count);
	}
	return accepted;
}

static double share_of_positives(const struct clf *clf, const struct clf_sample *samples, size_t count,
				 uint64_t *newest_ms)
{
	size_t positives = 0;

	*newest_ms = 0;
	for (size_t i = 0; i < count; i++) {
		positives += samples[i].reads >= clf->config.threshold;
		if (samples[i].complete_ms > *newest_ms)
			*newest_ms = samples[i].complete_ms;
	}
	return count ? (double)positives / (double)count : 0;
}

static bool train_with(struct clf *clf, const struct clf_sample *samples, size_t count, uint64_t now_ms)
{
	char reason[CLF_REASON_BYTES] = "";
	struct clf_model model;
	uint64_t newest_ms;
	bool used = false;
	double positive_share = share_of_positives(clf, samples, count, &newest_ms);

	if (count && newest_ms == clf->trained_newest_ms)
		return false; /* no new sample since the last training */
	if (model_train(&model, samples, count, clf->config.threshold, clf->config.label_mode, reason) == FS_OK) {
		model.trained_ms = now_ms;
		clf->trained_newest_ms = newest_ms;
		ctr_add(CTR_trainings, 1);
		used = judge_new(clf, &model, samples, count, reason);
	}
	set_reason(clf, reason, positive_share);
	if (events_on(EVENT_CLASSIFIER))
		events_emit(EVENT_CLASSIFIER, "type=model_trained samples=%zu flashy=%.4f used=%s reason=\"%s\"", count,
			    positive_share, used ? "yes" : "no", reason);
	log_event(used ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, used ? "model_trained" : "model_rejected",
		  LOG_FIELDS(LOG_NUMBER("SAMPLES", count), LOG_NUMBER("FLASHY_PERMILLE", 1000 * positive_share),
			     LOG_TEXT("REASON", reason)),
		  "classifier: %zu samples, %.1f%% flashy: %s", count, 100 * positive_share, reason);
	return used;
}

/* A pinned model stays whatever the guard finds; the operator is told. */
static void judge_pinned(struct clf *clf, const struct clf_model *model, const struct clf_sample *samples, size_t count)
{
	char verdict[CLF_REASON_BYTES], reason[CLF_REASON_BYTES];
	struct judgement judgement;
	uint64_t newest_ms;
	double positive_share = share_of_positives(clf, samples, count, &newest_ms);

	if (count == 0 || newest_ms == clf->trained_newest_ms || judge(clf, model, samples, count, &judgement) != FS_OK)
		return;
	clf->trained_newest_ms = newest_ms;
	bool loses = !guard_accepts(&judgement, verdict) && guard_can_tell(&judgement);
	snprintf(reason, sizeof(reason), "pinned; else %.80s", verdict);
	clf_set_judgement(clf, &judgement);
	set_reason(clf, reason, positive_share);
	log_line(loses ? LOG_LEVEL_NOTICE : LOG_LEVEL_DEBUG, "classifier: %zu samples: %s", count, reason);
}

/* training_lock is held. */
static bool train_at(struct clf *clf, uint64_t now_ms)
{
	uint64_t past_ms = PAST_KEPT * (clf->config.training_window_ms + clf_horizon_ms(clf, now_ms));
	struct clf_sample *samples = NULL;
	struct clf_model in_use;
	bool used = false;

	lock_assert_held(&clf->training_lock);
	sampler_sweep(&clf->sampler, now_ms);
	long count = sampler_collect(&clf->sampler, now_ms > past_ms ? now_ms - past_ms : 0, &samples);
	if (count < 0)
		set_reason(clf, fs_strerror((int)count), 0);
	else if (copy_model_in_use(clf, &in_use) == CLF_ORIGIN_PINNED)
		judge_pinned(clf, &in_use, samples, (size_t)count);
	else
		used = train_with(clf, samples, (size_t)count, now_ms);
	mem_free(samples);
	return used;
}

bool clf_train_now(struct clf *clf)
{
	lock_acquire(&clf->training_lock);
	bool used = train_at(clf, clk_now_ms(clf->config.clock));
	lock_release(&clf->training_lock);
	return used;
}

bool clf_train_if_due(struct clf *clf)
{
	bool used = false;

	if (clf_get_admission(clf) != CLF_ADMIT_SVM)
		return false;
	lock_acquire(&clf->training_lock);
	uint64_t now_ms = clk_now_ms(clf->config.clock);
	if (now_ms >= clf->next_training_ms) {
		used = train_at(clf, now_ms);
		do
			clf->next_training_ms += training_step_ms(clf, now_ms);
		while (clf->next_training_ms <= now_ms);
		must(clf->next_training_ms > now_ms);
	}
	lock_release(&clf->training_lock);
	return used;
}

/* ---- models of files --------------------------------------------------------------------------- */

static void use_model(struct clf *clf, const char *path, struct clf_model *model, const struct model_terms *terms,
		      enum clf_origin origin)
{
	int64_t age_s = clk_wall_seconds() - terms->trained_seconds;
	const struct judgement none = { 0 };
	char reason[CLF_REASON_BYTES];

	/* The difference is right also if the clock was at less when the model was trained. */
	model->trained_ms = clk_now_ms(clf->config.clock) - (age_s > 0 ? (uint64_t)age_s * 1000 : 0);
	snprintf(reason, sizeof(reason), "in use: %s, and not judged yet", clf_origin_word(origin));
	clf_publish(clf, model, origin, &none);
	clf_set_reason(clf, reason);
	log_notice("classifier: the model of %s is in use (%s, %llu samples)", path, clf_origin_word(origin),
		   (unsigned long long)model->samples);
	if (terms->threshold != clf->config.threshold)
		log_notice("classifier: it was trained with --flashiness-threshold %u, not %u", terms->threshold,
			   clf->config.threshold);
}

/* A model of mode full from before objects there lost their gaps may have learned from them. */
static void forget_gaps(struct clf_model *model)
{
	static const enum clf_feature gaps[] = { CLF_LAST_GAP, CLF_MAX_GAP, CLF_FIRST_GAP };

	for (unsigned i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		model->weight[gaps[i]] = 0;
}

int clf_load_model(struct clf *clf, const char *path, enum clf_origin origin, char reason[256])
{
	struct model_terms terms;
	struct clf_model model;

	must(origin >= CLF_ORIGIN_SAVED && origin <= CLF_ORIGIN_PINNED);
	lock_acquire(&clf->training_lock);
	int code = model_read(path, &model, &terms, reason);
	if (code == FS_OK && terms.mode != clf->config.label_mode) {
		snprintf(reason, 256, "%.90s: \"label_mode\" is \"%s\", but --label-mode is \"%s\"", path,
			 clf_label_mode_word(terms.mode), clf_label_mode_word(clf->config.label_mode));
		code = FS_EINVAL;
	}
	if (code == FS_OK && terms.digest != clf->loaded_digest) {
		clf->loaded_digest = terms.digest;
		if (!clf_keeps_gaps(clf))
			forget_gaps(&model);
		use_model(clf, path, &model, &terms, origin);
	}
	lock_release(&clf->training_lock);
	return code;
}

int clf_save_models(struct clf *clf, const char *path)
{
	size_t bytes = strlen(path) + 1;

	must(!clf->save_path);
	clf->save_path = mem_alloc(bytes);
	if (!clf->save_path)
		return FS_ENOMEM;
	memcpy(clf->save_path, path, bytes);
	return FS_OK;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static struct timespec wake_time(const struct clf *clf)
{
	uint64_t wait_ms = clf->config.training_window_ms / 16;

	if (wait_ms < WAKE_MIN_MS)
		wait_ms = WAKE_MIN_MS;
	if (wait_ms > WAKE_MAX_MS)
		wait_ms = WAKE_MAX_MS;
	return clk_monotonic_after((unsigned)wait_ms);
}

static void *trainer_main(void *argument)
{
	struct clf *clf = argument;

	/* Linux gives each thread a niceness of its own. If it refuses, the trainer runs at the priority of the
	   others. */
	if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS) != 0)
		log_debug("classifier: the trainer keeps its priority: %s", strerror(errno));
	lock_acquire(&clf->thread_lock);
	while (!clf->stopping) {
		struct timespec at = wake_time(clf);
		/* Past its time or woken early: both are a wake. */
		(void)pthread_cond_timedwait(&clf->wake, &clf->thread_lock.mutex, &at);
		lock_release(&clf->thread_lock);
		(void)clf_train_if_due(clf); /* the status and the log tell what came of it */
		lock_acquire(&clf->thread_lock);
	}
	lock_release(&clf->thread_lock);
	return NULL;
}

int clf_start(struct clf *clf)
{
	must(!clf->running);
	clf->stopping = false;
	errno = thread_start(&clf->thread, trainer_main, clf);
	if (errno != 0)
		return FS_ESYS;
	clf->running = true;
	return FS_OK;
}

void clf_stop(struct clf *clf)
{
	if (!clf->running)
		return;
	lock_acquire(&clf->thread_lock);
	clf->stopping = true;
	pthread_cond_signal(&clf->wake);
	lock_release(&clf->thread_lock);
	must(pthread_join(clf->thread, NULL) == 0);
	clf->running = false;
}

void trainer_init(struct clf *clf)
{
	uint64_t first_ms = clf->start_ms + clf->config.training_window_ms;
	pthread_condattr_t monotonic;

	clf->next_training_ms = first_ms + clf_horizon_ms(clf, first_ms);
	lock_init(&clf->training_lock, LOCK_STATE);
	lock_init(&clf->thread_lock, LOCK_LEAF);
	must(pthread_condattr_init(&monotonic) == 0);
	must(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
	must(pthread_cond_init(&clf->wake, &monotonic) == 0);
	pthread_condattr_destroy(&monotonic);
}

void trainer_fini(struct clf *clf)
{
	must(!clf->running);
	pthread_cond_destroy(&clf->wake);
	lock_fini(&clf->thread_lock);
	lock_fini(&clf->training_lock);
}
