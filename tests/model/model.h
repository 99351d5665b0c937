/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model: what an answer may be.
 *
 *   gen.c    makes commands          --> wire --> server
 *   check.c  takes answers in order  <-- wire <--
 *               |- owned.c   keys of one connection: exact
 *               |- shared.c  keys of all connections: linearisable
 *               '- counter.c keys that all increment: no number twice, none smaller than before
 *
 * Owned keys. A key's state is the set of values it may have; that it is absent (evicted) is always
 * possible. Each answer narrows the set or replaces it, in the order of the connection's commands.
 * An empty set means surely absent. Commands without an answer (noreply, broken connections) leave
 * several values possible; "wild" means that they are no longer told apart.
 *
 * Shared keys. Each version of a key has an interval between the earliest end and the latest start
 * of its write and of all reads that saw it. Gibbons and Korach: a history of a register with
 * distinct values is linearisable just if no two such zones conflict (shared.c). A miss is always
 * possible; a delete is a version that nobody may see.
 *
 * Threads: an owned key belongs to the thread of its connection; shared keys and counters have a
 * lock each.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "tests/model/value.h"
#include "tests/model/wire.h"

enum op_kind {
	OP_GET,
	OP_GAT,
	OP_SET,
	OP_ADD,
	OP_REPLACE,
	OP_APPEND,
	OP_PREPEND,
	OP_CAS,
	OP_INCR,
	OP_DECR,
	OP_DELETE,
	OP_TOUCH,
	OP_QUIT,
	OP_FLUSH,
	OP_KINDS
};
extern const char *const OP_NAMES[OP_KINDS];

enum answer {
	ANSWER_NONE, /* not seen: noreply, or the connection broke */
	ANSWER_HIT,
	ANSWER_MISS,
	ANSWER_STORED,
	ANSWER_NOT_STORED,
	ANSWER_EXISTS,
	ANSWER_NOT_FOUND,
	ANSWER_DELETED,
	ANSWER_TOUCHED,
	ANSWER_NUMBER,
	ANSWER_NOT_NUMBER,
	ANSWER_TOO_LARGE,
	ANSWER_OK,
	ANSWERS
};
extern const char *const ANSWER_NAMES[ANSWERS];

/* A command that was sent. */
struct op {
	enum op_kind kind;
	bool noreply, with_cas, too_large;
	uint32_t code; /* key; of a get with many, the first */
	uint32_t *codes; /* of a get or gat: all keys, owned; NULL when one */
	uint32_t count, next; /* keys, and the one that an answer is expected for */
	struct value value;
	uint64_t delta, cas;
	int64_t exptime;
	uint64_t sent_ns;
	uint64_t version; /* shared: of the write; counter: the number it starts with */
	uint64_t *versions; /* of flush_all: one for each shared key, 0 where it has none */
	uint64_t seen; /* shared cas: version whose id is used; counter: floor at the start */
};

/* What a get showed. */
struct shown {
	const char *data;
	size_t length;
	uint32_t flags;
	uint64_t cas; /* 0: not asked */
};

#define HISTORY 14
struct history {
	uint64_t version;
	uint32_t ms, length;
	int32_t exptime;
	uint8_t kind, answer, noreply;
};

#define POSSIBLE_MAX 4
struct owned_key {
	struct value possible[POSSIBLE_MAX];
	uint8_t possible_count;
	bool wild, missed;
	uint8_t history_at;
	uint32_t quarantine; /* serial of the broken connection that may still write it, 0 = none */
	uint64_t version; /* last one given to a piece */
	uint64_t cas_seen; /* highest id shown */
	struct history history[HISTORY];
};

/* A broken connection whose commands the server may still carry out. */
struct zombie {
	struct zombie *next;
	uint32_t serial;
	uint64_t closed_ns;
	uint32_t *codes; /* keys that it wrote, shared ones with their version */
	uint64_t *versions;
	size_t count, room;
	unsigned flushes; /* flush_alls that it may still carry out */
};

#define QUEUE 1024
struct conn {
	struct wire wire;
	struct thread *thread;
	unsigned number; /* over all threads; the writer's id */
	struct op queue[QUEUE]; /* sent, in order; from head on count */
	unsigned head, count;
	uint32_t keys; /* owned: numbers number, number + all, ... */
	struct owned_key *key;
	unsigned depth; /* commands of a batch at the moment */
	uint64_t progress_ns, lazy_until_ns; /* last answer; until then it does not read */
	bool draining, quitting; /* no new commands; the server will close */
};

struct thread {
	unsigned number;
	struct rng rng;
	struct conn *conn;
	struct wire control;
	struct zombie *zombies;
	uint64_t zombies_polled_ns;
	uint64_t ops, hits, misses, stored, drops, flushes, reappeared, wild, unverifiable, blind;
};

struct owned_key *owned_find(struct conn *conn, uint32_t code);

/* ---- run.c: what all share ------------------------------------------------------------------- */

extern uint64_t start_ns;
uint64_t now_ns(void);
static inline uint64_t ns_to_ms(uint64_t ns)
{
	return (ns - start_ns) / 1000000 + 1;
}
/* Printed once, then the process ends with 1. */
void violation(const struct conn *conn, const struct op *op, uint32_t code, const char *format, ...)
	__attribute__((format(printf, 4, 5), noreturn));

/* ---- owned.c --------------------------------------------------------------------------------- */

/* Any answer but a value. */
void owned_answer(struct conn *conn, const struct op *op, enum answer answer, uint64_t number);
void owned_shown(struct conn *conn, const struct op *op, uint32_t code, const struct shown *shown);
void owned_missed(struct conn *conn, const struct op *op, uint32_t code);
/* A noreply command: carried out in its place, but with what result? */
void owned_silent(struct conn *conn, const struct op *op);
/* The connection broke before the answer: carried out or not. */
void owned_lost(struct conn *conn, const struct op *op, uint32_t code);
void owned_flushed(struct conn *conn);
void owned_note(struct owned_key *key, const struct op *op, enum answer answer);
void owned_print(struct owned_key *key, uint32_t code);

/* ---- shared.c -------------------------------------------------------------------------------- */

void shared_init(uint32_t keys);
/* A new version of a write (or delete) that starts now. 0: too many are under way. */
uint64_t shared_begin(uint32_t code, bool is_delete, uint64_t start);
/* Was carried out (effective) or surely not, by end. */
void shared_end(const struct conn *conn, const struct op *op, uint32_t code, uint64_t version, bool effective,
		uint64_t end);
/* Its connection broke; it was carried out before end, or never will be. */
void shared_lost(uint32_t code, uint64_t version, uint64_t end);
/* A get sent at start showed it; returns its version. */
uint64_t shared_shown(struct conn *conn, const struct op *op, uint32_t code, const struct shown *shown);
/* A cas whose id was that of version seen was stored: seen was there between sending and answer. */
void shared_cas_stored(struct conn *conn, const struct op *op, uint64_t end);
/* An id to use in a cas. False: none is known. */
bool shared_cas_of(uint32_t code, struct rng *rng, uint64_t *version, uint64_t *cas);
/* May a flush_all of any connection have met a command sent then? */
bool flush_since(uint64_t sent_ns);
void flush_over(void); /* of a broken connection: carried out by now, or never */
/* flush_all deletes every shared key: versions[options.shared_keys], to be freed. */
uint64_t *shared_flush_begin(uint64_t start);
void shared_flush_end(const struct conn *conn, const struct op *op, const uint64_t *versions, uint64_t end);
void shared_print(uint32_t code);

/* ---- counter.c ------------------------------------------------------------------------------- */

void counter_init(uint32_t keys);
/* Starts a new count by add, one at a time: false while another is under way. */
bool counter_begin(uint32_t code, uint64_t *first);
void counter_end(uint32_t code);
uint64_t counter_floor(uint32_t code); /* no answer of a command sent from now on may be below it */
void counter_number(struct conn *conn, const struct op *op, uint32_t code, uint64_t number, bool incremented);
void counter_print(uint32_t code);

/* ---- gen.c, check.c, conn.c ------------------------------------------------------------------ */

void gen_batch(struct conn *conn);
/* Takes all whole answers. False: the connection ended as it should (quit). */
bool check_answers(struct conn *conn);
/* Sends and receives what goes. events: poll's. */
void conn_run(struct conn *conn, short events);
void conn_open(struct conn *conn);
void conn_break(struct conn *conn);
void zombies_poll(struct thread *thread);
/* Before any connection is open: empties the server, learns how many others it counts. */
void server_prepare(void);

#endif
