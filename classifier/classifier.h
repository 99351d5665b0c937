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
 * Only clf_load_model does I/O, and the trainer where it writes accepted models to a file.
 */
#ifndef FS_CLASSIFIER_CLASSIFIER_H
#define FS_CLASSIFIER_CLASSIFIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/parts.h"

/* ---- features of one object ------------------------------------------------------------------ */

/*
 * 12 bytes of state. An object in DRAM keeps the parts that its store has a use for: without a classifier the last
 * access alone, in mode full all but the gaps, which win nothing there, and in mode paper all of them.
 *
 * first, last and max are floats of 8 bits, three of them mantissa, in 1/1024 s: within 6.3 %, up to 42 days; a second
 * and its halves are exact. mean_gap is a float of 16 bits, eleven of them mantissa: within 0.03 % of mean and a
 * millisecond. Each read rounds it anew. The last access is in 32-bit milliseconds, which wrap after 49 days; an object
 * that was not accessed for longer seems younger.
 */
#define CLF_READS_MAX 16383u
struct clf_reads {
	uint16_t count : 14; /* saturates at CLF_READS_MAX */
	uint16_t
		stay : 2; /* enum clf_stay: where the object came from when its stay in DRAM began; 0 after a flash read */
	uint16_t mean_gap;
};

/* The paper's other gaps. Where they aren't kept they are 0. */
struct clf_gaps {
	uint8_t first, last, max;
};

struct clf_features {
	uint32_t accessed_ms; /* the last read, or the write where there is none */
	struct clf_reads reads;
	struct clf_gaps gaps;
	uint8_t past; /* the aged count of accesses, or of stays, before this one: a logarithm; 0: none */
};
_Static_assert(sizeof(struct clf_reads) == 4 && sizeof(struct clf_gaps) == 3, "parts of an item's header");
_Static_assert(sizeof(struct clf_features) == 12, "part of a file of saved objects");

enum clf_stay {
	CLF_STAY_WRITTEN,
	CLF_STAY_AGAIN, /* from a segment that was reclaimed, unread there */
	CLF_STAY_READ_AGAIN /* the same, read on flash */
};

/* The features in a record on flash: 7 bytes in logarithmic steps. */
struct clf_features_packed {
	uint8_t reads;
	uint8_t first_gap;
	uint8_t last_gap;
	uint8_t max_gap;
	uint8_t mean_gap;
	uint8_t age; /* from the last access to the packing */
	uint8_t past;
};
_Static_assert(sizeof(struct clf_features_packed) == 7, "part of the record on flash");

/* The order of the vector. The paper's five come first, in its order. */
enum clf_feature {
	CLF_READS,
	CLF_MEAN_GAP,
	CLF_LAST_GAP,
	CLF_MAX_GAP,
	CLF_FIRST_GAP,
	CLF_COUNT, /* aged count of accesses, of earlier stays too */
	CLF_IDLE, /* since the last access */
	CLF_SIZE, /* of the record */
	CLF_TTL,
	CLF_FEATURES
};

/* Returns a feature's name, as in "mean_gap". Static storage. */
const char *clf_feature_name(enum clf_feature feature);

/* The object was written now: starts its features anew, without a past. */
void clf_features_written(struct clf_features *features, uint64_t now_ms);
/* Notes that an object was read now, in the parts of its features that it keeps. gaps NULL: it keeps none. */
void clf_read(uint32_t *accessed_ms, struct clf_reads *reads, struct clf_gaps *gaps, uint64_t now_ms);
/* Notes that the object was read now. */
static inline void clf_features_read(struct clf_features *features, uint64_t now_ms)
{
	clf_read(&features->accessed_ms, &features->reads, &features->gaps, now_ms);
}
/* Returns the mean of the gaps up to the last read, in milliseconds; 0 without reads. */
double clf_features_mean_gap_ms(const struct clf_features *features);
/* Fills out with the paper's five raw features, gaps in seconds, and zeros for the rest. An object that was never read
   has gaps of zero. */
void clf_features_vector(const struct clf_features *features, double out[CLF_FEATURES]);

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
	CLF_ADMIT_READ_OR_SECOND_HIT, /* what was read in DRAM, or has a history */
	CLF_ADMIT_ALL,
	CLF_ADMIT_FREQ, /* aged count of accesses for each byte */
	CLF_ADMIT_SECOND_HIT, /* what has a history, whether it is read in DRAM or not */
	CLF_ADMIT_LAST = CLF_ADMIT_SECOND_HIT
};

/*
 * A key has a history if its object had left the cache before the present stay began: it was evicted from DRAM, or its
 * segment was reclaimed without it. A delete forgets it, and so does the table of counts in time: a single leaving
 * within the time in which applications write ten times the flash's size, or sooner where the table is full. This is
 * the usual second-hit admission, by a list of keys that left. flashield-sim's second-hit is the same rule with an exact list.
 */

struct clf_config {
	const struct clk *clock;
	uint64_t seed;
	enum clf_label_mode label_mode;
	enum clf_admission admission; /* the SVM or a simple rule */
	uint32_t threshold; /* reads within the horizon that make an object flashy, >= 1 */
	uint64_t training_window_ms; /* > 0 */
	uint64_t horizon_ms; /* 0: in mode full a quarter of the measured residence on flash, in mode paper an hour */
	size_t memory_bytes; /* bound of sampler and counts; >= 64 KiB */
	char app_delimiter; /* ends the key's prefix that names the application; NUL: all share one */
	size_t counts_bytes; /* of the table of counts, >= 64, beside memory_bytes; 0: the sampler's share of these */
	uint64_t flash_bytes; /* size of the flash */
	double size_exponent; /* of the worth: 1 for hits per byte, 0 for hits whatever they cost; 0 .. 2 */
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
   afterwards. Takes up to seconds. While a pinned model is in use it is judged on these samples instead, and stays. */
bool clf_train_now(struct clf *clf);

/* Trains like clf_train_now if a training is due by the clock; cheap if none is. The trainer thread calls it at each
   wake, and a program without that thread as its clock moves. */
bool clf_train_if_due(struct clf *clf);

/* Where the model in use comes from. */
enum clf_origin {
	CLF_ORIGIN_NONE, /* there is none */
	CLF_ORIGIN_TRAINED, /* from this process's own samples */
	CLF_ORIGIN_SAVED, /* from those of an earlier process, in a file that it has left */
	CLF_ORIGIN_IMPORTED, /* from a file that the operator names */
	CLF_ORIGIN_PINNED /* the same, and neither a training nor the guard replaces it */
};

/* Returns the origin as a word: "none", "trained", "saved", "imported", "pinned". Static storage. */
const char *clf_origin_word(enum clf_origin origin);

/*
 * Puts the model of a file in use; origin is SAVED, IMPORTED or PINNED. It stays until the guard accepts a trained one,
 * or finds that a simple rule does better; a pinned one stays. Does nothing where the file has the model that the last
 * call took, so that a repeated call doesn't undo a training. FS_OK; FS_ESYS (errno) if the file can't be read; FS_EINVAL
 * if it is no such model, or one of another mode; FS_ENOMEM. The reason then names file, field and what is wanted, and
 * nothing has changed. Does I/O; waits for a training under way. The caller holds no lock.
 */
FS_MUST_CHECK int clf_load_model(struct clf *clf, const char *path, enum clf_origin origin, char reason[256]);

/* From now on the trainer writes each model that is accepted to this file, and a failure into the log. FS_OK; FS_ENOMEM.
   One thread, once, before clf_start or the first training. */
FS_MUST_CHECK int clf_save_models(struct clf *clf, const char *path);

/* The application of a key: 1 to CLF_APPS - 1, or 0 for the shared one. One model serves all of them. */
#define CLF_APPS 65
unsigned clf_app(struct clf *clf, const char *key, size_t key_length);

/*
 * The store tells by clf_note_* how its keys are used. A key that is not sampled costs one mix and compare of its hash
 * (4 ns). The key's stripe may be held or not; these functions take leaf locks only. Nothing is sampled under the
 * simple rules.
 *
 *  written: an application wrote the object. The past of its new features is filled in: from
 *    old, the state of the object in DRAM that it replaces, or where that is NULL from the counts (a leaf lock and a
 *    cache line). Not under read-once and all, nor in mode paper.
 *  read: a get hit the object in DRAM. features is its state after this read; NULL is enough in mode full.
 *  read_on_flash: a get hit the object on flash.
 *  missed: a get found nothing. In mode full that counts as a read that flash could have served, and the set that
 *    follows is a refill, not an update.
 *  deleted: the object left the cache by a delete or by its expiry. features as with evicted.
 *  evicted: the last copy of a key left the cache. features is its state in DRAM, NULL if it was on flash. Mode paper
 *    stops counting its reads; mode full goes on.
 *  moved: the object left DRAM for flash, or has expired; features is its state until then.
 *  made: the object begins empty, before a client writes its value. As written, but it is no access.
 */
void clf_note_made(struct clf *clf, uint64_t hash, const struct clf_features *old, uint8_t *past, uint64_t now_ms);
void clf_note_written(struct clf *clf, uint64_t hash, const struct clf_features *old, uint8_t *past, uint64_t now_ms);
void clf_note_read(struct clf *clf, uint64_t hash, const struct clf_features *features, uint64_t now_ms);
void clf_note_read_on_flash(struct clf *clf, uint64_t hash, uint64_t now_ms);
void clf_note_missed(struct clf *clf, uint64_t hash, uint64_t now_ms);
void clf_note_deleted(struct clf *clf, uint64_t hash, const struct clf_features *features, uint64_t now_ms);
void clf_note_evicted(struct clf *clf, uint64_t hash, const struct clf_features *features, uint64_t now_ms);
void clf_note_moved(struct clf *clf, uint64_t hash, const struct clf_features *features, uint64_t now_ms);

/* Tells the measured time from a segment's write to its reclaim. A quarter of it is the horizon in mode full if
   config.horizon_ms is 0. */
void clf_set_residence(struct clf *clf, uint64_t residence_ms);

/* ---- scores: rules that ask at reads and writes ----------------------------------------------------- */

/*
 * Under the simple rules and in mode paper an object may qualify whenever it is written or read. Returns its
 * score: it qualifies for flash at >= 0, and higher is better. Under SVM the score is the decision value of the model
 * less the budget's threshold; without a model, and under the simple rules, it is +1 or -1 with a little rank by reads
 * (and mean gap). An object that was never read scores -1 under SVM. A history is what features->past says: under
 * second-hit and read-or-second-hit clf_note_written fills it in. What a rule of another kind left there counts too, so
 * that after a change of the rule a key may seem to have a history until it is forgotten.
 */
float clf_score(struct clf *clf, uint64_t hash, const struct clf_features *features);

/* ---- worth: rules that ask when an object would be evicted --------------------------------------- */

/*
 * Under such a rule no object may go to flash before the hand would evict it; then everything is known of it, and what
 * DRAM keeps anyway is never written. The same question is asked when the segment of an object on flash is reclaimed.
 * The worth is the binary logarithm of the expected accesses for each byte of the record. An object goes to flash, or
 * stays there, if its worth is at least the threshold that the budget makes (clf_budget).
 */

/* Do objects keep the paper's first, last and max gap? They do in mode paper. Constant. */
bool clf_keeps_gaps(const struct clf *clf);

/* Is the rule in force of this kind? FREQ is, and SVM in mode full. Then clf_score is of no use. */
bool clf_asks_at_eviction(const struct clf *clf);

/* An object that may go to flash, or stay there. */
struct clf_object {
	uint64_t hash;
	const struct clf_features *features;
	uint32_t record_bytes; /* on flash, > 0 */
	uint32_t ttl_seconds; /* left; 0: it doesn't expire */
};

/* Returns the worth of an object. */
float clf_worth(struct clf *clf, const struct clf_object *object, uint64_t now_ms);
/* Returns the least worth that is admitted now. */
float clf_threshold(const struct clf *clf);
/* Does the budget leave anything out now? */
bool clf_budget_binds(const struct clf *clf);
/* Offers an object in DRAM that would be evicted to flash. True: it is admitted. To be asked once for a stay. The
   object becomes a subject of the sampler. */
bool clf_offer(struct clf *clf, const struct clf_object *object, uint64_t now_ms);
/* Fills in the features, for a stay that begins now, of an object whose segment is reclaimed; was_read: on flash.
   clf_offer then tells whether it stays. */
void clf_features_again(struct clf *clf, uint64_t hash, bool was_read, uint64_t now_ms, struct clf_features *out);

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

/* What was written since the last call, and what may be. */
struct clf_written {
	double seconds; /* since the last call */
	uint64_t app_bytes; /* key and value of what applications wrote */
	uint64_t flash_bytes; /* what went to the device */
	double limit; /* allowed bytes per second; 0: none is set */
	double ratio; /* allowed bytes for each byte of applications; 0: none is set. Not for rules that ask at reads */
	bool held_up; /* the store's own cap held a segment back */
	bool offline; /* the flash takes no writes now */
	bool filling; /* the flash has segments that hold nothing: the ratio holds nothing back */
};

/*
 * The write budget: moves the threshold so that the flash writes stay within what is allowed. Under rules that ask at
 * reads a controller does that by the rate of writing; a rate that the store's own cap holds down never raises the
 * threshold, so held_up counts as more than the limit. Under the others the threshold follows from what was offered.
 * The store calls this about once a second; it ages the counts too.
 */
void clf_budget(struct clf *clf, const struct clf_written *written);

struct clf_status {
	bool model_in_use; /* the next two are 0 without one, weights and bias too */
	enum clf_origin model_origin;
	bool judged; /* on samples of this process; precision, recall and hits are 0 before */
	uint64_t model_age_ms;
	uint64_t model_samples;
	uint64_t samples_waiting; /* sampled keys whose horizon still runs */
	uint64_t tracked_keys;
	double precision, recall; /* of the model in use, on held-out samples */
	double positive_share; /* share of flashy samples at the last training */
	double admitted_share; /* share of the held-out samples that the model admits */
	double read_once_share, second_hit_share; /* shares of them that the simple rules admit */
	double read_once_precision, read_once_recall;
	/* Mode full: the shares of all later accesses that go to what the model, freq and second-hit choose, each as
	   many bytes. */
	double model_hits, freq_hits, second_hit_hits;
	double threshold; /* the least worth, or score, that is admitted; it holds nothing back at -64, or at 0 */
	double weight[CLF_FEATURES];
	double bias;
	uint64_t horizon_ms;
	char reason[96]; /* tells why the last model is used or not */
};
/* Fills out with a snapshot. Takes leaf locks. */
void clf_get_status(struct clf *clf, struct clf_status *out);
/* A sample whose label is known. */
struct clf_labelled {
	double feature[CLF_FEATURES]; /* raw: reads, times in seconds, bytes; in mode paper the first five alone */
	double by_count,
		by_model; /* log2 of the accesses to expect, in units of aged counts; by_model is NaN without one */
	double size_octaves; /* worth is less by these: log2 of the record's bytes times the size exponent; 0 in mode paper */
	uint32_t accesses; /* that came within the horizon */
	bool held_out; /* its key is never trained with */
	uint64_t id; /* of no two samples the same, but for chance */
};
/* Returns the number of labelled samples that the classifier still has, judged by the model in use now, or FS_ENOMEM. The
   caller frees *out by mem_free (NULL after an error). Takes leaf locks. Changes nothing. */
FS_MUST_CHECK long clf_get_samples(struct clf *clf, struct clf_labelled **out);

/* Returns the memory of the classifier, without what a training takes while it runs. */
size_t clf_memory_bytes(const struct clf *clf);
/* Returns the part of clf_memory_bytes that was never touched and so is not resident. Asks the kernel about each
   page. */
size_t clf_untouched_bytes(const struct clf *clf);

/* ---- over a clean stop (saved.c) --------------------------------------------------------------- */

#define CLF_COUNTS_UNIT 64u /* bytes: counts are copied in such pieces */

/* Puts the part PARTS_CLASSIFIER: the threshold that the budget makes, with its history. Nobody else uses the classifier
   meanwhile. */
void clf_save(struct clf *clf, struct parts_writer *writer);
/* Takes the part over. *same: it was saved under the same options and sizes; otherwise nothing of it is used, and the
   counts that follow must not be merged. FS_OK, or a code of base/parts.h. Before anybody uses the classifier. */
FS_MUST_CHECK int clf_load(struct clf *clf, struct parts_reader *reader, bool *same);
/* Returns the bytes of all counts of keys. */
uint64_t clf_counts_bytes(const struct clf *clf);
/* Copies length bytes of the counts, from this one on; both are multiples of CLF_COUNTS_UNIT. Any thread; takes leaf locks,
   as the next does. */
void clf_counts_copy(struct clf *clf, uint64_t from, void *out, uint64_t length);
/* Adds counts that were copied in the run before, as far as keys have none yet. After clf_load. Any thread. */
void clf_counts_merge(struct clf *clf, uint64_t from, const void *bytes, uint64_t length);

#endif
