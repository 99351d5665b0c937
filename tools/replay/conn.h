/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection: a socket with an output and an input buffer, its requests under way in the order of
 * their answers, and the requests that wait to be sent.
 *
 *   backlog  [ waits for its key | waits for room | ... ]   in trace order
 *   ring     [ sent, oldest first ............... ]         at most `depth`
 *
 * Threads: one owner.
 */
#ifndef FS_TOOLS_REPLAY_CONN_H
#define FS_TOOLS_REPLAY_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/common/client.h"

#define CONN_BACKLOG 128

enum op_kind { OP_GET, OP_SET, OP_ADD, OP_DELETE };

struct op {
	uint64_t ordinal; /* of the key: key * copies + copy */
	uint64_t sent_ns;
	uint32_t version; /* of the value that a get must find, or that a set or add writes */
	uint32_t value_size;
	uint32_t ttl_s;
	uint16_t app;
	uint8_t kind; /* enum op_kind */
	uint8_t key_size;
	bool measured;
	bool fill; /* a set that follows a miss */
	bool exclusive; /* other requests on this key wait for its answer */
};

struct buffer {
	char *bytes;
	size_t start; /* of the bytes that are not consumed */
	size_t end;
	size_t capacity;
};

struct conn {
	struct client client; /* ready */
	bool waits_for_output; /* EPOLLOUT is asked for */
	struct op *ring;
	uint32_t ring_mask;
	uint32_t head, tail; /* sent: head to tail, wrapping */
	struct op backlog[CONN_BACKLOG];
	uint32_t backlog_start, backlog_end;
	struct buffer in, out;
	uint64_t last_answer_ns;
};

/* Takes over a client that is ready; fini closes it. depth: the requests under way at most. */
void conn_init(struct conn *conn, const struct client *client, uint32_t depth);
void conn_fini(struct conn *conn);

static inline uint32_t conn_under_way(const struct conn *conn)
{
	return conn->tail - conn->head;
}

static inline uint32_t conn_backlog(const struct conn *conn)
{
	return conn->backlog_end - conn->backlog_start;
}

/* Makes room for `bytes` more bytes behind buffer->end, and returns it. Aborts when memory is out. */
char *buffer_reserve(struct buffer *buffer, size_t bytes);

/* Sends as much of the output buffer as the socket takes. FS_ESYS: the connection is broken; client_why. */
int conn_flush(struct conn *conn) FS_MUST_CHECK;

/* Reads once. FS_OK: more may be there if client_has_more; FS_EAGAIN: no bytes are there; FS_ESYS: the connection has
   ended, client_why. */
int conn_read(struct conn *conn) FS_MUST_CHECK;

#endif
