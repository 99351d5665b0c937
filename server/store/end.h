/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a run leaves to the next one, part of store.h: since when no client has been served; at the end the threads end,
 * what DRAM holds is saved, then the state of the flash, and all is freed. One thread.
 */
#ifndef FS_STORE_END_H
#define FS_STORE_END_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct store;

/* Clients are served from now on. A later start counts its pause from the end of the last run that called this: a run that
   fails before, or is killed, doesn't end the pause that restart_max_downtime_us allows. After store_start. */
void store_serves(struct store *store);

/* Ends the threads that run; waits for the write or read that the cleaner is in. One thread. */
void store_stop(struct store *store);

/* How store_save_items is to go. */
struct store_end {
	uint64_t deadline_us; /* of the store's clock: what is not saved by then is lost */
	_Atomic bool *cut; /* true: the deadline is now. Any thread sets it; NULL: nobody does */
	/* Called from time to time: so many bytes of so many are saved. NULL: not called. */
	void (*progress)(void *context, uint64_t bytes, uint64_t of_bytes);
	void *context;
};
/*
 * A clean end, before store_save: writes segments of candidates for flash while they fill them and segments are free,
 * and the other objects of DRAM, the last used first, into a file of the state directory, which the next start loads.
 * All objects leave DRAM.
 * To be called when every worker is destroyed and nothing is on its way. True: done, as far as the deadline
 * allowed, and the log has a line. False: there is no state directory or no time, or it failed, which is logged. One
 * thread; waits for file system and device.
 */
bool store_save_items(struct store *store, const struct store_end *end);
/*
 * A clean end: writes into the state directory what the next start needs to serve the objects on flash, and marks the
 * flash. True: done. False: there is no flash or no state directory, or it failed, which is logged; the next start is cold.
 * One thread; waits for file system and device.
 */
bool store_save(struct store *store);

/* Frees everything. store_stop was called before, and every worker is destroyed. One thread. */
void store_close(struct store *store);

#endif
