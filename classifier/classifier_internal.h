/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The declarations that the classifier's files share. Its parts, from the bottom up:
 *
 *   sampler   one sample per key and its label      one leaf lock per stripe
 *   history   keys evicted lately, and how often    one leaf lock per group of buckets
 *   apps      key prefix -> application             lock-free reads, a leaf lock to add one
 *   model     vectors -> liblinear -> weights       pure functions
 *   guard     is a model better than simple rules   pure functions
 *   admission score of an object, write budget      model copied into a thread's cache
 *   trainer   when to train; the thread             one training at a time
 *
 * Nothing here does I/O or waits for anything but a lock. Functions without a note on threads may be called from any
 * thread; *_init and *_fini are called by the thread that creates and destroys the classifier, while no other uses it.
 * Fields without a note are constant once *_init has returned. "key" is the key's hash, mixed with the sampler's seed
 * (sampler_key). Functions that can fail return 0 or a code of base/error.h.
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

/* An object as a model sees it at one moment. */
struct clf_state {
	struct clf_features features;
	uint32_t size_bytes;
	uint32_t ttl_seconds;
};

/* A labelled sample: its horizon has passed. */
struct clf_sample {
	struct clf_state state;
	uint64_t key; /* equal keys fall on the same side of the held-out split */
	uint64_t complete_ms; /* end of the horizon */
	uint32_t reads; /* within the horizon, until an update or delete ended the counting */
};

enum sampler_event { SAMPLER_WRITTEN, SAMPLER_READ, SAMPLER_MISSED, SAMPLER_DELETED, SAMPLER_EVICTED };

struct sampler_config {
	uint64_t seed;
	uint64_t start_ms;
	uint64_t window_ms;
	enum clf_label_mode mode;
	size_t memory_bytes; /* of the tables; struct sampler comes on top */
};

#define SAMPLER_STRIPES 8

struct sampler_entry;

struct sampler_stripe {
	struct lock lock; /* LOCK_LEAF; covers all fields below, and the tables that they point to */
	struct rng rng;
	struct sampler_entry *entry; /* open addressing, linear probing */
	size_t used; /* entries in use */
	size_t used_most; /* the most that were in use since the limit was last reviewed */
	uint64_t purged_to; /* entries with a key at or above this one are gone already */
	struct clf_sample *ring; /* the latest labelled samples */
	size_t ring_head, ring_used; /* next position to write, and samples present */
} __attribute__((aligned(64)));

struct sampler {
	struct sampler_config config;
	size_t entries, ring_entries; /* of each stripe */
	_Atomic uint64_t limit; /* keys below it are sampled */
	uint64_t limit_reviewed_ms; /* of sampler_sweep alone, which one thread at a time runs */
	struct sampler_stripe stripe[SAMPLER_STRIPES];
};

/* Makes a sampler of zeroed memory. FS_OK; FS_EINVAL if memory_bytes is too little for 8 keys per stripe; FS_ENOMEM.
   After either error sampler_fini is still to be called. */
FS_MUST_CHECK int sampler_init(struct sampler *sampler, const struct sampler_config *config);
/* Frees the tables. Does nothing to a zeroed sampler. */
void sampler_fini(struct sampler *sampler);
/* sampler_bytes returns the bytes of the tables; sampler_untouched asks the kernel, and returns how many of them were
   never touched and so are not resident. */
size_t sampler_bytes(const struct sampler *sampler);
size_t sampler_untouched(const struct sampler *sampler);

/* Returns the hash of a key as all parts of the classifier use it. */
static inline uint64_t sampler_key(const struct sampler *sampler, uint64_t hash)
{
	return mix64(hash ^ sampler->config.seed);
}

/* Is the key sampled? Other keys cost this compare and no more. */
static inline bool sampler_wants(const struct sampler *sampler, uint64_t key)
{
	return key < atomic_load_explicit(&sampler->limit, memory_order_relaxed);
}

/*
 * Notes an event of a sampled key. subject is the object's state if this access may become the key's sample, else NULL.
 * horizon_ms is the horizon of a sample taken now, > 0. Takes the leaf lock of the key's stripe.
 */
void sampler_note(struct sampler *sampler, uint64_t key, enum sampler_event event, const struct clf_state *subject,
		  uint64_t now_ms, uint64_t horizon_ms);

/* Labels all samples whose horizon has passed; raises the limit if the tables have had much room for two windows.
   One thread at a time. Takes the leaf lock of each stripe in turn. */
void sampler_sweep(struct sampler *sampler, uint64_t now_ms);

/* Copies the labelled samples that completed at or after since_ms to *out, which the caller frees by mem_free (NULL
   after an error). Returns their number, or FS_ENOMEM. Takes the leaf lock of each stripe in turn. */
FS_MUST_CHECK long sampler_collect(struct sampler *sampler, uint64_t since_ms, struct clf_sample **out);

/* Returns how many keys have an entry now. Takes the leaf lock of each stripe in turn. */
size_t sampler_tracked(struct sampler *sampler);

/* ---- history --------------------------------------------------------------------------------- */

#define HISTORY_LOCKS 16

/*
 * Keys that left the cache lately, each with the number of its earlier stays. An entry has 12 bits of fingerprint and 4
 * bits of count; 32 entries fill a cache line, newest first, and the one that falls out at the end is forgotten.
 * A key that was never here is taken for one that was with a probability of 32 / 4095 = 0.8 %.
 */
struct history {
	uint16_t (*bucket)[32]; /* covered by lock[bucket % HISTORY_LOCKS] */
	size_t buckets;
	struct lock lock[HISTORY_LOCKS]; /* LOCK_LEAF */
};

/* Makes an empty history. FS_OK; FS_EINVAL if memory_bytes is less than a bucket's 64; FS_ENOMEM. */
FS_MUST_CHECK int history_init(struct history *history, size_t memory_bytes);
/* Frees the table. Does nothing to a zeroed history. */
void history_fini(struct history *history);
/* Notes that a stay of the key has ended. Takes a leaf lock. */
void history_add(struct history *history, uint64_t key);
/* Returns the number of earlier stays of the key, 0 to 15. *recent tells if the entry is in the younger half of its
   bucket. Takes a leaf lock. */
unsigned history_stays(struct history *history, uint64_t key, bool *recent);

/* ---- applications ---------------------------------------------------------------------------- */

#define APPS_SLOTS 128 /* power of two, twice the 64 names: probes stay short */

struct apps {
	struct lock lock; /* LOCK_LEAF; held to add a name */
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

/* How good a choice among the held-out samples is. */
struct choice {
	double share; /* of the samples that it admits */
	double precision; /* share of flashy samples among the admitted; 0 if none is admitted */
	double recall; /* share of admitted samples among the flashy */
	double hits; /* share of all later reads (8 at most per object) that go to admitted samples */
};

struct judgement {
	size_t samples, positives; /* held out, and the flashy ones among them */
	struct choice model, read_once, second_hit;
};

#define CLF_REASON_BYTES 96

/* Every fifth key is held out from training, always the same ones. */
static inline bool sample_held_out(const struct clf_sample *sample)
{
	return mix64(sample->key) % 5 == 0;
}

/* Returns the decision value; >= 0 admits. */
double model_decide(const struct clf_model *model, const struct clf_state *state);

/*
 * Fits a model to those of the samples that are not held out; a sample is flashy from threshold reads on. weighted
 * gives both labels the same weight. FS_EFULL if the samples don't suffice, or FS_ENOMEM, both with the reason. Takes
 * up to seconds.
 */
FS_MUST_CHECK int model_train(struct clf_model *model, const struct clf_sample *samples, size_t count,
			      uint32_t threshold, bool weighted, char reason[CLF_REASON_BYTES]);

/* Judges the model and the simple rules on the held-out ones of the samples. */
void guard_judge(const struct clf_model *model, const struct clf_sample *samples, size_t count, uint32_t threshold,
		 struct judgement *out);
/* Returns false if too few of the samples are flashy for a verdict. */
FS_MUST_CHECK bool guard_can_tell(const struct judgement *judgement);
/* Returns true if the model may be used; the reason is set either way. */
FS_MUST_CHECK bool guard_accepts(const struct judgement *judgement, char reason[CLF_REASON_BYTES]);

/* ---- the classifier -------------------------------------------------------------------------- */

/* The model that all applications share. */
struct app_model {
	struct clf_model model;
	bool valid;
};

struct budget {
	struct lock lock; /* LOCK_LEAF; covers the four below */
	double integral;
	double rate; /* bytes written per second, smoothed */
	double largest_burst; /* bytes written between two calls, forgotten within hours */
	uint64_t updated_ms; /* 0: never */
	_Atomic uint32_t threshold_bits; /* a float */
};

struct clf {
	struct clf_config config; /* config.admission is the rule at the start */
	uint64_t id; /* never used twice in a process; tells the threads' copies of models apart */
	uint64_t start_ms;
	_Atomic int admission; /* enum clf_admission; the rule in force */
	_Atomic uint64_t residence_ms; /* 0: not measured yet */
	_Atomic uint64_t version; /* of scores */
	_Atomic uint64_t model_version; /* of common; raised under model_lock */

	struct sampler sampler;
	struct history history;
	struct apps apps;
	struct budget budget;

	struct lock model_lock; /* LOCK_LEAF; covers the four below */
	struct app_model common;
	struct judgement judgement;
	double positive_share;
	char reason[CLF_REASON_BYTES];

	struct lock training_lock; /* LOCK_STATE; held during a training; covers the two below */
	uint64_t next_training_ms;
	uint64_t trained_newest_ms; /* completion of the newest sample that was trained with */

	struct lock thread_lock; /* LOCK_LEAF; covers stopping */
	pthread_cond_t wake;
	pthread_t thread;
	bool running; /* of the thread that calls clf_start and clf_stop */
	bool stopping;
};

/* Returns the length of the horizon of a sample taken now, > 0. */
uint64_t clf_horizon_ms(const struct clf *clf, uint64_t now_ms);
/* Returns an object as a model may see it: in mode paper with the paper's five features only. */
struct clf_state clf_state_of(const struct clf *clf, const struct clf_features *features, uint32_t size_bytes,
			      uint32_t ttl_seconds);
/* Puts a model in use, or none if model is NULL. Both are copied. Takes model_lock. */
void clf_publish(struct clf *clf, const struct clf_model *model, const struct judgement *judgement);
/* Make and free the trainer's fields of clf. The thread runs neither before trainer_init nor at trainer_fini. */
void trainer_init(struct clf *clf);
void trainer_fini(struct clf *clf);
/* Returns the least decision value, or rank, that the write budget lets pass: 0 to 20. */
double budget_threshold(const struct clf *clf);

#endif
