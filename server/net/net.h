/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network: listeners, worker threads and their connections. libevent is seen in this folder only.
 *
 *   net_listen ---> sockets           (may need root)
 *   net_serve: main thread --accept--> queue + eventfd --> worker 0 .. n-1 (a loop and a store_worker each)
 *              until SIGINT, SIGTERM, SIGUSR1 or net_stop
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
#include "server/conn/server.h"

struct net;
struct protocol;

/* A bound socket that a service manager has handed over. */
struct net_socket {
	int fd; /* the network owns it from net_listen on */
	const char *name; /* "tls", "notls", or any other name, which has no meaning */
};

/* What the network gets from main(). All that is pointed to outlives the network. */
struct net_setup {
	const struct server *server; /* its store may still be missing; net_serve needs it */
	/*
	 * The protocol of a connection whose first byte is this one. NULL: none, and the connection is closed. Called by
	 * the workers, once for each connection. It may be NULL if net_serve is never called.
	 */
	const struct protocol *(*choose_protocol)(const struct conf *conf, unsigned char first);
	const struct net_socket *inherited; /* these are served instead of the options' sockets, if there are any */
	unsigned inherited_count;
};

/*
 * Binds the sockets that the options name (-l, -p, -s, -a, -b), or takes the inherited ones. Nothing is accepted yet.
 * Main thread. Blocks on files and on name resolution.
 *
 * FS_OK: *out is the caller's, to be closed with net_close.
 * FS_ESYS, FS_EINVAL: reason has the address and errno's text.
 * FS_ERANGE: certificates or ciphers of TLS, which are read first, can't be used; reason says which.
 */
FS_MUST_CHECK int net_listen(struct net **out, const struct net_setup *setup, char reason[256]);

/*
 * Starts the workers, calls ready() (NULL: nothing to call), and serves until a signal asks to
 * stop. Before it returns all connections are closed, all their flash reads are done and the
 * workers have ended. 0, or a code when the workers could not be started.
 */
struct net_hooks {
	void *context;
	void (*ready)(void *context); /* everything runs; NULL: nothing to call, as all of them */
	void (*reload)(void *context); /* SIGHUP */
	void (*stopping)(void *context); /* the workers end next: loans (conn.h) are to be given back */
	void (*second)(void *context); /* once a second, in the main thread */
	bool beats; /* second() asks net_alive: idle workers are woken once a second too */
};
FS_MUST_CHECK int net_serve(struct net *net, const struct net_hooks *hooks, char reason[256]);

/* From any thread: as if a signal had asked to stop ("shutdown"). */
void net_stop(struct net *net);
/* Has each worker come round within so many seconds? In second() only, with beats. */
bool net_alive(const struct net *net, uint32_t within_seconds);
/* refresh_certs: certificates and keys are read again; connections that are open keep theirs. FS_OK, or a
   code and a reason: then the old ones stay in use. */
FS_MUST_CHECK int net_refresh_certificates(struct net *net, char reason[256]);

/* Closes the listening sockets and frees everything. NULL is nothing. */
void net_close(struct net *net);

struct net_status {
	/* As memcached counts them: with the listening sockets, a UDP socket once for each worker; of the open ones one
	   less is shown. */
	unsigned connections; /* open now */
	unsigned connection_peak; /* most at one time: their memory may be kept */
	bool accepting;
	uint64_t not_accepting_us; /* total time at the limit */
	int tcp_port; /* the first one bound, 0 without TCP */
	uint64_t client_bytes; /* memory of connections and of their buffers and answers, those kept for the next too */
	const char *event_version; /* of libevent */
	uint64_t certificates_at; /* wall seconds of the last reading; 0 without TLS */
};
void net_get_status(const struct net *net, struct net_status *out);
/* Of the memory that workers have from the start, the bytes that are not resident yet. */
uint64_t net_untouched(const struct net *net);

/* "stats conns": listeners and connections, one after the other. Any thread; takes a leaf lock of each worker,
   so that see() must be short and take none. */
struct net_conn_status {
	int fd;
	const char *address, *listen_address; /* "tcp:127.0.0.1:11211", "tcp6:[::1]:11211", "unix:/path", "udp:...";
						      listen_address: NULL for a listening socket itself */
	const char *
		state; /* memcached's words: conn_listening, conn_read, conn_swallow, conn_nread, conn_mwrite, conn_watch */
	uint32_t idle_seconds; /* since its last command */
};
void net_each_connection(struct net *net, void (*see)(void *context, const struct net_conn_status *conn),
			 void *context);

#endif
