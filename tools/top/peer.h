/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that is asked for its reports, again and again, over one connection.
 *
 *   DOWN ──(back-off over)──> CONNECTING ──> IDLE <──(all reports read)── ASKING
 *     ^                           │            └──────(peer_ask)────────────^
 *     └───────(any failure)───────┴─────────────────────────────────────────┘
 *
 * All reports are asked for at once, and their answers taken line by line, within bounds. What isn't an answer of a
 * memcached server ends the connection. After a failure it waits 0.5, 1, 2, ... 8 s before it connects again.
 *
 * Threads: one owner. Sockets don't block; the look-up of a host's name does. Times are of monotonic_us().
 */
#ifndef FS_TOOLS_TOP_PEER_H
#define FS_TOOLS_TOP_PEER_H

#include <netdb.h>
#include <stddef.h>

#include "tools/top/answer.h"
#include "tools/top/sample.h"

enum peer_state { PEER_DOWN, PEER_CONNECTING, PEER_IDLE, PEER_ASKING };

#define PEER_INPUT_BYTES (16u << 10)

struct peer {
	const char *address; /* HOST:PORT, HOST, or the path of a unix socket; borrowed */
	int64_t timeout_us; /* for a connection, and for a whole poll */
	enum peer_state state;
	int fd;
	struct addrinfo *addresses, *next_address;
	int64_t deadline_us; /* CONNECTING, ASKING: until then; DOWN: waits until then */
	unsigned failures; /* in a row */
	bool wanted; /* a poll is wanted as soon as there is a connection */
	bool was_idle; /* the connection has served, so its end may be the server's idle timeout */
	char error[192]; /* why it is DOWN; printable */
	char input[PEER_INPUT_BYTES];
	size_t input_length;
	size_t sent;
	enum report report;
	unsigned rows;
	struct sample sample;
};

int64_t monotonic_us(void);

void peer_init(struct peer *peer, const char *address, int64_t timeout_us);
void peer_fini(struct peer *peer);

/* Asks for all reports: now, or as soon as there is a connection. */
void peer_ask(struct peer *peer, int64_t now_us);

/* What to wait for on fd (0: nothing). */
short peer_events(const struct peer *peer);
/* When peer_step is due even if nothing comes; INT64_MAX: never. */
int64_t peer_due_us(const struct peer *peer);

/* Goes on, with what poll() said of fd. True when a poll is complete: peer->sample has it until the next step. */
bool peer_step(struct peer *peer, short revents, int64_t now_us);

#endif
