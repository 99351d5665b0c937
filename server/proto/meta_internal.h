/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the meta commands, which are part of the text protocol: meta_parse.c reads their lines, meta.c makes
 * requests of them, meta_answer.c makes the answers.
 *
 * Threads: all of it runs on the connection's worker; nothing takes a lock or blocks.
 */
#ifndef FS_SERVER_PROTO_META_INTERNAL_H
#define FS_SERVER_PROTO_META_INTERNAL_H

#include "base/error.h"
#include "server/proto/meta_parse.h"
#include "server/proto/text_internal.h"

/* The part of a reply's answer that its request doesn't have, in reply->own. */
struct meta_own {
	char answers[META_ANSWERS]; /* flags, in the order asked */
	uint8_t answer_count;
	uint8_t opaque_length;
	char opaque[META_OPAQUE_MAX];
	bool quiet;
	bool value; /* v: the value, or ma's number, is sent */
	bool encoded; /* b: the key is answered in base64 */
	bool before; /* t comes before T: the old time to live is answered */
	uint8_t made; /* t of an object that this command made: 0 before N and T, 1 between them, 2 behind them */
	bool unless_same; /* mg: an object with the id known_cas is answered without its value */
	uint32_t length; /* ms: of the value that was sent */
	uint64_t known_cas;
};
_Static_assert(sizeof(struct meta_own) <= REPLY_OWN_BYTES, "meta_own fits a reply");

/* Returns the meta command's part of a reply. */
static inline struct meta_own *meta_own(struct reply *reply)
{
	return (struct meta_own *)reply->own;
}

/* Executes mg, ms, md, ma or me; command->rest follows the name. (mn is text_meta_noop.) */
enum text_step meta_run(struct conn *conn, const struct text_command *command);

/* Returns true if this command names the key of a read-modify-write that is pending; conn->wait is set then. */
FS_MUST_CHECK bool meta_must_wait(struct conn *conn, const struct text_command *command);

/* Do what text_answer and text_compose do, for replies of meta's kinds. */
void meta_answer(struct conn *conn, struct reply *reply);
void meta_compose(struct reply *reply);

#endif
