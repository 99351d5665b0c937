/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server that is watched: a connection that gets its lines, and now and then one that asks for its counters.
 *
 * Threads: one. Ownership: close frees all.
 */
#ifndef FS_TOOLS_RECORD_SOURCE_H
#define FS_TOOLS_RECORD_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/common/client.h"

#define SOURCE_BYTES (1u << 20)
#define SOURCE_ERROR_BYTES 512

struct source {
	struct client client;
	bool tells_deletes; /* the server has the stream "deletions" */
	size_t start, end; /* of the unread bytes in buffer */
	char *buffer;
};

/* Connects, logs in and watches. server is HOST:PORT or the path of a unix socket. FS_OK, or an error with a message. Blocks
   for at most timeout_us for each of a few steps. */
int source_open(struct source *source, const struct access *access, const char *server, uint64_t timeout_us,
		char error[SOURCE_ERROR_BYTES]) FS_MUST_CHECK;
void source_close(struct source *source);

/* Waits for bytes, at most wait_ms or until a signal comes. FS_OK; FS_EAGAIN: there are none; FS_ESYS: the connection
   has ended, and client_why tells why. */
int source_read(struct source *source, int wait_ms) FS_MUST_CHECK;

/* Returns the next whole line without its end, which stays valid until source_read, or NULL. */
const char *source_line(struct source *source, size_t *length);

/* Asks over a connection of its own how many lines the server's threads have dropped since its start, for all who watch.
   -1: the server doesn't tell. */
int64_t source_dropped(const struct access *access, const char *server, uint64_t timeout_us);

#endif
