/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects on flash over a clean stop. At the stop the segment table, the index and a few fields of the store are written
 * into a file of the state directory, and then the superblock gets its clean mark. The next start raises the attach
 * epoch and erases the mark before it reads the file, so that no file is ever used twice; it uses the file only if
 * everything that the two share agrees, and starts cold otherwise (enum store_start).
 *
 *   stop    state file durable -> clean mark durable
 *   start   epoch raised and mark erased, durable (seg_open) -> file judged and read -> file removed -> first command
 *
 * Why nothing stale comes back: a slot is cleared before the command that makes it invalid is answered, so the index as
 * it stands when the last worker has ended leads to valid objects alone. What DRAM held is lost. Expiries, a pending
 * flush_all and the times of segments are readings of the boot-time clock, which goes on in the same boot whatever the
 * wall clock does; the flush mark is saved with them.
 *
 * One thread: the one that opens, stops and closes the store.
 */
#ifndef FS_STORE_RESTART_H
#define FS_STORE_RESTART_H

#include "server/store/state/state.h"

enum restart {
	RESTART_COLD, /* index and segments are as they were: empty */
	RESTART_SPOILT, /* they are filled in part, and have to be made anew */
	RESTART_WARM
};

/* Returns a start in a word, for /metrics. Static storage. Any thread. */
const char *store_start_word(enum store_start start);
/* Loads what the last run has left, if it may: segments, index, and the store's own fields. Fills store->start; logs
   nothing. index and segments are just opened, the configuration is the store's. */
enum restart restart_load(struct store *store);
/* The store starts cold for this reason after all, although restart_load was right with the file. */
void restart_refuse(struct store *store, enum store_start why);
/* Removes the state file, notes a warm start in the superblock, and logs how the flash starts. A file of another flash stays. After restart_load. */
void restart_consume(struct store *store);

#endif
