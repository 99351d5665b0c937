/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The never-stale checker: a get that starts after a change was acknowledged never shows an older value. It may miss.
 *
 *   run.py --- starts, stops, kills ---> flashield <--- commands --- threads, each with a connection of its own
 *      '------ starts, pauses, asks ---> stale_worker: the words of each key outlive every daemon
 *
 * Each value carries its key and a version. The versions of a key rise in the order in which its changes are carried
 * out. Three words of each key, shared by all threads, say what an answer may be:
 *
 *   floor   the least version that a get which starts now may show
 *   over    every change up to this version was carried out, or never will be
 *   issued  the newest version that was given to a change, or for keys with many writers to a life
 *
 * A thread loads `floor` before it sends a get, and compares when the answer is there. It raises `floor` after the answer
 * to a change, and also after a get, as a value that was seen has replaced all older ones.
 *
 *   owned.c    keys with one writer, the thread that owns them: set, delete, touch, expiry
 *   chains.c   keys with many writers and cas: a version is the one before, plus 1
 *   counters.c keys with many writers and incr: the number is the version
 *   logs.c     keys with many writers and append: each writer counts its own records
 *   flush.c    flush_all, at once and delayed
 *   census.c   over a restart: which keys did flash serve, and which of them are found again?
 *
 *   lives.c    a key with many writers that was missed begins a new life, which one thread at a time may make by add.
 *              The life is the upper half of its versions, so that no version comes again.
 *
 * A change whose answer was lost may have been carried out or not: it raises `over` alone, when its connection is gone. A
 * daemon that closes a connection, or ends, carries out no more of its commands.
 *
 * Threads: the words are atomic. A thread's operations and its owned keys belong to it.
 */
#ifndef STALE_STALE_H
#define STALE_STALE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "tests/model/wire.h"

#define THREADS_MOST 16
#define KEYS_MOST 12 /* of a get */
#define BATCH_MOST 48 /* commands that are under way at a time */
#define SLACK_NS 3000000000ull /* for expiries and delayed flushes: a machine may stand still for a while */

enum family { FAMILY_OWNED, FAMILY_CHAIN, FAMILY_COUNTER, FAMILY_LOG, FAMILIES };

struct key {
	_Alignas(64) _Atomic uint64_t floor; /* see above */
	_Atomic uint64_t over;
	_Atomic uint64_t issued;
	_Atomic bool making, missed; /* many writers: a thread is making a new life; somebody found no value */
	enum family family; /* constant */
};

enum op_kind { OP_GET, OP_GETS, OP_SET, OP_DELETE, OP_TOUCH, OP_ADD, OP_CAS, OP_INCR, OP_APPEND, OP_KINDS };
extern const char *const OP_NAMES[OP_KINDS];

/* A command that was sent, and what was known when it was. */
struct op {
	enum op_kind kind;
	unsigned keys, next; /* of a get: how many, and the one that is expected next */
	uint32_t key[KEYS_MOST];
	uint64_t floor[KEYS_MOST]; /* of each key */
	uint64_t over; /* of the first */
	uint64_t version; /* of a change */
	int exptime;
	uint64_t appended[THREADS_MOST]; /* of a log: the word of each writer */
};

/* What a get showed. */
struct shown {
	const char *data;
	size_t length;
	uint32_t flags;
	uint64_t cas; /* 0: not asked */
};

struct thread {
	unsigned number;
	struct rng rng;
	struct wire wire;
	bool connected;
	struct op op[BATCH_MOST];
	unsigned ops, answered; /* in op */
	uint64_t next_expiry_ns;
	_Atomic uint64_t commands, hits, misses, changes, lost, refused, connects; /* counts, for the report */
};

/* Constant once the threads run. */
struct options {
	unsigned port, threads, keys[FAMILIES];
	uint32_t value_max;
	unsigned flush_ms; /* between two flush_alls; 0: none */
	bool lasting; /* no value gets a time to live */
	uint64_t seed;
};
extern struct options options;

/* ---- keys.c ---------------------------------------------------------------------------------- */

/* Makes the words of all keys. Aborts without memory. */
void keys_init(void);
/* Returns how many keys there are. They have the numbers below this. */
uint32_t keys_all(void);
/* Returns the words of a key. */
struct key *key_of(uint32_t number);
/* Returns the first key of a family. The others follow it. */
uint32_t family_first(enum family family);

#define KEY_NAME_MOST 130
/* Writes the key's name, terminated, and returns its length. */
size_t key_name(uint32_t number, char out[KEY_NAME_MOST]);
/* Returns the number of a name, or UINT32_MAX when it is no key's. */
uint32_t key_find(const char *name, size_t length);

/* Version was seen, or its change was acknowledged: a get that starts from now on shows it or a newer one. */
void key_is(uint32_t number, uint64_t version);
/* Whatever was carried out up to this version is gone: deleted, expired or flushed. */
void key_gone(uint32_t number, uint64_t version);
/* Changes up to this version were carried out, or never will be. */
void key_over(uint32_t number, uint64_t version);
/* Is version a value that this get may show? Else it reports, and the process ends. */
void key_check(const struct op *op, uint32_t number, uint64_t floor, uint64_t version);

/* Returns the boot-time clock, which the driver reads too. */
uint64_t now_ns(void);
/* Prints what is wrong and the key's words, once, and ends the process with 1. op may be NULL. */
void violation(const struct op *op, uint32_t number, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));

/* ---- value.c --------------------------------------------------------------------------------- */

#define VALUE_LEAST 64
/* Writes length bytes, at least VALUE_LEAST, which follow from key, version and length. */
void value_make(uint32_t number, uint64_t version, uint32_t length, char *out);
/* Returns the version of a value that a get showed. Reports one that is torn, of another key, or has other flags. */
uint64_t value_read(const struct op *op, uint32_t number, const struct shown *shown);
/* Returns the client flags of a version. */
uint32_t value_flags(uint64_t version);
/* Returns a length for a value: often small, now and then of many pages. */
uint32_t value_length(struct rng *rng);

/* ---- owned.c, chains.c, counters.c, logs.c: each family -------------------------------------- */

/* Makes what a family keeps beside the words. Aborts without memory. */
void owned_init(void);
void chains_init(void);
void logs_init(void);
/* Add a command to the thread's batch. */
void owned_change(struct thread *thread);
void chain_command(struct thread *thread);
void counter_command(struct thread *thread);
void log_command(struct thread *thread);
/* Judge a value that a get of the key showed. */
void owned_shown(struct thread *thread, const struct op *op, unsigned at, const struct shown *shown);
void chain_shown(struct thread *thread, const struct op *op, const struct shown *shown);
void counter_shown(const struct op *op, const struct shown *shown);
void log_shown(const struct op *op, const struct shown *shown);
/* Take the answer to a change; line NULL: the connection is gone, and with it the answer. */
void owned_answer(struct thread *thread, const struct op *op, const char *line);
void chain_answer(struct thread *thread, const struct op *op, const char *line);
void counter_answer(struct thread *thread, const struct op *op, const char *line);
void log_answer(struct thread *thread, const struct op *op, const char *line);
/* Raises the floors of the thread's keys whose time is over. Nothing of the thread is under way. */
void owned_expire(struct thread *thread);
/* May the owned key's value have a time to live? While the threads pause. */
bool owned_may_expire(uint32_t number);
/* Prints the last changes of an owned key. */
void owned_print(uint32_t number);

/* Makes a new life of a key with many writers, if it was missed: returns its version, to be sent by an add. 0: it was not
   missed, or another thread makes one. */
uint64_t life_begin(uint32_t number);
/* Somebody found no value of a key with many writers. */
void life_missed(uint32_t number);
/* The add was answered, or its connection is gone (line NULL). */
void life_end(struct thread *thread, const struct op *op, const char *line);
/* The answer to a delete of a key with many writers. */
void life_deleted(struct thread *thread, const struct op *op, const char *line);

/* ---- batch.c --------------------------------------------------------------------------------- */

/* Adds a command to the thread's batch, with what is known of the key. There is room: batch_room(). */
struct op *batch_add(struct thread *thread, enum op_kind kind, uint32_t key);
/* Is there room for another command? */
static inline bool batch_room(const struct thread *thread)
{
	return thread->ops < BATCH_MOST;
}
/* Writes a storage command with its value, which follows from key, version and length. id: of cas, else 0. */
void batch_value(struct thread *thread, const struct op *op, const char *command, uint32_t length, uint64_t id);
/* Sends the batch, takes all answers, and tells the families. Not connected afterwards: the rest is lost. */
void batch_run(struct thread *thread);
/* Waits until a whole line is there, and returns it, terminated in place of its end. NULL: the connection is gone. */
const char *wait_line(struct wire *wire);
/* Connects; false when no daemon answers now. */
bool thread_connect(struct wire *wire);

/* ---- flush.c --------------------------------------------------------------------------------- */

/* The thread that flushes, at once and delayed, one flush after the other. */
void *flush_run(void *context);
extern _Atomic uint64_t flushes;

/* ---- census.c -------------------------------------------------------------------------------- */

/* Makes room for what a census finds. Aborts without memory. */
void census_init(void);
/* While the threads pause, and nobody else uses the daemon: gets each key by itself, but those that may expire meanwhile, and
   notes which of them flash has served. Prints the line that answers the driver. */
void census_take(void);
/* Gets them again, and compares with the last census. Notes nothing. */
void census_compare(void);

/* ---- main.c ---------------------------------------------------------------------------------- */

extern struct thread threads[THREADS_MOST + 1]; /* the last one takes the census */

/* A thread has nothing under way here, and waits while it is asked to pause. False: the end. */
bool pause_point(void);

#endif
