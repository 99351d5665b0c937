/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the binary protocol: binary.c finds the packets in the input and runs them, binary_keys.c those on keys,
 * binary_admin.c the others, binary_answer.c makes the answers. All on the connection's worker.
 */
#ifndef FS_SERVER_PROTO_BINARY_INTERNAL_H
#define FS_SERVER_PROTO_BINARY_INTERNAL_H

#include "server/proto/binary.h"
#include "server/proto/proto.h"
#include "server/proto/proto_internal.h"

#define BINARY_FLAGS_BYTES 4u /* client flags: extras of an answer with a value */
#define BINARY_HEAD_BYTES (BINARY_HEADER_BYTES + BINARY_FLAGS_BYTES) /* before the key in a reply's text */

enum binary_step {
	BINARY_NEXT,
	BINARY_WAIT, /* conn->wait is set; nothing was consumed */
	BINARY_CLOSE
};

/* What a reply (conn.h) remembers of its packet, in reply->own. */
struct binary_own {
	uint32_t opaque;
	uint8_t opcode;
	bool with_key;
};
_Static_assert(sizeof(struct binary_own) <= REPLY_OWN_BYTES, "fits");

/* get, gat, touch, delete, incr, decr. */
enum binary_step binary_key(struct conn *conn, const struct binary_command *command);
/* set ... prepend: makes the item, reads what is there of its value. */
enum binary_step binary_store(struct conn *conn, const struct binary_command *command);
/* Goes on with the value. False: it is not complete. */
bool binary_store_go_on(struct conn *conn);

/* Without keys (binary_admin.c). */
enum binary_step binary_noop(struct conn *conn, const struct binary_command *command);
enum binary_step binary_version(struct conn *conn, const struct binary_command *command);
enum binary_step binary_stat(struct conn *conn, const struct binary_command *command);
enum binary_step binary_flush(struct conn *conn, const struct binary_command *command);
enum binary_step binary_verbosity(struct conn *conn, const struct binary_command *command);
enum binary_step binary_quit(struct conn *conn, const struct binary_command *command);

/* Logging in (binary_sasl.c). The value of auth and step lies in the input behind the key, complete. */
#define BINARY_SASL_MAX (64u << 10) /* bytes of it; what is longer is refused */
enum binary_step binary_sasl_list(struct conn *conn, const struct binary_command *command);
enum binary_step binary_sasl_exchange(struct conn *conn, const struct binary_command *command);

/* struct protocol's foresee (binary_foresee.c). */
unsigned binary_foresee(const struct conn *conn, struct foreseen *out, unsigned most);

/* An answer with an error's text, or without anything. */
void binary_put_status(struct conn *conn, const struct binary_command *command, enum binary_status status);
/* The header of such an answer alone, of BINARY_HEADER_BYTES: who puts the body does it in pieces. */
void binary_make_header(char *out, const struct binary_command *command, enum binary_status status, uint16_t key_length,
			uint32_t body_length);
/* An answer with key and value: at most CONN_ROOM_BYTES together with the header. */
void binary_put(struct conn *conn, const struct binary_command *command, enum binary_status status, const char *key,
		uint32_t key_length, const char *value, uint32_t value_length);

/* Answers a finished request into the output, and gives the reply back or queues it. */
void binary_answer(struct conn *conn, struct reply *reply);
/* The same for one that was pending: into the reply. */
void binary_compose(struct reply *reply);

#endif
