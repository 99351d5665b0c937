/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of the shim: calls.c stands in the place of the program's calls, drive.c holds their requests.
 *
 * Nothing here allocates: the program's malloc and its figures stay the program's. The real calls are system
 * calls, so that nothing has to be looked up before the first of them.
 */
#ifndef FS_TOOLS_SLOWDRIVE_SLOWDRIVE_INTERNAL_H
#define FS_TOOLS_SLOWDRIVE_SLOWDRIVE_INTERNAL_H

#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/slowdrive/slowdrive.h"

enum side { SIDE_READS, SIDE_WRITES, SIDES };

/* Called once, before any other; control outlives all. */
void drive_open(struct slowdrive *control);

/* True: requests of this side need not wait, and are only counted. A fair guess when settings change meanwhile. */
bool drive_is_plain(enum side side);
void drive_count(enum side side, uint64_t bytes);

/* Takes the request over, which the thread submits when it is due. False: the queue is full. */
bool drive_hold(enum side side, aio_context_t context, struct iocb *iocb, uint64_t bytes);

/* Blocks until a request of so many bytes is due. 0, or EIO: it is to fail. */
int drive_wait(enum side side, uint64_t bytes);

/* The system call: how many were taken, or a negative errno. */
long drive_submit(aio_context_t context, long count, struct iocb **iocbs);

#endif
