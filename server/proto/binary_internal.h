/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the binary protocol: binary.c finds the packets in the input, binary_keys.c runs those on keys, binary_admin.c
 * the others, and binary_answer.c makes the answers.
 *
 * Threads: all of it runs on the connection's worker; nothing takes a lock or blocks, except the reports of binary_stat
 * and the helpers of libsasl2.
 */
#ifndef FS_SERVER_PROTO_BINARY_INTERNAL_H
#define FS_SERVER_PROTO_BINARY_INTERNAL_H

#include "base/error.h"
#include "server/proto/binary.h"
#include "server/proto/proto.h"
#include "server/proto/proto_internal.h"

#define BINARY_FLAGS_BYTES 4u /* client flags: extras of an answer with a value */
#define BINARY_HEAD_BYTES (BINARY_HEADER_BYTES + BINARY_FLAGS_BYTES) /* before the key in a reply's text */

enum binary_step {
	BINARY_NEXT, /* go on with the next packet, or with what the session's state says */
	BINARY_WAIT, /* conn->wait is set; nothing was consumed */
	BINARY_CLOSE
};

/* The part of its packet that a reply (conn.h) remembers, in reply->own. */
struct binary_own {
	uint32_t opaque;
	uint8_t opcode;
	bool with_key;
	bool silent; /* the delete of a refused set: it has no answer of its own */
};
_Static_assert(sizeof(struct binary_own) <= REPLY_OWN_BYTES, "fits");

/* Executes get, gat, touch, delete, incr or decr. */
enum binary_step binary_key(struct conn *conn, const struct binary_command *command);
/* Begins set, add, replace, append or prepend: makes the item; its value comes next. */
enum binary_step binary_store(struct conn *conn, const struct binary_command *command);
/* Goes on with that value. Returns true when the command is done, false when more input is needed. */
FS_MUST_CHECK bool binary_store_go_on(struct conn *conn);
/* Goes on with throwing a value away, and answers behind it. Returns true when the command is done,
   false when more input is needed. */
FS_MUST_CHECK bool binary_skip_go_on(struct conn *conn);

/* Commands without keys (binary_admin.c): each answers its command. */
enum binary_step binary_noop(struct conn *conn, const struct binary_command *command);
enum binary_step binary_version(struct conn *conn, const struct binary_command *command);
enum binary_step binary_stat(struct conn *conn, const struct binary_command *command);
enum binary_step binary_flush(struct conn *conn, const struct binary_command *command);
enum binary_step binary_verbosity(struct conn *conn, const struct binary_command *command);
enum binary_step binary_quit(struct conn *conn, const struct binary_command *command);

/* Logging in (binary_sasl.c). The value of auth and step lies in the input behind the key, complete. */
#define BINARY_SASL_MAX (64u << 10) /* bytes of it; a longer one is refused */
enum binary_step binary_sasl_list(struct conn *conn, const struct binary_command *command);
enum binary_step binary_sasl_exchange(struct conn *conn, const struct binary_command *command);

/* struct protocol's foresee (binary_foresee.c). */
unsigned binary_foresee(const struct conn *conn, struct foreseen *out, unsigned most);

/* Appends an answer of this status to the output, with the text of an error as its body, or without a body. */
void binary_put_status(struct conn *conn, const struct binary_command *command, enum binary_status status);
/* Writes the header of an answer, BINARY_HEADER_BYTES, into out. The caller puts the body behind it, in pieces if it is
   large. */
void binary_make_header(char *out, const struct binary_command *command, enum binary_status status, uint16_t key_length,
			uint32_t body_length);
/* Appends an answer with key and value, at most CONN_ROOM_BYTES together with the header. */
void binary_put(struct conn *conn, const struct binary_command *command, enum binary_status status, const char *key,
		uint32_t key_length, const char *value, uint32_t value_length);

/* Writes the answer to a finished request into the output; gives the reply back, or queues it with a large value. */
void binary_answer(struct conn *conn, struct reply *reply);
/* Writes the answer to a request that was pending into its reply, which is in the queue. */
void binary_compose(struct reply *reply);

#endif
