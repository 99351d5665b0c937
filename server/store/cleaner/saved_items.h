/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects in DRAM over a clean stop. At the stop the best candidates for flash go into segments, and then all other
 * objects into a file of the state directory (base/parts.h), the last used first. The next start judges the file's
 * head, removes the file before the first command, and loads the objects while clients are already served.
 *
 *   stop    candidates -> segments | PARTS_ITEMS_HEAD, PARTS_CLASSIFIER, PARTS_ITEMS 0, 1, ..., PARTS_COUNTS 0, 1, ...
 *           -> file durable -> state of the flash
 *   start   head judged -> file removed, durable -> first command | loader: each object, under its key's stripe
 *
 * Why nothing stale comes back: the file was written when no command ran any more, it is used once, by the next start
 * of the same daemon (boot, flash, attach epoch; its name, or that of kin which covers it), and an object is loaded only if
 * no command has changed its key since, which `changed` knows. A flush_all covers the ids of saved objects, loaded or
 * not. What is skipped is a lost cache entry.
 *
 * Threads: the start and the stop belong to the store's one thread; the loader is a thread of its own, which takes one
 * stripe at a time, and does its I/O without one.
 */
#ifndef FS_STORE_SAVED_ITEMS_H
#define FS_STORE_SAVED_ITEMS_H

#include "base/parts.h"
#include "server/store/cleaner/cleaner.h"
#include "server/store/state/attach.h"

#define SAVED_PATH_BYTES 8300 /* of --state-dir and the name of the flash */
#define SAVED_CHUNK_BYTES (1u << 20) /* of a part PARTS_ITEMS, unless one object is larger */

/* PARTS_ITEMS_HEAD. Times are the boot-time clock's. */
struct saved_head {
	uint8_t uuid[16]; /* of the flash; zeros without flash */
	uint64_t attach_epoch; /* of the run that ended; 0 without flash */
	uint64_t daemon; /* a hash of store_config.daemon */
	char boot_id[BOOT_ID_BYTES];
	uint64_t stopped_us, origin_us;
	uint64_t flush_cas, cas_next;
	uint64_t flush_at; /* the store's second of a pending flush_all, 0: none */
	uint64_t objects; /* in DRAM at the stop: no fewer than in the file */
	uint64_t classifier; /* 1: PARTS_CLASSIFIER comes next, and PARTS_COUNTS behind the objects */
};

/* The head of a part PARTS_ITEMS. Behind it, each at a multiple of 8: struct saved_item, key, value. */
struct saved_chunk {
	uint32_t objects;
	uint32_t last; /* 1: no further part of the kind */
};

struct saved_item {
	uint64_t cas, shown_cas; /* shown_cas: a client's own id; 0: none */
	uint32_t value_length, client_flags, expiry;
	struct clf_features features;
	uint8_t key_length, state, marks; /* state: CLOCK, ITEM_FETCHED, ITEM_CANDIDATE; marks: enum item_mark */
	uint8_t unused[5];
};

_Static_assert(sizeof(struct saved_item) == 48 && sizeof(struct saved_chunk) == 8, "the file's layout");

/* The head of a part PARTS_COUNTS. Behind it are counts of the classifier from this byte on; in the last part, none. */
struct saved_counts {
	uint64_t from;
};

/* Returns the bytes that an object takes in the file. */
static inline uint64_t saved_bytes(uint64_t key_length, uint64_t value_length)
{
	return (sizeof(struct saved_item) + key_length + value_length + 7) & ~7ull;
}

/* Why objects of the last run are in DRAM, or not. */
enum saved_start {
	SAVED_START_NO_STATE_DIR,
	SAVED_START_WARM,
	SAVED_START_OFF,
	SAVED_START_NO_FILE,
	SAVED_START_UNREADABLE,
	SAVED_START_VERSION,
	SAVED_START_DAMAGED,
	SAVED_START_OTHER_DAEMON,
	SAVED_START_OTHER_FLASH,
	SAVED_START_OTHER_START,
	SAVED_START_BOOT,
	SAVED_START_CLOCK,
	SAVED_START_DOWNTIME,
	SAVED_START_KEPT,
	SAVED_START_NO_MEMORY
};

/* Returns a start in a word, for /metrics, and as a text for the log and stats. Static storage. Any thread. */
const char *saved_start_word(enum saved_start start);
const char *saved_start_text(enum saved_start start);

/* ---- saved_items.c ----------------------------------------------------------------------------- */

/* Fills in the path of the store's file: its name is that of the flash, or "dram" without one. There is a state
   directory. */
void saved_path(const struct store *store, char out[SAVED_PATH_BYTES]);
/* The same for the flash at flash_path; NULL: without one. */
void saved_path_of(const char *state_dir, const char *flash_path, char out[SAVED_PATH_BYTES]);
/* Fills in the head for a stop at this moment. False: the boot can't be told, so no start would believe the file. */
FS_MUST_CHECK bool saved_head_make(struct store *store, struct saved_head *out);
/* May this start use a file with this head? SAVED_START_WARM, or why not. */
enum saved_start saved_head_judge(struct store *store, const struct saved_head *head);
/* Does this run change what a file with this head holds: is it this daemon's, or one of its kin's? */
FS_MUST_CHECK bool saved_is_made_stale(const struct store *store, const struct saved_head *head);
/* Removes such files that earlier runs have left under other names, as with another flash. Does I/O. False: one can't be removed, which is logged. */
FS_MUST_CHECK bool saved_forget_others(struct store *store);

/* ---- load_items.c ------------------------------------------------------------------------------ */

struct loader_figures {
	enum saved_start start;
	bool loading;
	uint64_t loaded; /* objects */
	uint64_t skipped; /* changed since, expired, flushed, too large, or perhaps on flash */
	uint64_t left; /* at most so many had no room */
};

/* Judges the file, and removes it durably. If it may be used, takes over the last run's time, flush mark and, without
   flash, ids, and gets ready to load. After the stripes and, with flash, restart_load; before any other thread. */
void loader_open(struct store *store);
/* Starts the loader's thread, if there is something to load. FS_OK; FS_ESYS (errno). */
FS_MUST_CHECK int loader_start(struct store *store);
/* Does a step: loads one part. True: there is more. The loader's thread, or without one the caller's. Does I/O. */
bool loader_step(struct store *store);
/* Returns when the thread has ended; what it had not loaded is lost. */
void loader_stop(struct store *store);
/* Frees it. The thread doesn't run. */
void loader_close(struct store *store);
/* Fills out. Any thread. */
void loader_get_figures(const struct store *store, struct loader_figures *out);

#endif
