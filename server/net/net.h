/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network: listeners, worker threads and their connections. libevent is seen in this folder only.
 *
 *   net_listen ---> sockets           (may need root)
 *   net_serve: main thread --accept--> queue + eventfd --> worker 0 .. n-1 (a loop and a store_worker each)
 *              until SIGINT, SIGTERM, SIGUSR1 or net_stop
 *   net_close
 *
 * Threads: listen, serve and close belong to the main thread, which accepts and takes the signals. Any thread may call
 * net_get_status. A connection belongs to one worker for life.
 *
 * Errors: codes of base/error.h, with a reason for the operator.
 */
#ifndef FS_SERVER_NET_NET_H
#define FS_SERVER_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "server/conn/server.h"

struct conn;
struct net;
struct protocol;

/* A bound socket that a service manager has handed over. */
struct net_socket {
	int fd; /* the network owns it from net_listen on */
	const char *name; /* "tls", "notls", or any other name, which has no meaning */
};

/* The parts of the daemon that main() hands over to the network. Whatever a pointer leads to outlives the network. */
struct net_setup {
	const struct server *server; /* its store may still be missing; net_serve needs it */
	/*
	 * The protocol of a connection whose first byte is this one, at a listener with this binding (enum
	 * conf_protocol). NULL: none, and the connection is closed. The
	 * workers call it, once for each connection. It may be NULL if net_serve is never called.
	 */
	const struct protocol *(*choose_protocol)(const struct conf *conf, int binding, unsigned char first);
	const struct net_socket *inherited; /* these are served instead of the options' sockets, if there are any */
	unsigned inherited_count;
};

/*
 * Binds the sockets that the options name (-l, -p, -s, -a, -b), or takes the inherited ones. Nothing is accepted yet.
 * Main thread. Blocks on files and on name resolution.
 *
 * FS_OK: *out is the caller's, to be closed with net_close.
 * FS_ESYS (errno), FS_EINVAL: reason has the address and errno's text.
 * FS_ERANGE: certificates or ciphers of TLS, which are read first, can't be used; or the options name no socket at all. reason
 * says which.
 */
FS_MUST_CHECK int net_listen(struct net **out, const struct net_setup *setup, char reason[256]);

/*
 * Looks at certificates and addresses as net_listen would, and binds nothing. Calls fault() for each thing that would
 * stop it: the option, net_listen's code, and the reason. Main thread. Blocks on files and on name resolution.
 */
typedef void net_fault_fn(void *context, const char *option, int code, const char *reason);
void net_check(const struct conf *conf, net_fault_fn *fault, void *context);

/* Functions that net_serve calls, all in the main thread. NULL: nothing to call. */
struct net_hooks {
	void *context;
	void (*ready)(void *context); /* everything runs */
	void (*reload)(void *context); /* SIGHUP */
	void (*draining)(void *context); /* nobody connects any more; requests that have arrived are answered */
	void (*hurry)(void *context); /* a second signal has come meanwhile */
	void (*stopping)(void *context); /* the workers end next: all loans (conn/conn.h) must be given back */
	void (*second)(void *context); /* once a second, in the main thread */
	bool beats; /* second() asks net_alive: idle workers are woken once a second too */
};

/*
 * Starts the workers, calls ready(), and serves until a signal or net_stop asks to stop. Then it stops
 * listening, and lets the connections finish the requests that have arrived, for two seconds at most. Before it returns, all
 * connections are closed, all their flash reads are done and the workers have ended. FS_OK, or a code with the reason
 * when the workers could not be started. Main thread.
 */
FS_MUST_CHECK int net_serve(struct net *net, const struct net_hooks *hooks, char reason[256]);

/* Returns what the daemon is bound to, as store/state/endpoints.h has it, to be freed with mem_free. After net_listen. Main thread. */
char *net_endpoints(const struct net *net);

/* Asks net_serve to stop, as a signal does. Returns at once. Any thread. */
void net_stop(struct net *net);
/* Returns true if each worker has come round within so many seconds. Only second() may call it, and only with beats. */
bool net_alive(const struct net *net, uint32_t within_seconds);
/* Reads certificates and keys again; connections that are open keep theirs. FS_OK, or a code with the reason: the old
   ones stay in use then. Any thread; blocks on files and takes a leaf lock. */
FS_MUST_CHECK int net_refresh_certificates(struct net *net, char reason[256]);

/* Logs a warning for each file of TLS that this process can't read: a renewal would fail. For the user who serves, as root
   reads them all. net_serve calls it. */
void net_warn_renewal(const struct conf *conf);

#define NET_HOLDER_BYTES 128
/* Describes the process that listens at "ADDRESS:PORT" or "[IPV6]:PORT", like "process 12 (memcached), user
   memcache". Returns false, with out unchanged, if nobody is found. Main thread, at the start; reads much of /proc, and may ask
   for the name's address. */
FS_MUST_CHECK bool net_find_holder(const char *address, char *out, size_t size);

/* Closes the listening sockets and frees everything, after net_serve. NULL is nothing. Main thread. */
void net_close(struct net *net);

struct net_status {
	/* The next two count as memcached does: they include listening sockets, a UDP socket once for each worker.
	   "stats" shows one connection fewer as open. */
	unsigned connections; /* open now */
	unsigned connection_peak; /* the most at one time, as their memory may be kept */
	bool accepting;
	uint64_t not_accepting_us; /* total time at the limit */
	int tcp_port; /* the first one bound, 0 without TCP */
	int udp_port; /* the first one bound, 0 without UDP */
	uint64_t client_bytes; /* memory of connections, their buffers and answers; spare ones are included */
	const char *event_version; /* of libevent */
	uint64_t certificates_at; /* wall seconds of the last reading; 0 without TLS, like the next three */
	int64_t certificates_expire_at; /* wall seconds: the first of the chain that expires */
	uint64_t certificate_failures; /* readings after the start that failed */
	bool certificates_failed; /* the last one did: the certificates before it are in use */
};
/* Fills out. Any thread; takes no lock except a leaf for certificates_at. */
void net_get_status(const struct net *net, struct net_status *out);
/* Returns the bytes of the memory that workers have from the start which are not resident yet. Any thread; not for the
   hot path. */
uint64_t net_untouched(const struct net *net);

/* A listening socket or a connection, for "stats conns". Texts live until see() returns. */
struct net_conn_status {
	int fd;
	const char *address, *listen_address; /* "tcp:127.0.0.1:11211", "tcp6:[::1]:11211", "unix:/path", "udp:...";
						      listen_address: NULL for a listening socket itself */
	/* memcached's words: conn_listening, conn_new_cmd (it has sent nothing yet, or others have their turn),
	   conn_read (it waits for a command), conn_parse_cmd (its command asks), conn_nread, conn_swallow, conn_mwrite, conn_watch */
	const char *state;
	uint32_t idle_seconds; /* since its last command */
};
/* Calls see() for each listening socket and each connection; asking, or NULL, is the one whose command wants to know.
   Any thread. It holds a leaf lock of a worker meanwhile, so see() must be short and take no lock. */
void net_each_connection(struct net *net, const struct conn *asking,
			 void (*see)(void *context, const struct net_conn_status *conn), void *context);

#endif
