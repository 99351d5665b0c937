/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classifier: is an object worth a place on flash?
 *
 *   get/set/delete of sampled keys --> sampler --> labelled samples --> trainer (liblinear)
 *                                                                            |
 *   an object's features  ------------------------> score  <------ model ----+
 *
 * Source: Flashield paper, 3.1 (features, flashiness), 4.2 (sampling, training).
 *
 * Features of an object ("clf_features"), kept beside it in DRAM and, quantised, in its record on
 * flash: an object that comes back continues from them. Exact to the paper's example: written at
 * t = 0 and read at 1 gives [1, 1, 1, 1, 1]; read again at 1.5 gives [2, 0.75, 0.5, 1, 1].
 *
 * Threads: clf_features_* are plain functions on the caller's memory (the caller's key stripe
 * covers it). clf_note_* from any thread: sampler stripes have leaf locks, touched for sampled
 * keys only. Scoring copies the published model into a per-thread cache when its version moves, so
 * it takes no lock otherwise. One trainer thread inside (clf_start), or none: clf_train_now for
 * tests. All times are milliseconds of the clock given at creation.
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
 * 18 bytes of state, packed into the item header. Gaps are 16-bit floats in milliseconds (5 bits
 * of exponent, 11 of mantissa, the leading one implied: exact up to 4095 ms, 0.05 % above, up to
 * 50 days and more); times are 32-bit milliseconds that wrap after 49 days (an object older than
 * half of that is rebased at a read: write time moved forward and reads scaled, the mean kept).
 */
struct clf_features {
	uint32_t written_ms;
	uint32_t last_read_ms; /* meaningful when reads > 0 */
	uint16_t reads; /* saturating at 65535, then the mean is kept by rebasing */
	uint16_t first_gap;
	uint16_t last_gap;
	uint16_t max_gap;
	uint8_t history_short; /* earlier stays in the cache, if the last one ended lately; ... */
	uint8_t history_long; /* ... and if it ended at all within the ghost list's reach */
} __attribute__((packed, aligned(2))); /* 18 bytes, so that the item header stays at 48 */

/* The same in a record on flash: logarithmic steps, 7 bytes. */
struct clf_features_packed {
	uint8_t reads;
	uint8_t first_gap;
	uint8_t last_gap;
	uint8_t max_gap;
	uint8_t mean_gap;
	uint8_t age; /* from the last access to the packing */
	uint8_t history; /* 4 bits short, 4 bits long window */
};
_Static_assert(sizeof(struct clf_features_packed) == 7, "part of the record on flash");

/* The order of the vector. The first five are the paper's, in its order. */
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

void clf_features_written(struct clf_features *features, uint64_t now_ms);
void clf_features_read(struct clf_features *features, uint64_t now_ms);

/* The raw vector, gaps in seconds; size in bytes, ttl in seconds (0 = none). All zero gaps when
   never read. */
void clf_features_vector(const struct clf_features *features, uint32_t size_bytes, uint32_t ttl_seconds,
			 double out[CLF_FEATURES]);

void clf_features_pack(const struct clf_features *features, uint64_t now_ms, struct clf_features_packed *out);
/* An object packed at packed_ms comes back: what it was when packed, to the steps' precision. */
void clf_features_unpack(const struct clf_features_packed *packed, uint64_t packed_ms, struct clf_features *out);

/* ---- the classifier -------------------------------------------------------------------------- */

struct clf;

enum clf_label_mode { CLF_LABEL_FULL, CLF_LABEL_PAPER };
enum clf_admission { CLF_ADMIT_SVM, CLF_ADMIT_READ_ONCE, CLF_ADMIT_SECOND_HIT, CLF_ADMIT_ALL };

struct clf_config {
	const struct clk *clock;
	uint64_t seed;
	enum clf_label_mode label_mode;
	enum clf_admission admission; /* SVM, or one of the simple rules for comparison */
	uint32_t threshold; /* reads within the horizon that make an object flashy, >= 1 */
	uint64_t training_window_ms; /* > 0 */
	uint64_t horizon_ms; /* 0: mode full: measured residence on flash; paper: an hour */
	size_t memory_bytes; /* bound of sampler and second-hit ghost list; >= 64 KiB */
	char app_delimiter; /* application = key prefix up to it; NUL: all share one */
};

/* 0, FS_ENOMEM or FS_EINVAL. */
FS_MUST_CHECK int clf_create(struct clf **out, const struct clf_config *config);
void clf_destroy(struct clf *clf); /* stops the trainer thread first */

/* Starts and stops the trainer thread (nice 19), both by one thread. 0 or FS_ENOMEM. */
FS_MUST_CHECK int clf_start(struct clf *clf);
void clf_stop(struct clf *clf);

/* Trains now, in the calling thread, with what is labelled by now. True when a new model is in
   use afterwards. For tests; called without a lock held. */
bool clf_train_now(struct clf *clf);

/* What the thread does at each wake: trains if a training is due by the clock. For callers
   that have no thread and call this as a scripted clock moves (cheap when nothing is due). */
bool clf_train_if_due(struct clf *clf);

/* The application of a key, 0..CLF_APPS-1 (0 = the shared one). One model today: all share it. */
#define CLF_APPS 65
unsigned clf_app(struct clf *clf, const char *key, size_t key_length);

/*
 * What happens to keys, told by the store. Cheap for keys that are not sampled (one mix and compare
 * of the hash, 4 ns). Called with or without the key's stripe held; takes leaf locks only. Nothing
 * is sampled under the simple rules.
 *
 *  written: an application write. features is the object's new state, just made; its history is
 *    filled in here from the ghost list (a leaf lock and a cache line), except under read-once and
 *    all and in mode paper. In mode full a key with a history is a candidate for a sample at its
 *    write too, for then it could qualify.
 *  read: a get that hit, in DRAM or on flash; features is the state after this read where the
 *    object lies in DRAM, NULL for a hit on flash.
 *  missed: a get that found nothing (in mode full it counts as a read that flash could have
 *    served, and the set that follows is a refill, not an update).
 *  deleted, evicted: left the cache (mode paper stops counting; full goes on after evicted).
 *    evicted is to be told of every key whose last copy goes for want of room, from DRAM or from
 *    flash: the ghost list (second-hit, history) lives on it. Not of a move to flash.
 */
void clf_note_written(struct clf *clf, uint64_t hash, struct clf_features *features, uint32_t size_bytes,
		      uint32_t ttl_seconds, uint64_t now_ms);
void clf_note_read(struct clf *clf, uint64_t hash, const struct clf_features *features, uint32_t size_bytes,
		   uint32_t ttl_seconds, uint64_t now_ms);
void clf_note_missed(struct clf *clf, uint64_t hash, uint64_t now_ms);
void clf_note_deleted(struct clf *clf, uint64_t hash, uint64_t now_ms);
void clf_note_evicted(struct clf *clf, uint64_t hash, uint64_t now_ms);

/* Mode full with horizon 0: the measured time from a segment's write to its reclaim. */
void clf_set_residence(struct clf *clf, uint64_t residence_ms);

/*
 * The score of an object: >= 0 qualifies, higher is better. Under SVM this is the decision value
 * of the model less the budget's threshold; without a usable model, and under the simple rules,
 * +1 or -1 with a little rank by reads (and mean gap). An object that was never read and has no
 * history scores -1; before the first model, and in mode paper, history does not help it. Under
 * second-hit a history counts like a read; where features holds none the ghost list is asked by
 * hash.
 */
float clf_score(struct clf *clf, unsigned app, uint64_t hash, const struct clf_features *features, uint32_t size_bytes,
		uint32_t ttl_seconds);

/*
 * The rule from now on; any thread. Objects in DRAM get their new scores as they are read, and as the crawler finds that
 * clf_version has moved. Nothing is sampled, and no model trained, while the rule isn't CLF_ADMIT_SVM: back at it, the
 * last model is used until the next training.
 */
void clf_set_admission(struct clf *clf, enum clf_admission admission);
enum clf_admission clf_get_admission(const struct clf *clf);

/* Rises by one whenever scores may have changed (new model, other threshold, other rule). */
uint64_t clf_version(const struct clf *clf);

/*
 * The write budget: the store tells how many bytes per second flash writes took since
 * the last call (unsmoothed, and counted before any cap of its own holds them back: a rate that
 * can't exceed the limit never raises the threshold) and how many are allowed (0 = no limit); a
 * controller moves the score threshold. Called about once a second by the cleaner.
 */
void clf_budget(struct clf *clf, double written_per_second, double allowed_per_second);

struct clf_status {
	bool model_in_use;
	uint64_t model_age_ms;
	uint64_t model_samples;
	uint64_t samples_waiting; /* sampled keys whose horizon still runs */
	uint64_t tracked_keys;
	double precision, recall; /* of the model in use, on held-out samples */
	double positive_share; /* of the labels */
	double admitted_share; /* of held-out samples the model admits */
	double read_once_share, second_hit_share; /* what the simple rules admit of them */
	double read_once_precision, read_once_recall;
	double threshold;
	double weight[CLF_FEATURES];
	double bias;
	uint64_t horizon_ms;
	char reason[96]; /* why the last model is or is not used */
};
void clf_get_status(struct clf *clf, struct clf_status *out);
size_t clf_memory_bytes(const struct clf *clf);
size_t clf_untouched_bytes(const struct clf *clf); /* of it, what is not resident yet. Any thread; asks for each page */

#endif
