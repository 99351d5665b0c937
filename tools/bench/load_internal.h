/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared declarations of the load generator's parts.
 *
 *   load.c         phases, the thread, the event loop, pace
 *   load_connect.c sockets
 *   load_keys.c    the order of keys; keys, sizes and values by number
 *   load_batch.c   makes and sends a connection's batch of commands
 *   load_answer.c  turns answers into counts
 *
 * Nothing here allocates after load_keys_init and batch_init.
 */
#ifndef FS_TOOLS_BENCH_LOAD_INTERNAL_H
#define FS_TOOLS_BENCH_LOAD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/uio.h>

#include "base/rng.h"
#include "tools/bench/load.h"

/* --- load_keys.c --- */

#define KEY_PREFIX "bench:"
#define KEY_PREFIX_BYTES 6
#define KEY_BYTES_DEFAULT 30
#define KEY_BYTES_LEAST 16
#define KEY_BYTES_MOST 250

#define VALUE_SPREAD 4096 /* offsets in the filler at which a value's bytes may start */
#define VALUE_SIZES 1024 /* different sizes of values */

/* A Zipf distribution's constants: see zipf_draw. */
struct zipf {
	uint64_t ranks;
	double exponent, integral_first, integral_last, shortcut;
};

/* Keys and values by number: constant after init. */
struct load_keys {
	unsigned key_bytes;
	char key_zero[KEY_BYTES_MOST]; /* number 0's */
	char *filler; /* VALUE_SPREAD + the largest value */
	uint32_t sizes[VALUE_SIZES], size_most;
};

/* The order of keys. */
struct load_sequence {
	enum load_order order;
	uint64_t first, keys;
	uint64_t next; /* LOAD_SEQUENTIAL: offset from first */
	uint64_t scramble; /* LOAD_ZIPF: a factor without a common divisor with keys */
	struct zipf zipf;
	struct rng *rng;
};

/* Computes the constants. FS_OK, FS_ENOMEM, or FS_EINVAL for a key size out of range or too short for the key numbers.
   load_keys_fini frees them, also after a failure. */
FS_MUST_CHECK int load_keys_init(struct load_keys *keys, const struct load_spec *spec);
void load_keys_fini(struct load_keys *keys);
/* load_sequence_init begins the sequence, which rng outlives; load_sequence_next returns the number of the next key. */
void load_sequence_init(struct load_sequence *sequence, const struct load_spec *spec, struct rng *rng);
uint64_t load_sequence_next(struct load_sequence *sequence);

/* Prepares the constants for 1 .. ranks. */
void zipf_init(struct zipf *zipf, uint64_t ranks, double exponent);
/* Draws a rank in [1, ranks]; smaller ranks are likelier. */
uint64_t zipf_draw(const struct zipf *zipf, struct rng *rng);

/* Writes the key of this number into out, key_bytes bytes. */
void load_key_write(const struct load_keys *keys, uint64_t number, char *out);
/* Returns the bytes of the value of this key. */
uint32_t value_size(const struct load_keys *keys, uint64_t number);

/* The parts of a value: a stamp of its key at the front and, if there is room, another at the end. Between them are
   bytes of the filler, from an offset that depends on the key. */
#define VALUE_STAMP_BYTES 8
struct value_parts {
	char front[VALUE_STAMP_BYTES], back[VALUE_STAMP_BYTES];
	uint32_t front_bytes, back_bytes;
	const char *middle;
	uint32_t middle_bytes;
};
/* Fills parts with those of a key's value; middle points into the filler. */
void value_parts(const struct load_keys *keys, uint64_t number, struct value_parts *parts);

/* Returns whether `length` bytes equal those of the value from `at` on. Without `every`, the middle isn't compared. */
bool value_matches(const struct value_parts *parts, uint32_t at, const char *bytes, size_t length, bool every);
/* Returns whether every byte of this key's value is compared. */
bool value_is_checked_whole(uint64_t number);

/* --- load_batch.c --- */

#define LINE_BYTES 1024 /* no line of an answer is longer */

struct sent_key {
	uint64_t number;
	const char *text; /* in the connection's output */
};

struct sent_command {
	bool is_set;
	uint32_t keys;
};

struct connection {
	int fd;
	bool waits_for_output; /* EPOLLOUT is asked for */
	bool reads_back; /* LOAD_SET_GET: the batch sets what the next one gets */
	/* the batch: bytes, then its commands and keys */
	char *out;
	size_t out_bytes;
	struct iovec *parts; /* of out and of the filler */
	unsigned part, parts_used;
	struct sent_command *commands;
	unsigned command, commands_used; /* command: the first without an answer; == used: none under way */
	struct sent_key *keys;
	unsigned keys_used;
	unsigned key, key_end; /* the keys of the command that may still be answered */
	bool any_hit; /* of the command */
	uint64_t start_ns, idle_ns;
	/* the answer */
	char line[LINE_BYTES]; /* the part of a line that has come */
	uint32_t line_bytes;
	bool in_value, value_wrong, value_whole;
	uint64_t value_number;
	uint32_t value_at, value_end; /* value_end: with "\r\n" */
	struct value_parts value;
};

static inline bool connection_awaits(const struct connection *connection)
{
	return connection->command < connection->commands_used;
}

/* All answers may come before the batch is sent: the server refuses a value that is too large at its first bytes. */
static inline bool connection_busy(const struct connection *connection)
{
	return connection_awaits(connection) || connection->part < connection->parts_used;
}

/* The most that a batch may hold, by the spec. */
struct batch_limits {
	unsigned commands, keys;
	unsigned keys_per_get;
	size_t out_bytes;
	unsigned parts;
};

struct load {
	struct load_spec spec;
	struct load_server server;
	struct load_keys keys;
	struct load_sequence sequence;
	struct rng rng;
	struct batch_limits limits;
	struct connection *connections;
	struct load_result result;
	/* the phase: */
	uint64_t left; /* operations that no batch holds yet */
	uint64_t deadline_ns; /* no batch starts after it */
	uint64_t now_ns;
	unsigned busy;
	/* pace: connections without a batch, the longest idle one first; when the next batch is due */
	struct connection **idle;
	unsigned idle_first, idle_count;
	double due_ns;
	char *input;
	int epoll;
	/* the thread: */
	pthread_t thread;
	bool waited; /* for its end */
	int code; /* read after join */
	atomic_bool stop, running, forget;
	/* the measured part: when it began, and what had been used by then */
	struct load_marks {
		uint64_t start_ns, own_cpu_ns, server_cpu_ns;
	} marks;
};

/* Computes the limits; a connection's memory follows from them. */
void batch_limits_init(struct batch_limits *limits, const struct load_spec *spec, const struct load_keys *keys);
/* connection_init allocates for batches within the limits, and aborts when memory is out; connection_fini frees. */
void connection_init(struct connection *connection, const struct batch_limits *limits);
void connection_fini(struct connection *connection);

/* Makes the connection's next batch out of what the phase has left; load->left > 0, or the connection reads
   back. The connection is idle. Returns its operations. */
uint64_t batch_make(struct load *load, struct connection *connection);
/* Sends as much as the socket takes. FS_OK: all is out; FS_EAGAIN: more is to be sent when it has room; FS_ESYS: the
   connection is broken. */
FS_MUST_CHECK int batch_send(struct connection *connection);

/* --- load_connect.c --- */

/* Opens all connections and the epoll. FS_OK; FS_ESYS or FS_ECORRUPT, with a line on standard error. */
FS_MUST_CHECK int load_connect(struct load *load);

/* --- load_answer.c --- */

/* Takes all the bytes in. FS_ECORRUPT, with a line on standard error: they are no answer. */
FS_MUST_CHECK int answer_take(struct load *load, struct connection *connection, const char *bytes, size_t length);

#endif
