/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection as a protocol sees it: bytes that came in, a queue of answers that go out in order.
 *
 *   recv -> input [start, end) -> protocol->input() -> store_execute -+-> output bytes ---+-> send
 *                                                                     +-> queue of replies +
 *
 * Answers. What is known at once is appended to the output bytes. What is not known yet (a flash
 * read is under way), or is too large to copy, is a reply: it stands in the queue and names the
 * place in the byte stream where it belongs. So answers leave in the order of the commands whatever
 * order the flash reads end in, and a hit in DRAM costs neither a reply nor an allocation:
 *
 *   output bytes  |VALUE a ...|            |VALUE c ...END|      one sendmsg, pieces in this order
 *   replies                    \ b: pending                      ... up to the first pending one
 *
 * Values of more than CONN_COPY_BYTES are sent from where they lie (item or flash read buffer) and released
 * once written; shorter ones of DRAM are copied into the output bytes.
 *
 * Back-pressure: a protocol asks conn_may_go() before each key. It says no while the output
 * is too long or too many requests are in flight; input() then returns CONN_WAIT, and is called
 * again when that has changed. Nothing is read from the socket meanwhile. Beside the bounds of each
 * connection there is one on what the answers of all of a worker's connections hold: beyond it each
 * may hold CONN_LEAST_BYTES and one value. So every one of them goes on as its own answers leave:
 * it always has an event to wait for, and none waits for another. Only when such values together reach
 * CONN_MOST_TIMES the bound do requests of all wait, and of those who hold them, who has not taken its answers
 * for ten seconds is closed (sweep.c).
 *
 * Threads: all of it belongs to the connection's worker.
 */
#ifndef FS_SERVER_CONN_CONN_H
#define FS_SERVER_CONN_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
#define CONN_LEAST_BYTES (32u << 10) /* what a connection may hold whatever others do */
#define CONN_TOTAL_PART 8 /* this part of -m may all connections' answers hold ... */
#define CONN_SHARE_BYTES (64u << 10) /* of each connection's answers doesn't count for the next */
#define CONN_MOST_TIMES 4 /* ... and so many times that with large values */
#define CONN_ROOM_BYTES 4096u /* the largest piece of output made at once */
#define REPLY_TEXT_BYTES 640 /* the longest head: meta's with a base64 key and all its flags */
#define REPLY_OWN_BYTES 96u /* for the protocol's own use */

struct conn;
struct worker;

/* An answer that can't be output bytes: its request is pending, or its value is large. */
struct reply {
	struct store_request request;
	struct conn *conn;
	struct reply *next; /* in the connection's queue, or among the worker's spare ones */
	uint64_t position; /* in the output stream */
	uint64_t since_ns; /* pending: when its request was received (durations.h) */
	uint32_t sent; /* bytes of it that were written */
	uint32_t held; /* memory that it holds, or is expected to while it is pending */
	uint16_t text_length;
	bool pending; /* the request is not done */
	bool ordered; /* a read-modify-write: further commands on its key wait */
	bool has_value; /* after the text: value and tail */
	uint8_t tail_length; /* bytes of "\r\n" that follow a value: 2, or 0 in the binary protocol */
	uint8_t kind; /* the protocol's: which of its answers it is */
	bool noreply;
	bool show_cas;
	_Alignas(8) char own[REPLY_OWN_BYTES]; /* what the protocol needs to make the answer; not cleared */
	char text[REPLY_TEXT_BYTES]; /* the key while the request is under way, then the head */
};

enum conn_verdict {
	CONN_MORE, /* the input is used up, but for the start of a command */
	CONN_WAIT, /* conn->wait says for what */
	CONN_YIELD, /* it had its turn */
	CONN_LEND, /* conn_lend was called: goes away once all is sent */
	CONN_CLOSE /* after what is queued has been written */
};

/* A key that was looked ahead at, and its hash. */
struct foreseen {
	const char *key; /* in the input */
	uint64_t hash;
	uint32_t length;
};

enum conn_wait { CONN_WAIT_NONE, CONN_WAIT_OUTPUT, CONN_WAIT_REPLIES, CONN_WAIT_MEMORY };

struct protocol {
	const char *name;
	/* Executes what is in the input, and says why it stopped. */
	enum conn_verdict (*input)(struct conn *conn);
	/* The keys that the commands in the input name, in their order and as far as that is cheap to
	   see; at most `most`. Changes nothing: what it gets wrong only costs time. */
	unsigned (*foresee)(const struct conn *conn, struct foreseen *out, unsigned most);
	/* The request of a reply is done: makes its head from the result, and says whether a value
	   follows. The connection may be dead. */
	void (*compose)(struct reply *reply);
	/* The connection is going away: drop what the session holds. */
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
	unsigned turns; /* commands left before others get their turn */
	unsigned pending; /* replies whose request is not done */
	unsigned ordered; /* of these, read-modify-writes ... */
	uint64_t ordered_mask; /* ... a bit for each of their hashes */
	char *body; /* where the value of a storage command goes ... */
	uint32_t body_left; /* ... and how much is missing; read from the socket without a copy */
	const struct listener *listener; /* it came in by: its protocol, its tag; NULL: none (UDP) */
	char *user; /* who has authenticated; NULL: nobody, or nobody has to. Freed with the connection */
	bool authenticated; /* or doesn't have to be: commands are executed */
	uint8_t wait;
	bool blocked; /* the socket takes no more */
	bool failed; /* out of memory, or the peer is gone: close as soon as possible */
	bool finishing; /* no more input: closes when all is answered */
	bool dead; /* closed; freed with the last pending reply */
};

/* Its descriptor: what log lines call it. */
int conn_number(const struct conn *conn);
/* The peer as log lines and "stats conns" show it: "127.0.0.1:4711", "[::1]:4711", "unix:/path". */
const char *conn_peer(const struct conn *conn, char out[128]);

/* ---- loans: a connection is another thread's for a while (loan.c) ------------------------------ */

/*
 * "watch" and "lru_crawler metadump" write for long what no worker should wait for. The worker lends the
 * connection out: the protocol calls conn_lend() in a barrier and returns CONN_LEND; once all that was
 * answered before is sent, take() is called on the worker's thread with the loan, which it hands on to a thread
 * of its own and returns; or with NULL, if the connection was closed before that.
 * Until loan_return the worker neither reads, nor sends, nor closes the connection, which stays counted. False: not
 * possible (UDP): nothing has happened, the protocol answers an error.
 */
struct loan;
bool conn_lend(struct conn *conn, void (*take)(void *context, struct loan *loan), void *context);
/* As send(): bytes taken, or -1 with errno, EAGAIN when the peer doesn't read fast enough. For TLS too, which is
   why what was not taken comes first in the next call, at least as much of it. */
ssize_t loan_send(struct loan *loan, const char *bytes, size_t length);
/* For poll(): POLLOUT to go on after EAGAIN, POLLIN | POLLRDHUP to see the peer go. */
int loan_fd(const struct loan *loan);
/* Has the peer closed (at least its sending side), or is the connection broken? What it sends meanwhile stays
   for the worker. (poll: POLLRDHUP, POLLHUP, POLLERR.) */
bool loan_peer_gone(struct loan *loan);
/* From any thread: the worker has it again, and closes it if close is set. All loans must be back before
   the workers stop (net_serve calls the stop hook for that, net.h). */
void loan_return(struct loan *loan, bool close);

/* store_hash of a key in the input, computed once for looking ahead and execution. */
uint64_t conn_hash(struct conn *conn, const char *key, size_t length);

/* ---- output ---------------------------------------------------------------------------------- */

char *conn_make_room(struct conn *conn, uint32_t bytes);

/* Room for bytes (at most CONN_ROOM_BYTES) in one piece at the end of the output, to be taken by
   conn_commit. Never NULL: when memory is out the connection fails, and the bytes go nowhere. */
static inline char *conn_room(struct conn *conn, uint32_t bytes)
{
	if (__builtin_expect(conn->output.capacity - conn->output.tail >= bytes, 1))
		return conn->output.bytes + conn->output.tail;
	return conn_make_room(conn, bytes);
}

static inline void conn_commit(struct conn *conn, uint32_t bytes)
{
	if (!conn->failed)
		conn->output.tail += bytes;
}

static inline void conn_put(struct conn *conn, const char *text, uint32_t length)
{
	memcpy(conn_room(conn, length), text, length);
	conn_commit(conn, length);
}

/* ---- replies --------------------------------------------------------------------------------- */

/* A spare reply with its request's done and owner set. NULL when memory is out. */
struct reply *conn_reply_take(struct conn *conn);
void conn_reply_give(struct conn *conn, struct reply *reply);

/* Puts a reply at the end of the output: with a pending request, or complete. */
void conn_queue(struct conn *conn, struct reply *reply);

/* True while a read-modify-write of this connection on this key is pending: wait for it. */
bool conn_must_wait(const struct conn *conn, uint64_t hash);

/* May another request start? False: conn->wait is set, return CONN_WAIT. */
bool conn_may_go_slow(struct conn *conn);

static inline bool conn_may_go(struct conn *conn)
{
	if (__builtin_expect(!conn->output.first && !conn->blocked &&
				     conn->output.tail - conn->output.head < CONN_FLUSH_BYTES,
			     1))
		return true;
	return conn_may_go_slow(conn);
}

/* For barriers: true when nothing is pending; false: conn->wait is set, return CONN_WAIT. */
static inline bool conn_settled(struct conn *conn)
{
	if (conn->pending == 0)
		return true;
	conn->wait = CONN_WAIT_REPLIES;
	return false;
}

#endif
