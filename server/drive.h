/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A socket by which a test drives the daemon, in builds with fault points: FLASHIELD_DRIVE names its path. A line is a
 * command, and is answered by a line. Clients are served one after the other.
 *
 *   place KEY ...  puts these keys' objects on flash: "PLACED N"
 *   place          puts all objects on flash that may go there: "PLACED N"
 *   rest           waits until keeper and cleaner have nothing to do: "RESTS"
 *   clock stand    the boot-time clock stands from now on: "OK"
 *   clock go       it goes on from where it stood: "OK"
 *   clock MS       it is moved forward: "OK"
 *   another line   "ERROR"
 *
 * Threads: the main thread calls these functions.
 */
#ifndef FS_SERVER_DRIVE_H
#define FS_SERVER_DRIVE_H

#include "base/error.h"

struct store;

#ifdef FS_FAULTS
/* Makes the socket, before privileges are dropped, so that the path may lie anywhere. FS_OK, also where nothing names one;
   FS_ESYS. */
FS_MUST_CHECK int drive_listen(void);
/* Starts the thread that serves it. FS_OK or FS_ESYS. store outlives it. */
FS_MUST_CHECK int drive_start(struct store *store);
/* Ends the thread. Without effect where none runs. */
void drive_stop(void);
#else
static inline int drive_listen(void)
{
	return FS_OK;
}
static inline int drive_start(struct store *store)
{
	(void)store;
	return FS_OK;
}
static inline void drive_stop(void)
{
}
#endif

#endif
