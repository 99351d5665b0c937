/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the classifier share. The parts, from the bottom up:
 *
 *   sampler   one sample per key and its label      one leaf lock per stripe
 *   ghost     keys evicted lately (second-hit)      one leaf lock per group of buckets
 *   apps      key prefix -> application             lock-free reads, a leaf lock to add one
 *   model     vectors -> liblinear -> weights       pure functions
 *   guard     is a model better than simple rules   pure functions
 *   admission score of an object, write budget      model copied into a thread's cache
 *   trainer   when to train; the thread             one training at a time
 */
#ifndef FS_CLASSIFIER_CLASSIFIER_INTERNAL_H
#define FS_CLASSIFIER_CLASSIFIER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/rng.h"
#include "classifier/classifier.h"

/* ---- sampler --------------------------------------------------------------------------------- */

/* An object as it was at one moment: what a model sees of it. */
struct clf_state {
	struct clf_features features;
	uint32_t size_bytes;
	uint32_t ttl_seconds;
};

/* A sample whose horizon has passed. */
struct clf_sample {
	struct clf_state state;
	uint64_t key; /* mixed hash: equal keys fall on the same side of the held-out split */
	uint64_t complete_ms; /* end of the horizon */
	uint32_t reads; /* within the horizon, up to the end of counting */
};

enum sampler_event { SAMPLER_WRITTEN, SAMPLER_READ, SAMPLER_MISSED, SAMPLER_DELETED, SAMPLER_EVICTED };

struct sampler_config {
	uint64_t seed;
	uint64_t start_ms;
	uint64_t window_ms;
	enum clf_label_mode mode;
	size_t memory_bytes; /* of the tables; the stripes themselves come on top */
};

#define SAMPLER_STRIPES 8

struct sampler_entry;

struct sampler_stripe {
	struct lock lock; /* LOCK_LEAF; covers all below */
	struct rng rng;
	struct sampler_entry *entry; /* open addressing, linear probing */
	size_t used, used_most; /* now, and at most since the limit was last looked at */
	uint64_t purged_to; /* entries at or above this hash are gone already */
	struct clf_sample *ring;
	size_t ring_head, ring_used;
} __attribute__((aligned(64)));

struct sampler {
	struct sampler_config config;
	size_t entries, ring_entries; /* of each stripe */
	_Atomic uint64_t limit; /* keys whose mixed hash is below are sampled */
	uint64_t limit_looked_at_ms; /* by the one thread that sweeps */
	struct sampler_stripe stripe[SAMPLER_STRIPES];
};

int sampler_init(struct sampler *sampler, const struct sampler_config *config);
void sampler_fini(struct sampler *sampler);
size_t sampler_bytes(const struct sampler *sampler);
size_t sampler_untouched(const struct sampler *sampler); /* of these, what is not resident yet */

static inline uint64_t sampler_key(const struct sampler *sampler, uint64_t hash)
{
	return mix64(hash ^ sampler->config.seed);
}

/* The whole cost of a key that is not sampled. */
static inline bool sampler_wants(const struct sampler *sampler, uint64_t key)
{
	return key < atomic_load_explicit(&sampler->limit, memory_order_relaxed);
}

/*
 * An event of a sampled key. candidate is the object's state where this access may be kept as the
 * key's sample, else NULL. horizon_ms is that of a sample taken now.
 */
void sampler_note(struct sampler *sampler, uint64_t key, enum sampler_event event, const struct clf_state *candidate,
		  uint64_t now_ms, uint64_t horizon_ms);

/* Labels everything whose horizon has passed, and samples more keys again if there is much room.
   One thread at a time. */
void sampler_sweep(struct sampler *sampler, uint64_t now_ms);

/* Copies the labelled samples that completed at or after since_ms; *out is the caller's (mem_free;
   NULL when there are none). Returns their number, or FS_ENOMEM. */
long sampler_collect(struct sampler *sampler, uint64_t since_ms, struct clf_sample **out);

size_t sampler_tracked(struct sampler *sampler);

/* ---- ghost list ------------------------------------------------------------------------------ */

#define GHOST_LOCKS 16

/*
 * Keys that left DRAM lately, each with the number of its earlier stays. 12 bits of fingerprint
 * and 4 bits of count, 32 to a cache line, newest first: what falls out at the end is forgotten.
 * A key that was never here is taken for one that was with a probability of 32 / 4095 = 0.8 %.
 */
struct ghost {
	uint16_t (*bucket)[32]; /* covered by the bucket's lock */
	size_t buckets;
	struct lock lock[GHOST_LOCKS]; /* LOCK_LEAF */
};

int ghost_init(struct ghost *ghost, size_t memory_bytes);
void ghost_fini(struct ghost *ghost);
void ghost_add(struct ghost *ghost, uint64_t key);
/* Earlier stays, 0 to 15. *recent says that the last one is in the younger half of the list. */
unsigned ghost_stays(struct ghost *ghost, uint64_t key, bool *recent);

/* ---- applications ---------------------------------------------------------------------------- */

#define APPS_SLOTS 128 /* power of two, twice the 64 names: probes stay short */

struct apps {
	struct lock lock; /* LOCK_LEAF; held to add one */
	_Atomic uint64_t hash[APPS_SLOTS]; /* 0 = free; never changes once set */
	_Atomic uint32_t id[APPS_SLOTS]; /* set before the hash is published */
	_Atomic uint32_t count; /* names known, at most CLF_APPS - 1 */
};

/* ---- model and guard ------------------------------------------------------------------------- */

struct clf_model {
	double weight[CLF_FEATURES]; /* of the standardised features */
	double bias;
	double mean[CLF_FEATURES]; /* of the log-scaled features ... */
	double scale[CLF_FEATURES]; /* ... and 1 / standard deviation, 0 for a constant one */
	uint64_t trained_ms;
	uint64_t samples;
};

/* What a choice among the held-out samples gets right. */
struct choice {
	double share; /* of the samples that it admits */
	double precision; /* of the admitted, how many are flashy; 0 when none is admitted */
	double recall; /* of the flashy, how many are admitted */
	double hits; /* of all reads that follow (8 at most per object), those of admitted ones */
};

struct judgement {
	size_t samples, positives;
	struct choice model, read_once, second_hit;
};

#define CLF_REASON_BYTES 96

/* Every fifth key is held out from training, always the same ones. */
static inline bool sample_held_out(const struct clf_sample *sample)
{
	return mix64(sample->key) % 5 == 0;
}

/* Decision value; >= 0 admits. */
double model_decide(const struct clf_model *model, const struct clf_state *state);

/* 0, FS_ENOMEM, or FS_EFULL when the samples don't suffice, with the reason. */
int model_train(struct clf_model *model, const struct clf_sample *samples, size_t count, uint32_t threshold,
		bool weighted, char reason[CLF_REASON_BYTES]);

void guard_judge(const struct clf_model *model, const struct clf_sample *samples, size_t count, uint32_t threshold,
		 struct judgement *out);
/* False if too few of the samples are flashy. */
bool guard_can_tell(const struct judgement *judgement);
/* True if the model may be used; the reason is set either way. */
bool guard_accepts(const struct judgement *judgement, char reason[CLF_REASON_BYTES]);

/* ---- the classifier -------------------------------------------------------------------------- */

/* Own models come with a later issue: until then every application points to the common one. */
struct app_model {
	struct clf_model model;
	bool valid;
};

struct budget {
	struct lock lock; /* LOCK_LEAF; covers the four below */
	double integral;
	double rate; /* bytes per second written, smoothed */
	double largest_burst; /* bytes written between two calls, forgotten within hours */
	uint64_t updated_ms; /* 0: never */
	_Atomic uint32_t threshold_bits; /* a float */
};

struct clf {
	struct clf_config config; /* admission is the one of the start */
	uint64_t id; /* never used twice in a process: keys the threads' caches */
	uint64_t start_ms;
	_Atomic int admission; /* enum clf_admission: config's at the start */
	_Atomic uint64_t residence_ms;
	_Atomic uint64_t version; /* of scores */
	_Atomic uint64_t model_version; /* of what model_lock covers */

	struct sampler sampler;
	struct ghost ghost;
	struct apps apps;
	struct budget budget;

	struct lock model_lock; /* LOCK_LEAF; covers the four below */
	struct app_model common;
	struct judgement judgement;
	double positive_share;
	char reason[CLF_REASON_BYTES];

	struct lock training_lock; /* LOCK_STATE; one training at a time; covers the two below */
	uint64_t next_training_ms;
	uint64_t trained_newest_ms; /* completion of the newest sample that was trained with */

	struct lock thread_lock; /* LOCK_LEAF; covers stopping */
	pthread_cond_t wake;
	pthread_t thread;
	bool running; /* by the thread that starts and stops only */
	bool stopping;
};

/* Length of the horizon of a sample taken now. */
uint64_t clf_horizon_ms(const struct clf *clf, uint64_t now_ms);
/* What a model may see of an object: in mode paper the paper's five features only. */
struct clf_state clf_state_of(const struct clf *clf, const struct clf_features *features, uint32_t size_bytes,
			      uint32_t ttl_seconds);
/* Puts a model (NULL: none) in use. */
void clf_publish(struct clf *clf, const struct clf_model *model, const struct judgement *judgement);
void trainer_init(struct clf *clf);
void trainer_fini(struct clf *clf);
double budget_threshold(const struct clf *clf);

#endif
