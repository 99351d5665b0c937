/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon without its threads and sockets: a store with a small flash file, one worker, and connections whose peer is
 * a client in the same process. The caller's thread is the worker and, in between, the cleaner; the clock stands still
 * until it is moved. The same commands have the same answers in each service that was opened alike.
 *
 *   client_send -> transport's receive() -> worker's turn: conn_step_all -> transport's send() -> client's answer
 *
 * One service at a time: counters and the prefixes of "stats detail" are the process's.
 */
#ifndef FS_TESTS_FUZZ_SERVICE_H
#define FS_TESTS_FUZZ_SERVICE_H

#include "base/clock.h"
#include "base/rng.h"
#include "conf/conf.h"
#include "server/net/net_internal.h"

struct service_options {
	bool no_ids; /* -C */
	bool no_evict; /* -M */
	bool login; /* -Y: "user" with "secret" */
	bool binary; /* -B binary */
	bool flash; /* objects f0 .. f9 are there, and numbers n0 and n1 (binary: f-0 ...), most on flash */
	bool large_items; /* -I 2m */
	bool old; /* --compat-version 1.6.18 */
	bool detail; /* "stats detail" begins with nothing: not set, it may show what other services have counted */
	unsigned turns; /* -R */
};

struct service {
	struct clk clk;
	struct conf conf;
	struct server server;
	struct net net;
	struct worker worker;
	uint64_t held_most; /* at the start */
	unsigned fillers;
	int flash_fd; /* -1: no flash */
};

void fuzz_service_open(struct service *service, const struct service_options *options);
/* Requires that nothing is left of the connections, which have been closed: no memory, no request, no reply. */
void fuzz_service_close(struct service *service);

/* Puts what was read twice, and some objects of its own, on flash, as far as there is place in a segment. */
void service_move(struct service *service);
/* Flips bytes on flash, few or many, at places that follow from the number. */
void service_damage(struct service *service, uint8_t number);
/* The daemon's seconds. */
void service_pass(struct service *service, unsigned seconds);
/* One turn of the worker. */
void service_turn(struct service *service);
/* Waits, with a deadline, until there is something to do for a worker whose flash reads are under way. */
void service_wait(struct service *service);

/* ---- a client -------------------------------------------------------------------------------- */

struct client {
	struct service *service;
	struct socket_conn *sock; /* NULL: closed by the daemon */
	const uint8_t *bytes; /* to be sent */
	size_t length, at;
	bool ended; /* sends no more */
	struct rng *cuts; /* NULL: all at once; else where the stream is cut, both ways */
	char *answer; /* all that came back; freed by client_close */
	size_t answer_length, answer_capacity;
	size_t certain; /* bytes of the answer before the first innocent loss (innocent.h); SIZE_MAX: there was none */
};

void client_open(struct client *client, struct service *service, struct rng *cuts);
/* Sends bytes and runs the worker until they are answered, as far as they can be. */
void client_send(struct client *client, const uint8_t *bytes, size_t length);
/* Ends the stream: requires that the daemon closes the connection. The answer stays until client_free. */
void client_end(struct client *client);
void client_free(struct client *client);

#endif
