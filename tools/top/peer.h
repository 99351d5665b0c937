/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that is asked for its reports again and again over one connection.
 *
 *   DOWN ──(back-off over)──> CONNECTING ──> IDLE <──(all reports read)── ASKING
 *     ^                           │            └──────(peer_ask)────────────^
 *     └───────(any failure)───────┴─────────────────────────────────────────┘
 *
 * A peer asks for all reports at once and reads the answers line by line, within bounds. Bytes that aren't an answer of
 * a memcached server end the connection. After a failure a peer waits 0.5, 1, 2, ... 8 s before it connects again.
 *
 * Threads: one owner. Sockets don't block; the look-up of a host's name does. Times come from monotonic_us().
 */
#ifndef FS_TOOLS_TOP_PEER_H
#define FS_TOOLS_TOP_PEER_H

#include <netdb.h>
#include <stddef.h>

#include "tools/common/client.h"
#include "tools/top/answer.h"
#include "tools/top/sample.h"

enum peer_state { PEER_DOWN, PEER_CONNECTING, PEER_IDLE, PEER_ASKING };

#define PEER_INPUT_BYTES (16u << 10)

struct peer {
	const char *address; /* HOST:PORT, HOST, or the path of a unix socket; borrowed */
	int64_t timeout_us; /* for a connection, and for a whole poll */
	enum peer_state state;
	struct client client; /* CONNECTING: its socket alone, until that is connected */
	bool reached; /* CONNECTING: the socket is connected; handshake and login go on */
	const struct access *access; /* borrowed */
	struct addrinfo *addresses, *next_address;
	int64_t deadline_us; /* CONNECTING, ASKING: fails then; DOWN: connects then */
	unsigned failures; /* in a row */
	bool wanted; /* a poll is wanted as soon as there is a connection */
	bool was_idle; /* the connection has served, so its end may be the server's idle timeout */
	char error[192]; /* the reason for DOWN; printable */
	char input[PEER_INPUT_BYTES];
	size_t input_length;
	size_t sent;
	enum report report;
	unsigned rows;
	struct sample sample;
};

/* Returns microseconds of a clock that never goes back. */
int64_t monotonic_us(void);

/* init does not connect yet; timeout_us limits a connection and a poll; the access outlives the peer. fini closes the
   connection. */
void peer_init(struct peer *peer, const struct access *access, const char *address, int64_t timeout_us);
void peer_fini(struct peer *peer);

/* Asks for all reports now, or as soon as there is a connection. */
void peer_ask(struct peer *peer, int64_t now_us);

/* Returns the events that poll() is to wait for on client.fd (0: none). */
short peer_events(const struct peer *peer);
/* Returns the time at which peer_step is due even without an event; INT64_MAX: never. */
int64_t peer_due_us(const struct peer *peer);

/* Continues with the events that poll() returned for it. True when a poll is complete: peer->sample has its values
   until the next step. */
bool peer_step(struct peer *peer, short revents, int64_t now_us);

#endif
