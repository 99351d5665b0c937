/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection as a protocol sees it: bytes that came in, and a queue of answers that go out in order.
 *
 *   recv -> input [start, end) -> protocol->input() -> store_execute -+-> output bytes ---+-> send
 *                                                                     +-> queue of replies +
 *
 * Answers. A protocol appends an answer to the output bytes if it knows the answer at once. An answer that it does not
 * know yet (a flash read is under way), or that is too large to copy, is a reply: it stands in the queue and names its
 * position in the stream of bytes. So answers leave in the order of the commands, whatever order the flash reads end
 * in, and a hit in DRAM costs neither a reply nor an allocation:
 *
 *   output bytes  |VALUE a ...|            |VALUE c ...END|      one sendmsg, pieces in this order
 *   replies                    \ b: pending                      ... up to the first pending one
 *
 * Values of more than CONN_COPY_BYTES are sent from where they lie (item or flash read buffer) and are released once
 * they are written. Shorter values of DRAM are copied into the output bytes.
 *
 * Back-pressure. A protocol asks conn_may_go() before each key. The answer is no while the output is too long or too
 * many requests are in flight. input() then returns CONN_WAIT, and is called again when that has changed. Nothing is
 * read from the socket meanwhile. Beside the bounds of each connection there is a bound on the memory of all answers of
 * a worker's connections. Beyond it each connection may hold CONN_LEAST_BYTES and one value, so it goes on as its own
 * answers leave: it always has an event to wait for, and none waits for another. When such values together reach
 * CONN_MOST_TIMES the bound, no connection starts a request, and a connection that has not taken its answers for ten
 * seconds is closed (net/sweep.c).
 *
 * server/net implements these functions; a protocol needs no more of the network than this header.
 *
 * Threads: everything here belongs to the connection's worker, except where a function says otherwise. No function
 * here takes a lock or blocks, except where it says so.
 */
#ifndef FS_SERVER_CONN_CONN_H
#define FS_SERVER_CONN_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "server/conn/server.h"
#include "server/conn/session.h"
#include "server/store/store.h"

#define CONN_BUFFER_BYTES 16384u /* of a pooled buffer; borrowed while there are bytes in it */
#define CONN_INPUT_MAX_BYTES (16u << 20) /* the longest multiget line */
#define CONN_COPY_BYTES 1024u /* values up to this are copied, larger ones referenced */
#define CONN_FLUSH_BYTES (64u << 10) /* output that is sent although more input waits */
#define CONN_OUTPUT_BYTES (1u << 20) /* output that a slow reader may have waiting */
#define CONN_PENDING 256u /* requests in flight */
#define CONN_PENDING_BYTES (4u << 20) /* values expected from them */
#define CONN_LEAST_BYTES (32u << 10) /* a connection may hold this much, whatever others hold */
#define CONN_TOTAL_PART 8 /* all connections' answers together may hold -m / this ... */
#define CONN_SHARE_BYTES (64u << 10) /* this much of each connection's answers doesn't count for that */
#define CONN_MOST_TIMES 4 /* ... and this many times that if they have large values */
#define CONN_ROOM_BYTES 4096u /* the largest piece of output made at once */
#define REPLY_TEXT_BYTES 640 /* the longest head: meta's with a base64 key and all its flags */
#define REPLY_OWN_BYTES 96u /* for the protocol's own use */

struct conn;
struct worker;

/* An answer that can't be output bytes: its request is pending, or its value is large. The connection's worker uses it;
   while the request is pending, the store does too. */
struct reply {
	struct store_request request;
	struct conn *conn;
	struct reply *next; /* in the connection's queue, or among the worker's spare ones */
	uint64_t position; /* in the output stream */
	uint64_t since_ns; /* pending: when its request was received (count/durations.h) */
	uint32_t sent; /* bytes of it that the socket has taken */
	uint32_t held; /* memory that it holds, or is expected to while it is pending */
	uint16_t text_length;
	bool pending; /* the request is not done */
	bool ordered; /* a read-modify-write: further commands on its key wait */
	bool has_value; /* after the text: value and tail */
	uint8_t tail_length; /* bytes of "\r\n" that follow a value: 2, or 0 in the binary protocol */
	uint8_t kind; /* the protocol's: which of its answers it is */
	bool noreply;
	bool show_cas;
	_Alignas(8) char own[REPLY_OWN_BYTES]; /* the protocol's data for making the answer; not cleared */
	char text[REPLY_TEXT_BYTES]; /* the key while the request is under way, then the head */
};

/* Why a protocol's input() has stopped. */
enum conn_verdict {
	CONN_MORE, /* the input is used up, except for the start of a command */
	CONN_WAIT, /* conn->wait says for what */
	CONN_YIELD, /* it had its turn */
	CONN_LEND, /* conn_lend was called: the connection is lent once all its answers are sent */
	CONN_CLOSE /* the connection closes once all its answers are sent */
};

/* A key that looking ahead has found, and its hash. */
struct foreseen {
	const char *key; /* in the input */
	uint64_t hash;
	uint32_t length;
};

/* Why a connection closes, as "watch connevents" tells it in memcached's words. An error is what nobody has explained. */
enum conn_reason {
	CONN_REASON_ERROR,
	CONN_REASON_NORMAL, /* the client has said so, or has closed its side */
	CONN_REASON_IDLE, /* -o idle_timeout */
	CONN_REASON_SHUTDOWN /* the client has asked the daemon to shut down */
};

enum conn_wait { CONN_WAIT_NONE, CONN_WAIT_OUTPUT, CONN_WAIT_REPLIES, CONN_WAIT_MEMORY };

/* A protocol, for the network. The worker calls these functions; none of them blocks. */
struct protocol {
	const char *name;
	/* Executes the commands in the input, and returns the reason why it stopped. */
	enum conn_verdict (*input)(struct conn *conn);
	/* Finds keys that the commands in the input name, in their order, as far as that is cheap. Fills at most `most`
	   of them and returns their number. Changes nothing: a wrong key only costs time. */
	unsigned (*foresee)(const struct conn *conn, struct foreseen *out, unsigned most);
	/* Makes the text of a reply whose pending request is done from the result, and sets has_value if a value
	   follows. The connection may be dead. */
	void (*compose)(struct reply *reply);
	/* Frees everything that the session of a connection that goes away holds. */
	void (*abandon)(struct conn *conn);
};

struct input {
	char *bytes; /* NULL when empty */
	uint32_t start, end, capacity;
};

struct output {
	char *bytes; /* NULL when empty; [head, tail) waits to be sent */
	uint32_t head, tail, capacity;
	uint64_t origin; /* position in the stream of bytes[0] */
	uint64_t begun; /* position in the stream where the client has ended a pipeline last (conn_end_pipeline) */
	uint64_t value_bytes; /* of ready replies in the queue */
	struct reply *first, *last;
	uint64_t held; /* memory: bytes[] and the replies with their values */
};

struct conn {
	struct input input;
	struct output output;
	struct session session;
	struct store_worker *store;
	const struct protocol *protocol; /* NULL before the first byte */
	struct worker *worker;
	const struct server *server;
	unsigned turns; /* commands that are left of its turn */
	unsigned pending; /* replies whose request is not done */
	unsigned ordered; /* of these, read-modify-writes ... */
	uint64_t ordered_mask; /* ... a bit for each of their hashes */
	char *body; /* the position in its item where the rest of a storage command's value goes ... */
	uint32_t body_left; /* ... and the bytes of it that are missing; they are received without a copy */
	const struct listener *listener; /* the listener that it came in by; NULL: none (UDP) */
	char *user; /* the name of the user who has logged in; NULL: nobody has. Freed with the connection */
	bool authenticated; /* commands are executed: the client has logged in, or doesn't have to */
	uint8_t wait;
	uint8_t reason; /* enum conn_reason, if it closes now */
	bool blocked; /* the socket takes no more */
	bool failed; /* out of memory, or the peer is gone: close as soon as possible */
	bool finishing; /* no more input: closes when all is answered */
	bool dead; /* closed; freed with the last pending reply */
};

/* Returns the connection's descriptor, by which log lines and events name it. Any thread, while the connection is
   open. */
int conn_number(const struct conn *conn);
/* Writes the peer's address as log lines show it into out, and returns out: "127.0.0.1:4711", "[::1]:4711",
   "unix:/path". */
const char *conn_peer(const struct conn *conn, char out[128]);

/* Returns store_hash of a key of length bytes in the input. Where looking ahead has computed the hash, that one is
   taken; so ask for each key once, in the order of the commands. */
uint64_t conn_hash(struct conn *conn, const char *key, size_t length);

/* ---- loans: a connection belongs to another thread for a while (net/loan.c) -------------------- */

/*
 * "watch" and "lru_crawler metadump" write for so long that no worker should wait for them. The worker lends the
 * connection:
 *
 *   1. The protocol calls conn_lend() when nothing is pending, and returns CONN_LEND.
 *   2. When all earlier answers are sent, the worker's thread calls take(). It hands the loan to a thread of its
 *      own and returns. If the connection has been closed before that, take() gets NULL.
 *   3. Until loan_return the worker neither reads, nor sends, nor closes the connection, which stays counted.
 *
 * All loans must be back before the workers stop (net_serve calls the stopping hook for that).
 */
struct loan;

/* Asks for a loan. True: take() will be called once, with context. False: this connection can't be lent (UDP, or memory
   is out); nothing has happened, and the protocol answers an error. */
FS_MUST_CHECK bool conn_lend(struct conn *conn, void (*take)(void *context, struct loan *loan), void *context);

/* Sends up to length bytes without blocking. Returns the number of bytes taken, or -1 with errno; EAGAIN: the peer
   doesn't read fast enough. TLS demands that the next call begins with the bytes that were not taken and offers at
   least as many of them. The thread that has the loan. */
FS_MUST_CHECK ssize_t loan_send(struct loan *loan, const char *bytes, size_t length);

/* Returns the descriptor for poll(): POLLOUT to go on after EAGAIN, POLLIN | POLLRDHUP to see the peer go. It stays the
   loan's. */
int loan_fd(const struct loan *loan);

/* Returns true if the peer has closed at least its sending side, or the connection is broken. Bytes that it has sent
   meanwhile stay for the worker. The thread that has the loan. */
bool loan_peer_gone(struct loan *loan);

/* Gives the connection back to its worker, which closes it if close is set. The loan is gone. Any thread; takes a leaf
   lock of the worker. */
void loan_return(struct loan *loan, bool close);

/* ---- output ---------------------------------------------------------------------------------- */

/* conn_room calls it if the buffer has no room: makes the buffer larger. Returns what conn_room does. */
char *conn_make_room(struct conn *conn, uint32_t bytes);

/* Returns room for so many bytes (at most CONN_ROOM_BYTES) in one piece at the end of the output; conn_commit takes
   what was written into it. Never NULL: when memory is out, the connection fails and the bytes go nowhere. */
static inline char *conn_room(struct conn *conn, uint32_t bytes)
{
	if (__builtin_expect(conn->output.capacity - conn->output.tail >= bytes, 1))
		return conn->output.bytes + conn->output.tail;
	return conn_make_room(conn, bytes);
}

/* Appends the first bytes of conn_room's piece to the output. */
static inline void conn_commit(struct conn *conn, uint32_t bytes)
{
	if (conn->failed)
		return;
	debug_must(bytes <= conn->output.capacity - conn->output.tail);
	conn->output.tail += bytes;
}

/* Appends a copy of length bytes (at most CONN_ROOM_BYTES) to the output. */
static inline void conn_put(struct conn *conn, const char *text, uint32_t length)
{
	memcpy(conn_room(conn, length), text, length);
	conn_commit(conn, length);
}

/* Returns true if no answer waits to be sent. */
static inline bool conn_output_is_empty(const struct conn *conn)
{
	return conn->output.head == conn->output.tail && !conn->output.first;
}

/* Remembers that a pipeline ends with the answers so far ("mn"): a command that must be the first of one may follow. */
static inline void conn_end_pipeline(struct conn *conn)
{
	conn->output.begun = conn->output.origin + conn->output.tail;
}

/* Returns true before the first command of a pipeline: all answers have been sent, or the last one has ended a pipeline. */
static inline bool conn_begins_pipeline(const struct conn *conn)
{
	const struct output *output = &conn->output;

	return conn_output_is_empty(conn) || (output->origin + output->tail == output->begun &&
					      (!output->first || output->last->position < output->begun));
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Returns a reply for a request; its request's done and owner are set, other fields may hold anything. The caller owns
   it until conn_queue or conn_reply_give. NULL: memory is out, and the connection fails. */
struct reply *conn_reply_take(struct conn *conn);
/* Frees a reply that is not needed any more. Its item and value must have been given back. */
void conn_reply_give(struct conn *conn, struct reply *reply);

/* Puts a reply at the end of the output, with a pending request or complete. The queue owns it from here on. */
void conn_queue(struct conn *conn, struct reply *reply);

/* Returns true while a read-modify-write of this connection is pending on a key with this hash: the next command on it
   must wait. */
FS_MUST_CHECK bool conn_must_wait(const struct conn *conn, uint64_t hash);

/* conn_may_go calls it if the connection has replies, a blocked socket or much output. Returns what conn_may_go
   does. */
FS_MUST_CHECK bool conn_may_go_slow(struct conn *conn);

/* Returns true if another request may start. False: conn->wait is set, and input() returns CONN_WAIT. */
static inline bool conn_may_go(struct conn *conn)
{
	if (__builtin_expect(!conn->output.first && !conn->blocked &&
				     conn->output.tail - conn->output.head < CONN_FLUSH_BYTES,
			     1))
		return true;
	return conn_may_go_slow(conn);
}

/* For barriers: returns true if nothing is pending. False: conn->wait is set, and input() returns CONN_WAIT. */
static inline bool conn_settled(struct conn *conn)
{
	must(conn->ordered <= conn->pending);
	if (conn->pending == 0)
		return true;
	conn->wait = CONN_WAIT_REPLIES;
	return false;
}

#endif
