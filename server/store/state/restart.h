/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects on flash over a clean stop. At the stop the segment table, the index and a few fields of the store are written
 * into a file of the state directory, and then the superblock gets its clean mark. The next start uses the file only if
 * everything that the two share agrees, and starts cold otherwise (enum store_start). It raises the attach epoch and
 * erases the mark before it serves clients, so that no file is ever used twice.
 *
 *   stop    state file durable -> clean mark durable -> region invalid
 *   start   region judged (attach.h) -> else file judged and read -> else journal judged (losses.h) -> epoch raised and
 *           mark erased, durable -> file removed -> this run's journal begun -> first command -> recount (recount.h)
 *
 * All of the file is read, and agrees with its checksums, before the first command: nothing is loaded afterwards that could
 * undo a change. Each slot is judged when it is looked up, and counted while clients are served.
 *
 * A start changes nothing on flash or in a valid region before it has judged everything. A further source of state is
 * one more call beside attach_load and restart_load in open_index (store.c).
 *
 * Why nothing stale comes back: a slot is cleared before the command that makes it invalid is answered, so the index as
 * it stands when the last worker has ended leads to valid objects alone. What DRAM held is lost. Expiries, a pending
 * flush_all and the times of segments are readings of the boot-time clock, which goes on in the same boot whatever the
 * wall clock does; the flush mark is saved with them.
 *
 * The pause that --restart-max-downtime allows is the time without service. A start that fails, or is killed, before it
 * serves clients doesn't end the pause: until store_serves, this run's state file, region and journal keep the time at
 * which an earlier run served last (restart_served_us), so the next start judges the sum.
 *
 * One thread: the one that opens, stops and closes the store. restart_served_us: any.
 */
#ifndef FS_STORE_RESTART_H
#define FS_STORE_RESTART_H

#include "server/store/state/state.h"

#define BOOT_ID_BYTES 40 /* 36 characters and zeros */

/* The store's part of the file (PARTS_STORE). Times are the boot-time clock's; both may lie before the boot, by which they
   wrap around (losses_take_times). */
struct saved_store {
	uint8_t uuid[16]; /* of the flash */
	uint64_t attach_epoch; /* of the run that ended */
	char boot_id[BOOT_ID_BYTES];
	uint64_t stopped_us, origin_us; /* stopped_us: as of restart_served_us */
	uint64_t flush_cas;
	uint64_t flush_at; /* the store's second of a pending flush_all, 0: none */
	uint64_t index_kind; /* enum store_index */
};

enum restart {
	RESTART_COLD, /* index and segments are as they were: empty */
	RESTART_SPOILT, /* they are filled in part, and have to be made anew */
	RESTART_WARM
};

/* Returns a start in a word, for /metrics. Static storage. Any thread. */
const char *store_start_word(enum store_start start);
/* Loads what the state file has, if it may: segments, index, and the store's own fields. Fills store->start, unless the
   region's answer stands; logs nothing. index and segments are empty, the configuration is the store's. */
enum restart restart_load(struct store *store);
/* The store starts cold for this reason after all, although restart_load or attach_load was right with what it found. */
void restart_refuse(struct store *store, enum store_start why);
/* Takes flash and region over, reserves the first CAS ids, removes the state file, and logs how the flash starts. A file
   of another flash stays. After restart_load and attach_load. FS_OK, or a code of seg_take_over and seg_reserve_cas. */
FS_MUST_CHECK int restart_take_over(struct store *store);

/* ---- what attach.c shares ---------------------------------------------------------------------- */

/* Sets store->start and its text; more may be "". */
void restart_tell(struct store *store, enum store_start start, const char *more);
/* Does the flash start with objects of the last run? */
bool restart_is_warm(const struct store *store);
/* Fills in the identity of this boot of the machine, of BOOT_ID_BYTES. False: it can't be read. */
FS_MUST_CHECK bool restart_boot_id(const struct store *store, char *out);
/* Returns how long ago that reading of the clock was, in microseconds; UINT64_MAX: no store with this origin can have had
   it. */
uint64_t restart_pause_us(const struct store *store, uint64_t served_us, uint64_t origin_us);
/* Tells why not, if the last run ended too long ago, or at a time to come. */
void restart_judge_downtime(struct store *store, uint64_t stopped_us, uint64_t origin_us);
/* This start goes on with what a run has left that served clients at that reading of the clock for the last time. Before
   any other thread runs. */
void restart_resume(struct store *store, uint64_t served_us);
/* Returns the reading of the clock at which clients were last served; now, if this run serves them. Any thread. */
uint64_t restart_served_us(const struct store *store);

#endif
