/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the protocols: the code that the text and the binary protocol share.
 *
 * Threads: the connection's worker.
 */
#ifndef FS_SERVER_PROTO_PROTO_INTERNAL_H
#define FS_SERVER_PROTO_PROTO_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "server/conn/conn.h"
#include "server/count/observe.h"

/*
 * Executes the request of a reply, and counts it if it is done at once. Returns true when it is done. Returns false when
 * it waits for flash: the caller queues the reply (conn_queue), and the network counts the request when it is done.
 */
static inline bool proto_execute(struct conn *conn, struct reply *reply)
{
	if (!store_execute(conn->store, &reply->request))
		return false;
	observe(conn, &reply->request);
	return true;
}

#endif
