/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * After a warm start, by the region or by the state file, the store serves from an index whose slots are not counted yet
 * (flashindex/recount.c). The cleaner counts them, before it writes or reclaims anything: a table's room, whether a segment is empty, and whether a segment's number
 * may be used again follow from whole counts. Objects that would move to flash stay in DRAM meanwhile, or are evicted, and
 * no object on flash is made a ghost as long as the hot bytes that are counted so far are below the threshold.
 *
 * While it is under way, figures of flash (objects, bytes, ghosts, slots used) lack what is not counted;
 * store_status.index.uncounted says so. A clean stop finishes it first, and a kill leaves it to the next start.
 *
 * Threads: the cleaner's; before it starts and when it has ended, the one that opens, stops and closes the store.
 */
#ifndef FS_STORE_RECOUNT_H
#define FS_STORE_RECOUNT_H

#include "server/store/state/state.h"

/* Goes on for a few milliseconds; logs the result at the end. False: there was nothing to do. */
bool recount_step(struct store *store);
/* Counts all that is left: 0.1 s for 20 million slots, or less. */
void recount_finish(struct store *store);

#endif
