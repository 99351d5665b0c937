/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the text protocol: text.c finds the commands in the input, text_keys.c runs those on keys, text_admin.c and
 * text_tuning.c the others, and text_answer.c makes the answers.
 *
 * Threads: all of it runs on the connection's worker; nothing takes a lock or blocks, except the reports of text_stats.
 */
#ifndef FS_SERVER_PROTO_TEXT_INTERNAL_H
#define FS_SERVER_PROTO_TEXT_INTERNAL_H

#include "base/error.h"
#include "conf/conf.h"
#include "server/proto/proto.h"
#include "server/proto/proto_internal.h"

#define TEXT_HEAD 6 /* "VALUE ": the key follows in a reply's text */
#define TEXT_TOO_LARGE "SERVER_ERROR object too large for cache\r\n"
#define TEXT_NO_MEMORY "SERVER_ERROR out of memory storing object\r\n"
#define TEXT_COMMAND_KEYS 100 /* this many keys of a multiget take as much of a turn as a command */

/* The kind of a reply, which decides the answer that it gets. */
enum text_kind {
	TEXT_KIND_LINE, /* of a classic command */
	TEXT_KIND_META_GET,
	TEXT_KIND_META_SET,
	TEXT_KIND_META_DELETE,
	TEXT_KIND_META_ARITHMETIC,
	TEXT_KIND_META_DEBUG
};

/* From these releases 1.6.N of memcached on answers are other ones (conf_compat_from). */
#define COMPAT_DEBUG_EXP 24 /* exp of "me" has a minus only where there is no time */
#define COMPAT_GRAMMAR 40 /* enum text_grammar */
#define COMPAT_QUIET_MADE 40 /* q of an ma that makes its object leaves the answer out */
#define COMPAT_DUMP_BLANK 39 /* each line of metadump ends in a blank */
#define COMPAT_DUMP_OK 43 /* the lines of metadump and mgdump follow an OK */
#define COMPAT_SHUTDOWN 40 /* "shutdown" without -A is a SERVER_ERROR */

enum text_step {
	TEXT_NEXT, /* go on with the next command, or with what the session's state says */
	TEXT_WAIT, /* conn->wait is set; nothing was consumed */
	TEXT_YIELD, /* it had its turn */
	TEXT_LEND, /* conn_lend was called */
	TEXT_CLOSE
};

/* Returns the grammar of the release that --compat-version names. */
static inline enum text_grammar text_grammar_of(const struct conn *conn)
{
	return conf_compat_from(conn->server->conf, COMPAT_GRAMMAR) ? TEXT_GRAMMAR_NEW : TEXT_GRAMMAR_OLD;
}

#define conn_put_text(conn, literal) conn_put((conn), (literal), sizeof(literal) - 1)

/* struct protocol's foresee (text_foresee.c). */
unsigned text_foresee(const struct conn *conn, struct foreseen *out, unsigned most);

/* Begins get, gets, gat or gats, whose keys lie in the input, and executes as many keys as may go. */
enum text_step text_keys_begin(struct conn *conn, const struct text_command *command);
/* Goes on with the keys of the line, from the one that had to wait. */
enum text_step text_keys_go_on(struct conn *conn);

/* Begins set, add, replace, append, prepend or cas: makes the item; its value comes next. */
enum text_step text_store_begin(struct conn *conn, const struct text_command *command);
/* Goes on with the value and its line end. Returns true when the command is done, false when more input is needed. */
FS_MUST_CHECK bool text_store_go_on(struct conn *conn);
/* Throws away a refused command's value of length bytes, which comes next, and the line end behind it. */
static inline void text_skip_value(struct conn *conn, uint32_t length)
{
	value_skip(conn, (uint64_t)length + 2);
}

/* Refuses a set whose item could not be made, for the reason `why`. Throws the value of value_length bytes that comes
   next away, and answers behind it. Deletes the key's object at once, which the client thinks of as replaced. */
void text_refuse_store(struct conn *conn, const char *key, size_t length, uint32_t value_length, bool noreply,
		       enum store_result why);

/* Executes incr, decr, delete or touch. */
enum text_step text_change(struct conn *conn, const struct text_command *command);

/* Commands without keys (text_admin.c): each answers its command, unless that ends in noreply. */
enum text_step text_stats(struct conn *conn, const struct text_command *command);
enum text_step text_verbosity(struct conn *conn, const struct text_command *command);
enum text_step text_flush_all(struct conn *conn, const struct text_command *command);
/* Returns the answer to a flush_all with an invalid time. Counts it first, and refuses it with -F, as memcached does.
   Constant text. */
const char *text_flush_error(const struct conn *conn);
enum text_step text_version(struct conn *conn, const struct text_command *command);
enum text_step text_meta_noop(struct conn *conn, const struct text_command *command);
enum text_step text_shutdown(struct conn *conn, const struct text_command *command);
enum text_step text_cache_memlimit(struct conn *conn, const struct text_command *command);
enum text_step text_refresh_certs(struct conn *conn, const struct text_command *command);
enum text_step text_flash_move(struct conn *conn, const struct text_command *command);
enum text_step text_watch(struct conn *conn, const struct text_command *command);
enum text_step text_quit(struct conn *conn, const struct text_command *command);

/* Returns true if the command has at most `most` words and the last of them is "noreply". Some commands then answer
   nothing, not even errors. */
bool text_is_noreply(const struct text_command *command, unsigned most);

/* Appends a line, with its line end, to the output. Returns TEXT_NEXT. */
enum text_step text_say(struct conn *conn, const char *line);
/* Does the same, unless the command ends in noreply and the grammar is the new one: for commands that knew no noreply in
   the old one. */
enum text_step text_say_as_asked(struct conn *conn, const struct text_command *command, const char *line);

/* Commands to parts of memcached (text_tuning.c): each answers its command. */
enum text_step text_lru_crawler(struct conn *conn, const struct text_command *command);
enum text_step text_lru(struct conn *conn, const struct text_command *command);
enum text_step text_slabs(struct conn *conn, const struct text_command *command);
enum text_step text_extstore(struct conn *conn, const struct text_command *command);

/* Uses up the line, to newline, of a client that has not logged in yet, and answers it or begins a token. */
enum text_step text_auth_line(struct conn *conn, const char *line, size_t length, const char *newline);
/* Goes on with the token. Returns true when it is answered, false when more input is needed. */
FS_MUST_CHECK bool text_auth_go_on(struct conn *conn);

/* Writes the answer to a finished request into the output; gives the reply back, or queues it with a large value. */
void text_answer(struct conn *conn, struct reply *reply);
/* Writes the answer to a request that was pending into its reply, which is in the queue. */
void text_compose(struct reply *reply);

#endif
