/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a daemon in its state directory, from its start until the last byte is saved. A start may come while the run
 * before it still drains or saves: its port is free by then. It waits, so that what it serves is what the last run has left,
 * and nothing is saved behind its back.
 *
 *   instance-HASH.lock   HASH: of the daemon's name. Content: the process's id, then its endpoints (endpoints.h), a line each
 *
 * Options may change between two runs: a daemon that has listened to all addresses listens to one of them. Such runs have
 * different names, and clients in common. So a start looks at the files of all daemons, waits for those that overlap, and
 * returns them as its kin: what they have saved is usable (store.h, store_kin), or stale once this one serves.
 *
 * The lock is flock(2)'s, on a file that stays: it ends with the process, however that ends. A start that finds its file
 * removed, or made anew, once it has the lock, opens the new one and waits for that. Where the file can't be made or
 * locked, as in a directory that can't be written, the start goes on without, and the log says so.
 *
 * Threads: the main thread's. Everything here does I/O.
 */
#ifndef FS_STORE_DAEMON_LOCK_H
#define FS_STORE_DAEMON_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define DAEMON_LOCK_HOLDER_BYTES 32

struct daemon_lock;
struct seg_owner;
struct store_kin; /* store.h */

struct daemon_lock_config {
	const char *folder; /* --state-dir, or --region-dir without it; NULL: nothing is locked */
	const char *endpoints; /* of this daemon */
	const struct seg_owner *owner; /* gets a file that is made; NULL: the process keeps it */
	/* Called while another process has a lock; holder: its id, 0 if unknown. It sleeps, and returns true to have the lock tried
	   again; false: the start ends. */
	bool (*wait)(void *context, pid_t holder);
	void *context;
};

/* FS_OK: *out is the caller's. FS_EBUSY with the reason: wait() has answered false. config may be dropped. */
FS_MUST_CHECK int daemon_lock_take(struct daemon_lock **out, const struct daemon_lock_config *config, char reason[256]);
/* Returns the daemon's name. It lives as long as the lock, as do the kin. */
const char *daemon_lock_name(const struct daemon_lock *lock);
/* Returns the array of the daemon's kin, of *count. */
const struct store_kin *daemon_lock_kin(const struct daemon_lock *lock, unsigned *count);
/* Fills out with the words for wait()'s holder: "process 7", or "another process" where it is unknown. */
void daemon_lock_holder(pid_t holder, char out[DAEMON_LOCK_HOLDER_BYTES]);
/* Gives it back, and frees it. NULL is nothing. */
void daemon_lock_release(struct daemon_lock *lock);

#endif
