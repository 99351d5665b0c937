/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The declarations that the classifier's files share. Its parts, from the bottom up:
 *
 *   sampler   one sample per key and its label      one leaf lock per stripe
 *   counts    how often keys were asked for         one leaf lock per group of buckets
 *   offers    the threshold that a budget makes     a leaf lock to move it
 *   worth     an object's worth per byte            pure functions, and the two above
 *   apps      key prefix -> application             lock-free reads, a leaf lock to add one
 *   model     vectors -> liblinear -> weights       pure functions
 *   guard     is a model better than simple rules   pure functions
 *   admission score of an object, write budget      model copied into a thread's cache
 *   trainer   when to train; the thread             one training at a time
 *   model_file  a model as a file                   pure functions, and I/O
 *
 * Nothing here but model_file does I/O or waits for anything but a lock. Functions without a note on threads may be called from any
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

/* An object as a model sees it at one moment. In mode paper all but features are 0. */
struct clf_state {
	struct clf_features features;
	float count; /* aged */
	uint32_t idle_ms;
	uint32_t record_bytes;
	uint32_t ttl_seconds;
};

/* A labelled sample: its horizon has passed. */
struct clf_sample {
	struct clf_state state;
	uint64_t key; /* equal keys fall on the same side of the held-out split */
	uint64_t complete_ms; /* end of the horizon */
	uint32_t reads; /* within the horizon, until an update or delete ended the counting */
};

enum sampler_event { SAMPLER_WRITTEN, SAMPLER_READ, SAMPLER_MISSED, SAMPLER_DELETED, SAMPLER_EVICTED, SAMPLER_OFFERED };

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

/* ---- aged counts ----------------------------------------------------------------------------- */

#define COUNTS_LOCKS 64
#define COUNTS_ENTRIES 32u /* of a bucket: a cache line */

/*
 * How often keys that are not in DRAM were asked for, with a weight that halves with time; or, under rules that ask at
 * reads, how often they left the cache. An entry has 11 bits of fingerprint and 5 bits of count. A key that has no
 * entry gets another one's with a probability of 32 / 2047 = 1.6 %.
 */
struct counts {
	uint16_t (*bucket)[COUNTS_ENTRIES]; /* covered by lock[bucket % COUNTS_LOCKS] */
	size_t buckets;
	struct lock lock[COUNTS_LOCKS]; /* LOCK_LEAF */
	_Atomic uint64_t roundings; /* so far; the source of their randomness */
	double age_due; /* buckets to age; this and the next: of counts_age alone, which one thread at a time runs */
	size_t age_next;
};

/* Of zeroed memory. FS_EINVAL if memory_bytes is less than a bucket's 64; FS_ENOMEM. */
FS_MUST_CHECK int counts_init(struct counts *counts, size_t memory_bytes);
/* Frees the table. Does nothing to zeroed counts. */
void counts_fini(struct counts *counts);
/* The key's count, 0 if there is none. Takes a leaf lock, as the next two do. */
double counts_get(struct counts *counts, uint64_t key);
/* Adds to the key's count, or makes it. */
void counts_add(struct counts *counts, uint64_t key, double more);
/* Sets the key's count, less than about 1/6: forgets it. */
void counts_set(struct counts *counts, uint64_t key, double count);
/* Copies count buckets from this one on, a cache line each. Takes leaf locks, as the next does. */
void counts_copy(struct counts *counts, size_t from, size_t count, void *out);
/* Adds the entries of buckets that counts_copy has copied, as far as the table's buckets have room and lack the keys. */
void counts_merge(struct counts *counts, size_t from, size_t count, const void *bytes);
/* Ages the table by a part of a half-life, a bucket at a time, each under its leaf lock. One call takes some
   milliseconds at the most; the rest of a long time is left to the next calls. */
void counts_age(struct counts *counts, double half_lives);

/* ---- worth and its threshold ------------------------------------------------------------------- */

#define OFFERS_BINS 320

struct offers {
	_Atomic float threshold; /* of worth; written under lock, as the next */
	_Atomic double turn_ms; /* the time in which applications, of late, write as many bytes as the flash has; 0: not
				   known */
	_Atomic uint64_t new_bytes[OFFERS_BINS]; /* offered since the last budget, by worth; any thread */
	_Atomic uint64_t new_admitted; /* bytes of them that were admitted */
	struct lock lock; /* LOCK_LEAF; covers the rest */
	double bytes[OFFERS_BINS]; /* offered, aged */
	double offered_app_bytes; /* that applications wrote meanwhile; aged alike */
	double app_bytes, ms; /* the bytes that applications wrote, and the time, without a limit too; aged alike */
	double admitted, written; /* bytes that were admitted, and that went to flash; aged alike */
	double recent_app_bytes, recent_allowed, recent_admitted; /* bytes of the applications, those that may have gone
								     to flash, and those that will; aged faster */
	double correction; /* of what is allowed, > 0 */
	double window_bytes; /* constant */
	bool begun; /* a budget has made the threshold before */
};

/* What happened since the last call. */
struct offers_spent {
	double ms;
	double app_bytes; /* that applications have written */
	double written_bytes; /* that went to flash */
	double allowed_bytes; /* that may have gone there; negative: any number */
	bool held_up; /* a cap held writes back: admitted bytes wait */
	bool free; /* all is admitted; allowed_bytes is for later, when it isn't any more */
};

/* Of zeroed memory. Old offers lose half of their weight with each half of flash_bytes that applications write. */
void offers_init(struct offers *offers, uint64_t flash_bytes);
/* Frees the lock. */
void offers_fini(struct offers *offers);
/* Copy the history of the threshold out, and take it over; the sizes of the flash are the same. Take the lock. */
struct offers_saved {
	double threshold, turn_ms, bytes[OFFERS_BINS], offered_app_bytes, app_bytes, ms, admitted, written;
	double recent_app_bytes, recent_allowed, recent_admitted, correction, window_bytes;
	uint64_t begun;
};
void offers_save(struct offers *offers, struct offers_saved *out);
/* Can a budget go on from these, whatever comes? No lock. */
FS_MUST_CHECK bool offers_are_sound(const struct offers_saved *saved);
void offers_load(struct offers *offers, const struct offers_saved *saved);
/* Notes an offer. True: it is worth at least the threshold. No lock. */
FS_MUST_CHECK bool offers_add(struct offers *offers, float worth, uint32_t record_bytes);
/* Moves the threshold. Takes the lock. */
void offers_budget(struct offers *offers, const struct offers_spent *spent);
/* Returns the admitted share of the bytes that were offered lately; 1 where none were. Takes the lock. */
double offers_share(struct offers *offers);
/* Returns a part of an octave that tells equal objects apart by their keys: 0 to below 0.5. */
float offers_tie(uint64_t key);

/* Is all admitted that is offered? */
bool offers_all_pass(const struct offers *offers);
/* The least worth that is admitted. */
static inline float offers_threshold(const struct offers *offers)
{
	return atomic_load_explicit(&offers->threshold, memory_order_relaxed);
}

/* A count in the 8 bits that an object has for it: steps of a 16th of an octave from 1/4 on, 0 for none. */
uint8_t past_code(double count);
double past_count(uint8_t code);
/* The object's aged count at now_ms. */
double features_count(const struct clf_features *features, uint64_t now_ms, double half_life_ms);

/* ---- applications ---------------------------------------------------------------------------- */

#define APPS_SLOTS 128 /* power of two, twice the 64 names: probes stay short */

struct apps {
	struct lock lock; /* LOCK_LEAF; held to add a name */
	_Atomic uint64_t hash[APPS_SLOTS]; /* 0 = free; never changes once set */
	_Atomic uint32_t id[APPS_SLOTS]; /* set before the hash is published */
	_Atomic uint32_t count; /* names known, at most CLF_APPS - 1 */
};

/* ---- model and guard ------------------------------------------------------------------------- */

#define CLF_STEPS 16

struct clf_model {
	double weight[CLF_FEATURES]; /* of the standardised features */
	double bias;
	double mean[CLF_FEATURES]; /* of the log-scaled features ... */
	double scale[CLF_FEATURES]; /* ... and 1 / standard deviation, 0 for a constant one */
	uint64_t trained_ms;
	uint64_t samples;
	/* What a decision value means, in mode full: log2 of the accesses to expect, in units of aged counts. Between
	   the steps it is interpolated. */
	unsigned steps; /* 0: not calibrated */
	double step_decision[CLF_STEPS], step_worth[CLF_STEPS];
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
	double bytes_share; /* of all bytes, that each of these may choose for ... */
	double model_hits, freq_hits, second_hit_hits; /* ... the share of later accesses that it gets */
};

#define CLF_REASON_BYTES 96

/* Every fifth key is held out from training, always the same ones. */
static inline bool sample_held_out(const struct clf_sample *sample)
{
	return mix64(sample->key) % 5 == 0;
}

/* Fills out with the raw features of a state, times in seconds. An object that doesn't expire has a TTL of a year. */
void state_vector(const struct clf_state *state, double out[CLF_FEATURES]);
/* Returns the decision value; >= 0 admits. */
double model_decide(const struct clf_model *model, const struct clf_state *state);
/* Returns log2 of the accesses to expect, in units of aged counts, by a calibrated model. */
double model_expect(const struct clf_model *model, const struct clf_state *state);

/*
 * Fits a model to those of the samples that are not held out; a sample is flashy from threshold reads on. Mode full gives
 * both labels the same weight. Mode paper gives none, and lets four of five flashy samples pass at the least. FS_EFULL
 * if the samples don't suffice, or FS_ENOMEM, both with the reason. Takes up to seconds.
 */
FS_MUST_CHECK int model_train(struct clf_model *model, const struct clf_sample *samples, size_t count,
			      uint32_t threshold, enum clf_label_mode mode, char reason[CLF_REASON_BYTES]);

/* Judges the model and the simple rules on the held-out ones of the samples. */
int guard_judge(const struct clf_model *model, const struct clf_sample *samples, size_t count, uint32_t threshold,
		double exponent, double bytes_share, struct judgement *out);
/* Returns false if too few of the samples are flashy for a verdict. */
FS_MUST_CHECK bool guard_can_tell(const struct judgement *judgement);
/* Returns true if the model may be used; the reason is set either way. */
FS_MUST_CHECK bool guard_accepts(const struct judgement *judgement, char reason[CLF_REASON_BYTES]);

/* ---- a model as a file ----------------------------------------------------------------------- */

/*
 * A file has one model as JSON, of the format MODEL_FILE_VERSION. It has every field below exactly once, and no other:
 *
 *   {"format": "flashield model", "version": 1,
 *    "label_mode": "full", "threshold": 1, "horizon_ms": 60000, "size_exponent": 1.0,   the options it was trained under
 *    "trained": 1795000000, "samples": 20000,                                           seconds since 1970; its samples
 *    "bias": -0.1, "features": [{"name": "reads", "weight": 0.1, "mean": 1.5, "scale": 0.7}, ...],
 *    "calibration": [{"decision": -1.1, "worth": -2.5}, ...]}                           2 to 16 steps, neither falls
 *
 * Another set of features, or another meaning of one, is another version.
 */
#define MODEL_FILE_VERSION 1
#define MODEL_FILE_BYTES_MAX 65536u

/* What a model was trained under. */
struct model_terms {
	enum clf_label_mode mode;
	uint32_t threshold;
	uint64_t horizon_ms;
	double size_exponent;
	int64_t trained_seconds; /* of the wall clock, > 0 */
	uint64_t digest; /* of the file's bytes, not 0; of a model that was read */
};

/* Returns the mode's word, as the option and the file have it. Static storage. */
const char *clf_label_mode_word(enum clf_label_mode mode);
/* Writes the model to the file, which is replaced as a whole: a reader finds the old or the new one, also after a crash.
   The folder gets a second file, PATH.new, meanwhile. FS_OK; FS_ESYS (errno); FS_ENOMEM. */
FS_MUST_CHECK int model_write(const char *path, const struct clf_model *model, const struct model_terms *terms);
/* Reads such a file. model->trained_ms is 0, as the file has the wall clock's time. FS_OK; FS_ESYS (errno); FS_EINVAL;
   FS_ENOMEM; each with the reason. *model and *terms are set only with FS_OK. */
FS_MUST_CHECK int model_read(const char *path, struct clf_model *model, struct model_terms *terms, char reason[256]);

/* ---- the classifier -------------------------------------------------------------------------- */

/* The model that all applications share. */
struct app_model {
	struct clf_model model;
	bool valid;
	enum clf_origin origin; /* NONE if not valid */
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
	struct counts counts;
	struct offers offers;
	struct apps apps;
	struct budget budget;

	struct lock model_lock; /* LOCK_LEAF; covers the four below */
	struct app_model common;
	struct judgement judgement;
	double positive_share;
	char reason[CLF_REASON_BYTES];

	char *save_path; /* of accepted models; NULL: they are not saved. Set before the first training */

	struct lock training_lock; /* LOCK_STATE; held during a training; covers the three below */
	uint64_t loaded_digest; /* of the file that clf_load_model took last; 0: none yet */
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
/* Returns an object as a model of mode full sees it. */
struct clf_state clf_state_of(const struct clf *clf, const struct clf_object *object, uint64_t now_ms);
/* Returns the model in use, which stays valid until the thread asks again; NULL: there is none. */
const struct clf_model *clf_model_now(struct clf *clf);
/* Returns log2 of an aged count, for worth. */
double worth_of_count(double count);
/* Returns the time in which counts halve: a few times the one in which applications write as many bytes as the flash
   has. At least a second. */
double clf_half_life_ms(const struct clf *clf);
/* Puts a model in use, or none if model is NULL and origin NONE. Both are copied. Takes model_lock. */
void clf_publish(struct clf *clf, const struct clf_model *model, enum clf_origin origin,
		 const struct judgement *judgement);
/* Sets the judgement of the model that stays in use. Takes model_lock. */
void clf_set_judgement(struct clf *clf, const struct judgement *judgement);
/* Sets what the status says of the last training, or of a model that was loaded. Takes model_lock. */
void clf_set_reason(struct clf *clf, const char *reason);
/* Make and free the trainer's fields of clf. The thread runs neither before trainer_init nor at trainer_fini. */
void trainer_init(struct clf *clf);
void trainer_fini(struct clf *clf);
/* Returns the least decision value, or rank, that the write budget lets pass: 0 to 20. */
double budget_threshold(const struct clf *clf);

#endif
