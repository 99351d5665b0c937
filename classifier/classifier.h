/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classifier: is an object worth its room on flash?
 *
 *   get/set/delete of sampled keys --> sampler --> labelled samples --> trainer (liblinear)
 *                                                                            |
 *   an object's features  ------------------------> score  <------ model ----+
 *
 * Source: Flashield paper, 3.1 (features, flashiness), 4.2 (sampling, training).
 *
 * An object's features (struct clf_features) lie beside it in DRAM and, quantised, in its record on flash, so that an
 * object that comes back continues from them. They agree with the paper's example: an object written at t = 0 and read
 * at 1 has [1, 1, 1, 1, 1]; read again at 1.5 it has [2, 0.75, 0.5, 1, 1].
 *
 * Threads: clf_features_* are plain functions on the caller's memory, which the caller's key stripe covers. All others
 * may be called from any thread unless their comment says otherwise. They take leaf locks at most, so that a caller may
 * hold a key stripe; clf_train_*, which take a lock of rank LOCK_STATE, are the exception. Scoring takes a lock only
 * when the model has changed: each thread has a copy of it. The classifier's one thread (clf_start) trains; a program
 * that drives the clock itself calls clf_train_now or clf_train_if_due instead.
 *
 * Errors: 0 or a code of base/error.h. Times are milliseconds of the clock given at creation. hash is the key's hash64.
 * Nothing does I/O.
 */
#ifndef FS_CLASSIFIER_CLASSIFIER_H
#define FS_CLASSIFIER_CLASSIFIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

/* ---- features of one object ------------------------------------------------------------------ */

/*
 * 18 bytes of state, packed into the item header. Gaps are 16-bit floats in milliseconds: 5 bits of exponent, 11 of
 * mantissa with the leading one implied. They are exact up to 4095 ms and within 0.05 % above, beyond 50 days. Times
 * are 32-bit milliseconds that wrap after 49 days. A read rebases an object that is older than half of that: it moves
 * the write time forward and scales the reads, so that the mean gap stays.
 */
struct clf_features {
	uint32_t written_ms;
	uint32_t last_read_ms; /* meaningful when reads > 0 */
	uint16_t reads; /* saturates at 65535; the mean gap stays right by rebasing */
	uint16_t first_gap;
	uint16_t last_gap;
	uint16_t max_gap;
	uint8_t history_short; /* earlier stays in the cache if the last one ended lately, else 0 */
	uint8_t history_long; /* earlier stays in the cache as far as the history reaches */
} __attribute__((packed, aligned(2))); /* 18 bytes, so that the item header stays at 48 */

/* The features in a record on flash: 7 bytes in logarithmic steps. */
struct clf_features_packed {
	uint8_t reads;
	uint8_t first_gap;
	uint8_t last_gap;
	uint8_t max_gap;
	uint8_t mean_gap;
	uint8_t age; /* from the last access to the packing */
	uint8_t history; /* 4 bits of history_short, 4 bits of history_long */
};
_Static_assert(sizeof(struct clf_features_packed) == 7, "part of the record on flash");

/* The order of the vector. The paper's five come first, in its order. */
enum clf_feature {
	CLF_READS,
	CLF_MEAN_GAP,
	CLF_LAST_GAP,
	CLF_MAX_GAP,
	CLF_FIRST_GAP,
	CLF_HISTORY_SHORT,
	CLF_HISTORY_LONG,
	CLF_SIZE,
	CLF_TTL,
	CLF_FEATURES
};

/* Notes that the object was written now: starts its features anew, without a history. */
void clf_features_written(struct clf_features *features, uint64_t now_ms);
/* Notes that the object was read now. */
void clf_features_read(struct clf_features *features, uint64_t now_ms);

/* Fills out with the raw vector: gaps in seconds, size in bytes, ttl in seconds (0 = none). An object that was never
   read has gaps of zero. */
void clf_features_vector(const struct clf_features *features, uint32_t size_bytes, uint32_t ttl_seconds,
			 double out[CLF_FEATURES]);

/* Packs the features of an object that goes to flash now. Each value is off by at most 4.6 %. */
void clf_features_pack(const struct clf_features *features, uint64_t now_ms, struct clf_features_packed *out);
/* Restores the features of an object that was packed at packed_ms, to that precision. Accepts any bytes, as they come
   from flash. */
void clf_features_unpack(const struct clf_features_packed *packed, uint64_t packed_ms, struct clf_features *out);

/* ---- the classifier -------------------------------------------------------------------------- */

struct clf;

enum clf_label_mode { CLF_LABEL_FULL, CLF_LABEL_PAPER };
enum clf_admission {
	CLF_ADMIT_SVM,
	CLF_ADMIT_READ_ONCE,
	CLF_ADMIT_SECOND_HIT,
	CLF_ADMIT_ALL,
	CLF_ADMIT_LAST = CLF_ADMIT_ALL
};

struct clf_config {
	const struct clk *clock;
	uint64_t seed;
	enum clf_label_mode label_mode;
	enum clf_admission admission; /* the SVM or a simple rule */
	uint32_t threshold; /* reads within the horizon that make an object flashy, >= 1 */
	uint64_t training_window_ms; /* > 0 */
	uint64_t horizon_ms; /* 0: in mode full the measured residence on flash, in mode paper an hour */
	size_t memory_bytes; /* bound of sampler and history; >= 64 KiB */
	char app_delimiter; /* ends the key's prefix that names the application; NUL: all share one */
};

/* Makes a classifier, which the caller destroys. FS_OK; FS_EINVAL if a field of config is outside its range; FS_ENOMEM.
   *out is set only with FS_OK. */
FS_MUST_CHECK int clf_create(struct clf **out, const struct clf_config *config);
/* Stops the trainer thread first. NULL is allowed. No other thread may use clf any more. */
void clf_destroy(struct clf *clf);

/* Starts the trainer thread (nice 19), which must not run yet. FS_OK; FS_ESYS (errno). One thread calls clf_start and
   clf_stop. */
FS_MUST_CHECK int clf_start(struct clf *clf);
/* Stops the trainer thread when the training under way is done. Does nothing if no thread runs. */
void clf_stop(struct clf *clf);

/* Trains in the calling thread, which holds no lock, with all samples labelled so far. True if a new model is in use
   afterwards. Takes up to seconds. */
bool clf_train_now(struct clf *clf);

/* Trains like clf_train_now if a training is due by the clock; cheap if none is. The trainer thread calls it at each
   wake, and a program without that thread as its clock moves. */
bool clf_train_if_due(struct clf *clf);

/* The application of a key: 1 to CLF_APPS - 1, or 0 for the shared one. One model serves all of them. */
#define CLF_APPS 65
unsigned clf_app(struct clf *clf, const char *key, size_t key_length);

/*
 * The store tells by clf_note_* how its keys are used. A key that is not sampled costs one mix and compare of its hash
 * (4 ns). The key's stripe may be held or not; these functions take leaf locks only. Nothing is sampled under the
 * simple rules.
 *
 *  written: an application wrote the object. features is its new state, just made. Its history fields are filled in
 *    here (a leaf lock and a cache line), except under read-once and all and in mode paper. In mode full a key with a
 *    history may be sampled at its write too, as the object could qualify then. read: a get hit the object. features is
 *    its state after this read if the object lies in DRAM, and NULL if it lies on flash. missed: a get found nothing.
 *    In mode full that counts as a read that flash could have served, and the set that follows is a refill, not an
 *    update. deleted, evicted: the object left the cache. Mode paper stops counting its reads; mode full goes on after
 *    an eviction. The store tells every eviction of a key's last copy, from DRAM or from flash, as the history is made
 *    of these. A move to flash is none.
 */
void clf_note_written(struct clf *clf, uint64_t hash, struct clf_features *features, uint32_t size_bytes,
		      uint32_t ttl_seconds, uint64_t now_ms);
void clf_note_read(struct clf *clf, uint64_t hash, const struct clf_features *features, uint32_t size_bytes,
		   uint32_t ttl_seconds, uint64_t now_ms);
void clf_note_missed(struct clf *clf, uint64_t hash, uint64_t now_ms);
void clf_note_deleted(struct clf *clf, uint64_t hash, uint64_t now_ms);
void clf_note_evicted(struct clf *clf, uint64_t hash, uint64_t now_ms);

/* Tells the measured time from a segment's write to its reclaim, which is the horizon in mode full if config.horizon_ms
   is 0. */
void clf_set_residence(struct clf *clf, uint64_t residence_ms);

/*
 * The score of an object: it qualifies for flash at >= 0, and higher is better. Under SVM the score is the decision
 * value of the model less the budget's threshold. Without a usable model, and under the simple rules, it is +1 or -1
 * with a little rank by reads (and mean gap). An object that was never read and has no history scores -1; a history
 * does not help before the first model or in mode paper. Under second-hit a history counts like a read; where features
 * has none, the history is looked up by hash, under a leaf lock.
 */
float clf_score(struct clf *clf, unsigned app, uint64_t hash, const struct clf_features *features, uint32_t size_bytes,
		uint32_t ttl_seconds);

/*
 * Sets the rule from now on. Objects in DRAM get their new scores as they are read, and as the crawler finds that
 * clf_version has risen. While the rule isn't CLF_ADMIT_SVM nothing is sampled and no model is trained; once it is
 * again, the last model is used until the next training.
 */
void clf_set_admission(struct clf *clf, enum clf_admission admission);
/* Returns the rule in force. */
enum clf_admission clf_get_admission(const struct clf *clf);

/* Rises whenever scores may have changed: with a new model, another threshold or another rule. */
uint64_t clf_version(const struct clf *clf);

/*
 * The write budget: a controller moves the score threshold so that the flash writes stay within what is allowed, in
 * bytes per second (0 = no limit). written_per_second is the mean since the last call, unsmoothed. It counts what would
 * be written if the store's own cap held nothing back: a rate that can't exceed the limit would never raise the
 * threshold. The store calls this about once a second.
 */
void clf_budget(struct clf *clf, double written_per_second, double allowed_per_second);

struct clf_status {
	bool model_in_use; /* the next two are 0 without one, weights and bias too */
	uint64_t model_age_ms;
	uint64_t model_samples;
	uint64_t samples_waiting; /* sampled keys whose horizon still runs */
	uint64_t tracked_keys;
	double precision, recall; /* of the model in use, on held-out samples */
	double positive_share; /* share of flashy samples at the last training */
	double admitted_share; /* share of the held-out samples that the model admits */
	double read_once_share, second_hit_share; /* shares of them that the simple rules admit */
	double read_once_precision, read_once_recall;
	double threshold; /* of the write budget; 0: it holds nothing back */
	double weight[CLF_FEATURES];
	double bias;
	uint64_t horizon_ms;
	char reason[96]; /* tells why the last model is used or not */
};
/* Fills out with a snapshot. Takes leaf locks. */
void clf_get_status(struct clf *clf, struct clf_status *out);
/* Returns the memory of the classifier, without what a training takes while it runs. */
size_t clf_memory_bytes(const struct clf *clf);
/* Returns the part of clf_memory_bytes that was never touched and so is not resident. Asks the kernel about each
   page. */
size_t clf_untouched_bytes(const struct clf *clf);

#endif
