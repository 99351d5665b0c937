/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "lru_crawler metadump" and "mgdump": a list of all objects, in DRAM and on flash, sent to the connection that asked.
 *
 *   worker: dump_begin --conn_lend--> dump thread: store_walk --> 64 KiB of lines at a time --> loan_send
 *           <--------------------------loan_return-------- END, and the connection goes on
 *
 * One at a time, as in memcached: so a client that takes nothing for DUMP_STALL_MS is closed.
 *
 * Threads: start, stop and destroy from the main thread; the others from any.
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

FS_MUST_CHECK int dump_start(struct dump **out, struct store *store);
void dump_stop(struct dump *dump); /* ends the one under way, takes no more; NULL is nothing */
void dump_destroy(struct dump *dump); /* when the workers have ended */

/* A barrier of this connection: it is sent the objects of these classes (store_class_bytes; NULL: all). 0: return CONN_LEND.
   FS_EBUSY: another one is under way. FS_EINVAL: such a connection can't be lent (UDP). */
FS_MUST_CHECK int dump_begin(struct dump *dump, struct conn *conn, enum dump_form form,
			     const bool classes[DUMP_CLASSES]);

#endif
