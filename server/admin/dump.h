/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "lru_crawler metadump" and "mgdump": a list of all objects, in DRAM and on flash, sent to the connection that asked.
 *
 *   worker: dump_begin --conn_lend--> dump thread: store_walk --> 64 KiB of lines at a time --> loan_send
 *           <--------------------------loan_return-------- END, and the connection goes on
 *
 * There is one dump at a time, as in memcached. So a client that takes nothing for DUMP_STALL_MS is closed.
 *
 * Threads: start, stop and destroy belong to the main thread; dump_begin to the connection's worker.
 */
#ifndef FS_SERVER_ADMIN_DUMP_H
#define FS_SERVER_ADMIN_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define DUMP_STALL_MS 60000u
#define DUMP_CLASSES 256u /* more than there are */

struct conn;
struct dump;
struct store;

enum dump_form {
	DUMP_META, /* key=a%3Ab exp=-1 la=1795194693 cas=1 fetch=no cls=1 size=61; END */
	DUMP_MG /* mg KEY, or mg BASE64 b; EN */
};

/* What to dump, and how. */
struct dump_wish {
	enum dump_form form;
	bool ok_first; /* the first line is OK */
	bool blank_last; /* DUMP_META: a blank is before each line's end */
	bool all; /* all classes: classes is not read */
	bool classes[DUMP_CLASSES]; /* by store_class_bytes */
};

/* Starts the thread, which sleeps until a dump begins. FS_OK: *out is the caller's. FS_ESYS or FS_ENOMEM: no thread
   runs. */
FS_MUST_CHECK int dump_start(struct dump **out, struct store *store);
/* Ends the dump under way and begins no other; its loan is back when this returns. NULL is nothing. */
void dump_stop(struct dump *dump);
/* Frees it, when the workers have ended. NULL is nothing. */
void dump_destroy(struct dump *dump);

/*
 * Sends this connection, of which nothing is pending, the objects that the wish names.
 * FS_OK: the protocol returns CONN_LEND. FS_EBUSY: another dump is under way. FS_EINVAL: such a connection can't be
 * lent (UDP). Takes a leaf lock.
 */
FS_MUST_CHECK int dump_begin(struct dump *dump, struct conn *conn, const struct dump_wish *wish);

#endif
