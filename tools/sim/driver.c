/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays a trace against a policy, and counts. */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tools/common/schedule.h"
#include "tools/sim/future.h"
#include "tools/sim/sim.h"

#define POINTS_PER_SAMPLES 10 /* the engine keeps samples for longer */
#define UNKNOWN_BYTES 100 /* of a get whose size the trace doesn't know: the object is never filled */

struct play {
	const struct sim_run *run;
	struct sim_policy *policy;
	struct sim_result *result;
	struct sim_config config; /* the run's, and the driver's part */
	struct sim_counts total; /* warm-up included */
	struct future future; /* of policies that ask */
	uint32_t *sizes; /* by object: its value's and 1, or 0; of runs in which a changed size is an update */
	bool counting;
};

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void count_get(struct sim_counts *counts, uint64_t bytes, bool hit)
{
	counts->requests++;
	counts->gets++;
	counts->get_bytes += bytes;
	if (hit) {
		counts->hits++;
		counts->hit_bytes += bytes;
	}
}

static void count_set(struct sim_counts *counts, uint64_t bytes, bool filled)
{
	counts->sets++;
	counts->app_bytes_written += bytes;
	if (!filled)
		counts->requests++;
}

static void count_delete(struct sim_counts *counts)
{
	counts->requests++;
	counts->deletes++;
}

/* Calls count for the total, and after warm-up for all and for the application. */
#define COUNT(play, app, count, ...) \
	do { \
		count(&(play)->total, ##__VA_ARGS__); \
		if ((play)->counting) { \
			count(&(play)->result->all, ##__VA_ARGS__); \
			count(&(play)->result->apps[app], ##__VA_ARGS__); \
		} \
	} while (0)

static void play_set(struct play *play, const struct sim_access *access, bool filled)
{
	if (play->sizes)
		play->sizes[access->object] = access->value_bytes + 1;
	play->run->policy->set(play->policy, access, filled);
	COUNT(play, access->app, count_set, sim_object_bytes(&play->run->config.space, access), filled);
}

/* A get that finds another size than the trace's is a miss and a set of the new object. */
static bool play_update(struct play *play, const struct sim_access *access)
{
	uint64_t bytes = sim_object_bytes(&play->run->config.space, access);

	if (!play->sizes || !play->sizes[access->object] || play->sizes[access->object] == access->value_bytes + 1)
		return false;
	play->sizes[access->object] = access->value_bytes + 1;
	play->run->policy->set(play->policy, access, false);
	COUNT(play, access->app, count_get, bytes, false);
	COUNT(play, access->app, count_set, bytes, true);
	return true;
}

static void play_get(struct play *play, const struct sim_access *access, bool known)
{
	bool hit;

	if (known && play_update(play, access))
		return;
	hit = play->run->policy->get(play->policy, access);
	COUNT(play, access->app, count_get, sim_object_bytes(&play->run->config.space, access), hit);
	if (!hit && known)
		play_set(play, access, true);
}

static void play_request(struct play *play, const struct schedule_item *item)
{
	const struct spool_record *record = item->record;
	struct sim_access access = {
		.object = record->key * play->run->copies + item->copy,
		.app = (uint32_t)(record->time_app & 0xffff),
		.key_bytes = record->key_size ? record->key_size : 1,
		.value_bytes = record->value_size == SPOOL_UNKNOWN_SIZE ? UNKNOWN_BYTES : record->value_size,
		.time_us = (uint64_t)item->time_us,
		.number = item->number,
	};

	if (play->config.next_get)
		future_move(&play->future, access.object, access.number);
	switch ((enum trace_op)record->op) {
	case TRACE_GET:
		play_get(play, &access, record->value_size != SPOOL_UNKNOWN_SIZE);
		break;
	case TRACE_SET:
	case TRACE_ADD:
		if (play->config.space.sizes == SIM_SIZES_OF_SETS)
			play_set(play, &access, false);
		else
			play_get(play, &access, true);
		break;
	case TRACE_DELETE:
		play->run->policy->remove(play->policy, &access);
		COUNT(play, access.app, count_delete);
		break;
	default:
		break;
	}
}

/* Is the object in the sample? All of an object's requests are, or none. */
static bool is_played(const struct sim_run *run, const struct schedule_item *item)
{
	return run->sample <= 1 ||
	       reduce64(mix64(item->record->key * (uint64_t)run->copies + item->copy + 1), run->sample) == 0;
}

/* Without memory for them there are fewer. */
static void take_samples(struct play *play)
{
	struct clf_labelled *samples = NULL;
	long count = play->run->policy->samples(play->policy, &samples);

	if (count > 0)
		sample_set_add(&play->result->samples, samples, (size_t)count);
	mem_free(samples);
}

static void add_point(struct play *play, uint64_t time_us)
{
	struct sim_result *result = play->result;
	struct sim_figures figures;

	play->run->policy->figures(play->policy, &figures);
	if (result->points < SIM_SERIES)
		result->series[result->points++] =
			(struct sim_point){ time_us, play->total, figures.flash_bytes_written };
	if (play->counting && play->run->policy->samples && result->points % POINTS_PER_SAMPLES == 0)
		take_samples(play);
	if (play->run->progress)
		play->run->progress(play->run->progress_context, (double)result->points / SIM_SERIES);
}

static void play_all(struct play *play)
{
	const struct sim_run *run = play->run;
	uint64_t total = schedule_total(run->spool, run->copies, run->limit);
	uint64_t each = (total + SIM_SERIES - 1) / SIM_SERIES;
	struct schedule schedule;
	struct schedule_item item = { 0 };

	schedule_init(&schedule, run->spool, run->copies, run->limit);
	while (schedule_next(&schedule, &item)) {
		if (!play->counting && (uint64_t)item.time_us >= run->warmup_us) {
			play->counting = true;
			run->policy->figures(play->policy, &play->result->begin);
		}
		if (is_played(run, &item))
			play_request(play, &item);
		if (item.number % each == each - 1)
			add_point(play, (uint64_t)item.time_us);
	}
	if (total % each)
		add_point(play, (uint64_t)item.time_us);
	schedule_fini(&schedule);
}

int sim_play(const struct sim_run *run, struct sim_result *out, char reason[256])
{
	struct play play = { .run = run, .result = out };
	double began = cpu_seconds();
	int code;

	memset(out, 0, sizeof(*out));
	play.config = run->config;
	if (run->policy->needs_future) {
		future_init(&play.future, run);
		play.config.next_get = future_next_get;
		play.config.context = &play.future;
	}
	code = run->policy->create(&play.policy, &play.config, reason);
	if (code != FS_OK) {
		future_fini(&play.future);
		return code;
	}
	if (run->changed_is_update)
		play.sizes = mem_must_zalloc((run->config.objects + 1) * sizeof(*play.sizes));
	out->apps = mem_must_zalloc((run->spool->app_count + 1) * sizeof(*out->apps));
	play_all(&play);
	run->policy->figures(play.policy, &out->end);
	run->policy->destroy(play.policy);
	future_fini(&play.future);
	mem_free(play.sizes);
	out->cpu_seconds = cpu_seconds() - began;
	return FS_OK;
}
