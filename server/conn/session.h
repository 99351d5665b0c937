/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session: the state that a protocol keeps between two calls of its input(). It lies in the connection, so that a
 * connection is one allocation. It is zeroed when the connection opens.
 *
 * Threads: the connection's worker.
 */
#ifndef FS_SERVER_CONN_SESSION_H
#define FS_SERVER_CONN_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "server/store/store.h"

enum session_state {
	SESSION_LINE, /* a command starts */
	SESSION_KEYS, /* in the keys of a multiget; the line stays in the input until the last one */
	SESSION_BODY, /* a value is being read into its item */
	SESSION_SWALLOW, /* the value of a refused command is being skipped */
	SESSION_TOKEN /* text: user and password of -Y come next */
};

struct session {
	uint8_t state; /* enum session_state */
	uint8_t op; /* KEYS: enum store_op, GET or GAT */
	bool show_cas; /* KEYS: gets, gats */
	uint8_t keys; /* KEYS: keys since one of them last counted as a command */
	struct store_fate fate; /* KEYS: the fate that the flash reads of all its keys share */
	uint32_t expiry; /* KEYS: of gat, as the store's seconds */
	uint32_t scanned; /* LINE: bytes of the input that are known to hold no line end */
	uint32_t keys_end; /* KEYS: the end of the keys, from the start of the buffer ... */
	uint32_t line_end; /* ... and the start of the next command */
	uint64_t swallow; /* SWALLOW: bytes that are left; TOKEN: the length of the token */
	/* BODY: the command, with its item; SWALLOW: a refused set, whose answer follows the value, or NULL */
	struct reply *reply;
	const char *late; /* SWALLOW: the answer that follows the value, or NULL; constant text */
	struct auth_sasl *sasl; /* binary: the exchange, once one has begun */
};

#endif
