/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "watch": connections that are sent what happens in the daemon (base/events.h), line by line.
 *
 *   worker: watch_join --conn_lend--> watch thread: drain events every 20 ms --> each watcher's buffer --> loan_send
 *
 * A watcher that reads too slowly has its lines skipped once its buffer (-o watcher_logbuf_size) is full, and is told how
 * many. What it sends is ignored; it watches until it closes.
 *
 * Threads: start, stop and destroy from the main thread; the others from any. The thread sleeps for good
 * while nobody watches.
 */
#ifndef FS_SERVER_ADMIN_WATCH_H
#define FS_SERVER_ADMIN_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WATCHERS_MAX 20u

struct conn;
struct watch;

/* buffer_bytes: of each watcher. 0, FS_ESYS or FS_ENOMEM. */
FS_MUST_CHECK int watch_start(struct watch **out, size_t buffer_bytes);
/* Gives all loans back, to be closed, and takes no more; the workers may still run. NULL is nothing. */
void watch_stop(struct watch *watch);
void watch_destroy(struct watch *watch); /* when they have ended */

/* A barrier of this connection: from now on it watches these streams (bits of enum event_stream). 0: return
   CONN_LEND; the watch thread answers OK, once everything that happens later will be told. FS_EFULL: there are WATCHERS_MAX. FS_EINVAL: such a connection can't be lent (UDP). FS_ENOMEM. */
FS_MUST_CHECK int watch_join(struct watch *watch, struct conn *conn, unsigned streams);

struct watch_status {
	unsigned watchers;
	uint64_t sent, skipped; /* lines to watchers */
};
void watch_get_status(const struct watch *watch, struct watch_status *out);

#endif
