/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "watch": connections that are sent what happens in the daemon (base/events.h), line by line.
 *
 *   worker: watch_join --conn_lend--> watch thread: drain events every 1 to 20 ms --> each watcher's buffer --> loan_send
 *
 * A watcher that reads too slowly has its lines skipped once its buffer (-o watcher_logbuf_size) is full, and is told
 * how many. Bytes that it sends are ignored. It watches until it closes.
 *
 * Threads: start, stop and destroy belong to the main thread, watch_join to the connection's worker, the status to any.
 * The watch thread sleeps while nobody watches.
 */
#ifndef FS_SERVER_ADMIN_WATCH_H
#define FS_SERVER_ADMIN_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WATCHERS_MAX 20u

struct conn;
struct watch;

/* Starts the thread; each watcher gets a buffer of buffer_bytes. FS_OK: *out is the caller's. FS_ESYS or FS_ENOMEM. */
FS_MUST_CHECK int watch_start(struct watch **out, size_t buffer_bytes);
/* Gives all loans back, to be closed, and takes no more; the workers may still run. NULL is nothing. */
void watch_stop(struct watch *watch);
/* Frees it, when the workers have ended. NULL is nothing. */
void watch_destroy(struct watch *watch);

/*
 * From now on this connection, of which nothing is pending, watches these streams (bits of enum event_stream). FS_OK:
 * the protocol returns CONN_LEND; the watch thread answers OK as soon as all later events will be told. FS_EFULL: there
 * are WATCHERS_MAX watchers. FS_EINVAL: such a connection can't be lent (UDP). FS_ENOMEM. Takes a leaf lock.
 */
FS_MUST_CHECK int watch_join(struct watch *watch, struct conn *conn, unsigned streams);

struct watch_status {
	unsigned watchers;
	uint64_t sent, skipped; /* lines to watchers */
};
/* Fills out. Any thread; takes no lock. */
void watch_get_status(const struct watch *watch, struct watch_status *out);

#endif
