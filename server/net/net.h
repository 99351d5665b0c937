/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network: listeners, worker threads and their connections. libevent is seen in this folder only.
 *
 *   net_listen ---> sockets           (may need root)
 *   net_serve: main thread --accept--> queue + eventfd --> worker 0 .. n-1 (a loop and a store_worker each)
 *              until SIGINT, SIGTERM or SIGUSR1
 *   net_close
 *
 * Threads: listen, serve and close belong to the main thread, which accepts and takes the signals.
 * net_status from any thread. A connection belongs to one worker for life.
 *
 * Errors: codes of base/error.h, with a reason for the operator.
 */
#ifndef FS_SERVER_NET_NET_H
#define FS_SERVER_NET_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "server/server.h"

struct net;

/*
 * Binds what the options name (-l, -p, -s, -a, -b); nothing is accepted yet. server->store may
 * still be missing. 0 or FS_ESYS / FS_EINVAL with the reason, address and errno's text in it.
 */
FS_MUST_CHECK int net_listen(struct net **out, const struct server *server, char reason[256]);

/*
 * Starts the workers, calls ready() (NULL: nothing to call), and serves until a signal asks to
 * stop. Before it returns all connections are closed, all their flash reads are done and the
 * workers have ended. 0, or a code when the workers could not be started.
 */
FS_MUST_CHECK int net_serve(struct net *net, void (*ready)(void *context), void *context, char reason[256]);

/* Closes the listening sockets and frees everything. NULL is nothing. */
void net_close(struct net *net);

struct net_status {
	unsigned connections;	    /* open now */
	unsigned connection_peak;   /* most at one time: their memory may be kept */
	bool accepting;
	uint64_t not_accepting_us;  /* total time at the limit */
	int tcp_port;		    /* the first one bound, 0 without TCP */
	const char *event_version;  /* of libevent */
};
void net_get_status(const struct net *net, struct net_status *out);

#endif
