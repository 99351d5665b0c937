/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of the shim: calls.c replaces the program's calls, drive.c holds their requests.
 *
 * Nothing here allocates, so that the shim does not change the figures of the program's malloc. The real calls are
 * system calls, so that no symbol has to be looked up before the first of them.
 */
#ifndef FS_TOOLS_SLOWDRIVE_SLOWDRIVE_INTERNAL_H
#define FS_TOOLS_SLOWDRIVE_SLOWDRIVE_INTERNAL_H

#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/slowdrive/slowdrive.h"

enum side { SIDE_READS, SIDE_WRITES, SIDES };

/* Begins; called once, before any other function. control outlives the program's requests. */
void drive_open(struct slowdrive *control);

/* The following functions may be called by any thread. */

/* Returns true if requests of this side need not wait and are only counted. The answer may be stale when settings
   change. */
bool drive_is_plain(enum side side);
/* Counts a request that did not wait. */
void drive_count(enum side side, uint64_t bytes);

/* Queues the request, which the thread submits when it is due. False: the queue is full. Does not block. */
FS_MUST_CHECK bool drive_hold(enum side side, aio_context_t context, struct iocb *iocb, uint64_t bytes);

/* Blocks until a request of this size is due. Returns 0, or EIO if the request must fail. */
FS_MUST_CHECK int drive_wait(enum side side, uint64_t bytes);

/* Makes the system call. Returns the number of requests taken, or a negative errno. */
FS_MUST_CHECK long drive_submit(aio_context_t context, long count, struct iocb **iocbs);

#endif
