/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the network: workers, and the part of a connection that protocols don't see (conn/conn.h).
 *
 * One turn of a worker:
 *
 *   event_base_loop(ONCE): sockets are received from, the store's completions, new and returned connections; at each
 *     CONN_STEPS that have received, and at the end: their commands are executed and answered store_worker_poll:
 *     answers that flash has given while those were served connections that are ready again: had to give way, were
 *     blocked, or one of their replies is done store_worker_flush: the flash reads gathered in this turn start together
 *
 * The store's clock is read at the first thing that happens in a turn (worker_wake), not before the loop sleeps:
 * otherwise it would stand still for as long as nothing happens.
 *
 * Threads: a function without a remark belongs to the worker's thread if it takes a worker or a connection, and else to
 * the main thread.
 */
#ifndef FS_SERVER_NET_NET_INTERNAL_H
#define FS_SERVER_NET_NET_INTERNAL_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/lock.h"
#include "server/conn/conn.h"
#include "server/count/durations.h"
#include "server/net/net.h"

#define CONN_STEPS 32u /* connections that are stepped together */
#define CONN_FORESEEN 64u /* keys that are looked ahead at, of all of them */
#define CONN_FORESEE_BYTES 128u /* a connection alone needs more input than this to have two keys in it */
#define SPARE_BUFFERS 64 /* kept per worker, 16 KiB each */
#define SPARE_REPLIES 1024 /* kept per worker */

/*
 * The way bytes move between a connection and its peer: plain sockets, TLS, one UDP datagram. It is called by the
 * worker, or by the thread that has the loan. Nothing here blocks.
 *
 *   open     makes transport_data; NULL: there is nothing to make. Returns false if memory is out
 *   receive  as readv(): returns bytes, 0 at the end, -1 with errno. *more: there may be more although the socket
 *            doesn't say so (it filled all the room, or TLS has decrypted more than was asked for); with
 *            EAGAIN: it can't go on before the socket takes bytes (TLS answers to something)
 *   send     as writev() on a socket without SIGPIPE. After EAGAIN or a part, the next call offers the rest again,
 *            perhaps with more behind it. UDP only gathers, as the number of datagrams must be known
 *   close    all was sent, or failed: sends the datagrams that UDP has gathered, ends TLS, closes the descriptor
 *
 * Plain sockets take direct calls instead, where it matters (sock_is_plain). The events of a UDP connection
 * have no descriptor: it is ready from the start, and its receive() returns 0 after the datagram.
 */
struct socket_conn;

struct transport {
	bool (*open)(struct socket_conn *sock);
	ssize_t (*receive)(struct socket_conn *sock, const struct iovec *pieces, unsigned count, bool *more);
	ssize_t (*send)(struct socket_conn *sock, const struct iovec *pieces, unsigned count);
	void (*close)(struct socket_conn *sock);
	bool datagram; /* connections of it are short, and can't be lent out */
};
extern const struct transport transport_plain, transport_tls, transport_udp;

/* How a listener's connections are received: bytes, certificates, commands. */
struct reception {
	const struct transport *transport;
	int verify; /* TLS: OpenSSL's SSL_VERIFY_ flags; VERIFY_AS_SET: those of -o ssl_verify_mode */
	int protocol; /* enum conf_protocol, as -B has it */
};
#define VERIFY_AS_SET (-1)

/* The arguments of conn_open. */
struct opening {
	int fd; /* the connection owns it, except for a UDP socket */
	const struct listener *listener; /* it came in by this one; NULL: none (UDP), and it is not counted */
	const struct transport *transport;
	void *transport_data; /* UDP: its datagram */
};

#define SOCKET_CONN_MAGIC 0x736f636bu /* "sock": an open connection, or a dead one with pending replies */
#define SOCKET_CONN_FREED 0x64656164u /* "dead": its memory was given back */

/* It belongs to its worker's thread, except for the two atomics, and for transport and transport_data while it is
   lent. */
struct socket_conn {
	struct conn conn; /* first: the two pointers are one */
	uint32_t magic; /* SOCKET_CONN_MAGIC; checked when libevent or a loan brings the connection back */
	const struct transport *transport;
	void *transport_data; /* TLS: its SSL; UDP: the datagram and the answer so far */
	struct loan *loan; /* a loan that was asked for, or has begun (loan.c); else NULL */
	LIST_ENTRY(socket_conn) link; /* in the worker's conns */
	TAILQ_ENTRY(socket_conn) ready_link;
	struct event readable, writable;
	/* For "stats conns", which other threads ask for: */
	_Atomic uint32_t active_seconds; /* net's coarse clock when it last sent something */
	_Atomic uint8_t state; /* enum conn_state */
	uint32_t blocked_seconds; /* since when the socket has not taken all its answers; 0: it takes them */
	int fd;
	bool ready; /* in the worker's ready list, or ... */
	bool fresh; /* ... (ready too) in the worker's fresh[] */
	bool more; /* there may be more than the socket says (struct transport) */
	bool reading; /* readable is added to the loop */
	bool lent; /* another thread has it: the worker neither reads, nor sends, nor closes it */
};

/* Returns the socket's side of a connection. Aborts if it isn't one that is still allocated. */
static inline struct socket_conn *sock_of(struct conn *conn)
{
	struct socket_conn *sock = (struct socket_conn *)conn;

	debug_must(sock->magic == SOCKET_CONN_MAGIC);
	return sock;
}

/* The states of a connection in "stats conns", in memcached's words. The first one is that of a connection which has
   sent nothing yet. STATE(ID, word) */
#define CONN_STATE_TABLE(STATE) \
	STATE(NEW_COMMAND, "conn_new_cmd") \
	STATE(READ, "conn_read") \
	STATE(PARSE, "conn_parse_cmd") \
	STATE(BODY, "conn_nread") \
	STATE(SWALLOW, "conn_swallow") \
	STATE(WRITE, "conn_mwrite") \
	STATE(WATCH, "conn_watch") \
	STATE(LISTENING, "conn_listening")

enum conn_state {
#define CONN_STATE_ENUM(id, word) CONN_STATE_##id,
	CONN_STATE_TABLE(CONN_STATE_ENUM)
#undef CONN_STATE_ENUM
};

/* Is it a socket without TLS? Then workers make the system calls directly. */
static inline bool sock_is_plain(const struct socket_conn *sock)
{
	return __builtin_expect(sock->transport == &transport_plain, 1);
}

/* Buffers for clients' values. They are not on the thread's stack, as stacks are in core dumps (base/alloc.h). Only the
   worker's thread uses them, each within one function's call. */
#define SCRATCH_COPY_BYTES (64u << 10) /* of short pieces, in one sendmsg */
#define SCRATCH_RECORD_BYTES 16384u /* the most that TLS sends as one */
#define SCRATCH_DATAGRAM_BYTES 65536u /* no datagram is longer */
struct scratch {
	char copy[SCRATCH_COPY_BYTES], record[SCRATCH_RECORD_BYTES], datagram[SCRATCH_DATAGRAM_BYTES];
	char sink[CONN_ROOM_BYTES]; /* takes output that there is no memory for */
};

struct worker {
	struct net *net;
	struct scratch *scratch;
	struct store_worker *store;
	struct event_base *base;
	struct event wake_event, store_event, store_timer;
	pthread_t thread;
	unsigned turns; /* commands per turn (-R) */
	bool running; /* thread was started: net_serve's */
	bool woken; /* this turn's clock has been read */
	uint32_t now_seconds; /* of net's coarse clock, in this turn */
	/* The worker changes it under list_lock; other threads read it under list_lock. A member's descriptor is
	   open. */
	LIST_HEAD(, socket_conn) conns;
	struct lock list_lock;
	/* Connections that gave way get one turn, at the end of the worker's turn; otherwise they would have many turns
	   to one of the others. */
	TAILQ_HEAD(ready_list, socket_conn) ready;
	struct socket_conn *fresh[CONN_STEPS]; /* have received in this turn; stepped when there are enough of them */
	unsigned ready_count, fresh_count;
	struct durations durations;
	struct foreseen foreseen[CONN_FORESEEN]; /* the keys of this step, in the order of their execution ... */
	unsigned foreseen_count, foreseen_next; /* ... of which the first are done */
	char *buffers[SPARE_BUFFERS];
	unsigned buffer_count;
	struct reply *replies;
	unsigned reply_count;
	int64_t flash_value_bytes; /* mean length of values from flash: an estimate for pending replies */
	uint64_t held, held_limit; /* memory of all its connections' answers ... */
	uint64_t held_most; /* ... beyond which no further request starts on any of them */
	uint64_t input_bytes; /* of input buffers larger than the pooled ones */
	atomic_bool starving; /* a connection waits for held to fall to held_most; read by the main thread */
	uint32_t swept_seconds; /* when idle connections were last looked for */
	uint64_t datagram_bytes; /* memory of UDP requests and their answers */
	_Atomic uint64_t client_bytes; /* memory of connections, buffers, replies and datagrams; read by any thread */

	/* From the main thread: */
	int wake_fd;
	struct lock lock; /* covers queue */
	struct {
		struct opening *openings;
		unsigned count, capacity;
	} queue;
	struct loan *returned; /* by any thread; covered by lock too */
	atomic_bool second_passed; /* set by the main thread: sweep() is due */
	_Atomic uint32_t beat_seconds; /* net's coarse clock at the last sweep(); read by the main thread */
	atomic_bool draining, stopping;
	atomic_bool drained; /* the worker's: no connection is left, except for loans and datagrams */
};

#define NET_ADDRESS_BYTES 128 /* of an address as text: a UNIX socket's path is the longest */

struct listener {
	struct listener *next;
	struct event event;
	struct net *net;
	int fd;
	struct reception reception; /* of its connections */
	bool local; /* a UNIX socket */
	int family;
	uint16_t port; /* 0: a UNIX socket */
	_Atomic uint32_t active_seconds; /* net's coarse clock when somebody last connected */
	char address[NET_ADDRESS_BYTES]; /* as "stats conns" shows it */
};

struct net {
	const struct server *server;
	const struct protocol *(*choose_protocol)(const struct conf *conf, int binding,
						  unsigned char first); /* as net_setup's */
	int datagram_protocol; /* enum conf_protocol; UDP has no listener */
	const struct net_socket *inherited; /* as net_setup's */
	unsigned inherited_count;
	struct certificates *certificates; /* NULL: no TLS */
	struct event_base *base; /* the main thread's */
	const struct net_hooks *hooks; /* net_serve's */
	struct listener *listeners;
	struct udp_socket *datagrams;
	unsigned listener_count; /* of both kinds; memcached counts them as connections */
	struct event signals[4];
	struct event retry; /* accepting again, after want of descriptors */
	struct event wake_event;
	int wake_fd; /* net_wake's */
	atomic_bool stop_asked;
	bool draining; /* nobody connects any more */
	bool hurried; /* a second signal came meanwhile */
	atomic_bool
		waiting; /* not accepting until a connection closes; the worker that closes it wakes the main thread */
	struct worker *workers; /* from net_serve to net_close */
	_Atomic unsigned worker_count; /* of these that are made; raised by the main thread when one is */
	unsigned next_worker;
	int tcp_port;
	char *unix_path; /* removed at the end, if it is still this file: */
	dev_t unix_device;
	ino_t unix_inode;
	bool accepting;
	atomic_bool accepting_shown; /* the same for net_get_status */
	uint64_t stopped_us; /* when accepting stopped */
	struct event second; /* once a second: the coarse clock */
	_Atomic uint32_t now_seconds; /* of the boot clock */
	_Atomic uint64_t not_accepting_us;
	atomic_uint connections, connection_peak;
};

/* ---- connections (conn.c, output.c) ---------------------------------------------------------- */

/* Opens a connection, which owns the descriptor and transport_data from here on. If memory is out, they are closed. */
void conn_open(struct worker *worker, const struct opening *opening);
/* Emits the connevents event of a connection that was opened, or is being closed. */
void conn_tell(const struct conn *conn, bool opened) __attribute__((cold));
/* Closes a connection at once; pending requests finish without an answer. The struct may be freed. */
void conn_kill(struct conn *conn);
/* Frees a dead connection that nothing is pending for. */
void conn_free(struct conn *conn);
/*
 * Gives count connections of one worker, 1 .. CONN_STEPS, their turn: executes the commands in their input, sends the
 * answers, and finds out what each connection waits for. It makes three passes over all of them. So the memory that the
 * commands will touch is on its way meanwhile, and the same code runs for one connection after the other. CONN_STEPS
 * bounds the time that the first one's answer waits. Some of the connections may be freed afterwards.
 */
void conn_step_all(struct worker *worker, struct socket_conn *const *socks, unsigned count);

/* Sends all answers that are ready, as far as the socket takes them. Sets conn->blocked or conn->failed. */
void conn_flush(struct conn *conn);
/* Returns the bytes that wait to be sent, except those of pending replies. */
static inline uint64_t conn_output_bytes(const struct conn *conn)
{
	return conn->output.tail - conn->output.head + conn->output.value_bytes;
}
/* Gives back the output's memory when it is empty. */
void conn_shrink_output(struct conn *conn);
/* Drops all output; pending replies stay alive, out of the queue. */
void conn_drop_output(struct conn *conn);
/* Frees the worker's spare replies. */
void reply_free_all(struct worker *worker);

/* ---- TLS (certificates.c, tls.c) ------------------------------------------------------------- */

/* The certificates and keys that TLS sessions are made with. Any thread, except for open and close, may call its
   functions, which take a leaf lock. */
struct certificates;
/* Reads the files that conf names. FS_OK: *out is the caller's. FS_ERANGE with the reason: a file or the ciphers can't
   be used. */
FS_MUST_CHECK int certificates_open(struct certificates **out, const struct conf *conf, char reason[256]);
void certificates_close(struct certificates *certificates); /* NULL is nothing */
/* Reads them again, as the user that the daemon has become. FS_OK, or a code with the reason; the old ones stay in use
   then. */
FS_MUST_CHECK int certificates_refresh(struct certificates *certificates, char reason[256]);
/* Fills the fields about certificates. NULL: leaves them. */
void certificates_get_status(const struct certificates *certificates, struct net_status *out);
/* Makes a session with the present certificates; the caller owns it. verify: as struct reception's. NULL: memory is
   out. */
struct ssl_st *certificates_session(struct certificates *certificates, int verify);

/* ---- loans (loan.c) -------------------------------------------------------------------------- */

/* Hands a connection to its borrower, as all is answered and sent. */
void loan_take(struct socket_conn *sock);
/* Gives the borrower NULL, as the connection closes before its loan has begun. */
void loan_forget(struct socket_conn *sock);
/* Takes the connections back that have been returned. A worker that stops closes them. */
void loan_collect(struct worker *worker);

/* ---- connections that last too long (sweep.c) ----------------------------------------------------------- */

/* Wakes the workers that must sweep their connections, and all workers if net_alive asks for their beat. Main thread,
   once a second. */
void sweep_ring(struct net *net);
/* Closes idle connections (-o idle_timeout), and those whose answers keep others from memory. */
void sweep(struct worker *worker);
/* Lets the connections go on that wait for memory, if there is some again. */
void sweep_feed(struct worker *worker);

/* ---- the end of serving (drain.c) --------------------------------------------------------------- */

/* Closes the connections for which nothing is left to do. The worker, at the end of each turn while it drains. */
void drain(struct worker *worker);
/* Stops listening, and returns when all connections are closed, or their time is over, or a second signal has come. Main
   thread. */
void drain_all(struct net *net);

/* ---- workers (worker.c) ---------------------------------------------------------------------- */

/* The first four belong to the main thread. worker_init expects a zeroed struct: it makes the loop, the store's worker
   and the wake-up. FS_OK, FS_ENOMEM, FS_ESYS or the store's code; after each of them worker_fini frees what was
   made. */
FS_MUST_CHECK int worker_init(struct worker *worker, struct net *net);
/* Starts the thread. FS_OK or FS_ESYS. */
FS_MUST_CHECK int worker_start(struct worker *worker);
/* Closes the connections and ends the thread. Blocks until all loans are back and no flash read is pending. */
void worker_stop(struct worker *worker);
/* Frees all, when the thread has ended or was never started. */
void worker_fini(struct worker *worker);
/* Wakes the worker's loop. Any thread. */
void worker_ring(struct worker *worker);
/* Hands a connection to the worker. False: memory is out, and nothing was taken. Main thread; takes a leaf lock. */
FS_MUST_CHECK bool worker_give(struct worker *worker, const struct opening *opening);

/* Reads the store's clock and the coarse clock, once in each turn. */
static inline void worker_wake(struct worker *worker)
{
	if (!worker->woken) {
		worker->woken = true;
		worker->now_seconds = atomic_load_explicit(&worker->net->now_seconds, memory_order_relaxed);
		durations_turn(&worker->durations, store_worker_turn(worker->store));
	}
}

/* Puts a connection, which isn't lent, at the end of the ready list, unless it is ready already. */
static inline void worker_make_ready(struct socket_conn *sock)
{
	if (!sock->ready) {
		must(!sock->lent);
		sock->ready = true;
		TAILQ_INSERT_TAIL(&sock->conn.worker->ready, sock, ready_link);
		sock->conn.worker->ready_count++;
	}
}

/* Adds a connection that has received, and isn't ready, to fresh[]. The caller runs worker_run_fresh when there are
   CONN_STEPS of them. */
static inline void worker_make_fresh(struct socket_conn *sock)
{
	struct worker *worker = sock->conn.worker;

	must(worker->fresh_count < CONN_STEPS);
	debug_must(!sock->ready);
	sock->ready = sock->fresh = true;
	worker->fresh[worker->fresh_count++] = sock;
}

/* Takes a connection that goes away before its step out of fresh[], in which it must be. */
void worker_unmake_fresh(struct socket_conn *sock) __attribute__((cold));

/* Takes a connection out of the ready list or fresh[], if it is in one of them. */
static inline void worker_unmake_ready(struct socket_conn *sock)
{
	struct worker *worker = sock->conn.worker;

	if (sock->fresh) {
		worker_unmake_fresh(sock);
	} else if (sock->ready) {
		must(worker->ready_count > 0);
		TAILQ_REMOVE(&worker->ready, sock, ready_link);
		worker->ready_count--;
	}
	sock->ready = sock->fresh = false;
}

/* Steps the connections in fresh[], which is empty afterwards. */
void worker_run_fresh(struct worker *worker);
/* Does the same, and steps once each connection that was in the ready list at the call. */
void worker_run_ready(struct worker *worker);

/* worker_took and worker_gave add to client_bytes the memory that clients make a worker take, and subtract what it
   frees. */
static inline void worker_took(struct worker *worker, uint64_t bytes)
{
	atomic_store_explicit(&worker->client_bytes,
			      atomic_load_explicit(&worker->client_bytes, memory_order_relaxed) + bytes,
			      memory_order_relaxed);
}

static inline void worker_gave(struct worker *worker, uint64_t bytes)
{
	worker_took(worker, -bytes);
}

/* Returns a buffer of CONN_BUFFER_BYTES, for worker_buffer_give. NULL: memory is out. */
static inline char *worker_buffer_take(struct worker *worker)
{
	char *buffer;

	if (__builtin_expect(worker->buffer_count > 0, 1))
		return worker->buffers[--worker->buffer_count];
	buffer = mem_alloc(CONN_BUFFER_BYTES);
	if (buffer)
		worker_took(worker, CONN_BUFFER_BYTES);
	return buffer;
}

/* Keeps a buffer for the next worker_buffer_take, or frees it when SPARE_BUFFERS are kept. */
static inline void worker_buffer_give(struct worker *worker, char *buffer)
{
	if (__builtin_expect(worker->buffer_count < SPARE_BUFFERS, 1)) {
		worker->buffers[worker->buffer_count++] = buffer;
		return;
	}
	worker_gave(worker, CONN_BUFFER_BYTES);
	mem_free(buffer);
}

/* ---- listeners (bind.c, inherited.c, listen.c) ----------------------------------------------- */

/* Binds all sockets that the options name. FS_OK, or FS_ESYS or FS_EINVAL with the reason. */
FS_MUST_CHECK int bind_all(struct net *net, char reason[256]);
/* Looks at the addresses of the options and resolves their names, as bind_all would, but makes no socket. FS_OK, or
   FS_ESYS or FS_EINVAL with the reason. conf->listen is that of net->server. */
FS_MUST_CHECK int bind_check(struct net *net, char reason[256]);
/* Returns how connections are received at a listener with these words: enum conf_listen_tls, and enum conf_protocol. */
struct reception reception_of(const struct net *net, int tls, int protocol);
/* Adds a bound socket to net's listeners, which own the descriptor from here on. local: a UNIX socket. Returns false,
   and has closed the descriptor, if memory is out. */
FS_MUST_CHECK bool bind_add_listener(struct net *net, int fd, const struct reception *reception, bool local);
/* Returns true if a service manager has handed sockets over: these are served, and none of the options'. */
bool inherited_any(const struct net *net);
/* Makes listeners of the sockets that a service manager has handed over. FS_OK; FS_EINVAL with the reason: one of them
   can't be served. */
FS_MUST_CHECK int inherited_open(struct net *net, char reason[256]);
/*
 * Finds the process that has a socket on this address, or on one that collides with it: "process 4711 (memcached), user
 * memcache, memcached.service"; without the right to see that, "memcached 1.6.18 (user memcache)" if the port answers
 * "version" within half a second, or "a process of user memcache". Returns false, with out unchanged, if nobody is
 * found. Main thread, at the start: reads much of /proc, and talks to the port.
 */
#define HOLDER_BYTES NET_HOLDER_BYTES
FS_MUST_CHECK bool holder_find(int type, const struct sockaddr *address, char *out, size_t size);

struct sockaddr_un;
/* Does a process hold this UNIX socket, whether it listens yet or not? Then out has the process, as above; it is
   "another process" if that can't be seen. Main thread, at the start; connects, and closes at once. */
FS_MUST_CHECK bool holder_of_unix(const struct sockaddr_un *address, char *out, size_t size);

/* Binds the sockets; nothing is accepted yet. FS_OK, or bind_all's codes with the reason. */
FS_MUST_CHECK int listen_open(struct net *net, char reason[256]);
/* Closes the listening sockets and removes the UNIX socket's file. */
void listen_close(struct net *net);
/* Listens and accepts, and writes the port file (MEMCACHED_PORT_FILENAME). FS_OK, FS_ENOMEM, or FS_ESYS with errno. */
FS_MUST_CHECK int listen_start(struct net *net);
/* Accepts no more. */
void listen_stop(struct net *net);
/* Accepts no more, and refuses those who connect, unless the sockets are a service manager's: then they wait for the next
   start. */
void listen_shut(struct net *net);
/* Goes on accepting if there is room. */
void listen_resume(struct net *net);
/* Raises RLIMIT_NOFILE for the connection limit. */
void listen_raise_limit(const struct net *net);

/* Notes that one accepted connection fewer is open. Wakes the main thread if it waits for that. Any thread. */
void net_connection_closed(struct net *net);
/* Wakes the main thread, which looks whether it may accept again or must stop. Any thread. */
void net_wake(struct net *net);

/* ---- UDP (udp.c: datagrams; udp_listen.c: sockets) ------------------------------------------- */

struct addrinfo;

struct udp_socket {
	struct udp_socket *next;
	struct net *net;
	struct worker *worker;
	struct event readable, writable;
	TAILQ_HEAD(, datagram) waiting; /* answers that the socket has no room for */
	int fd, family;
	uint16_t port;
	bool leads; /* the first of its address */
	_Atomic uint32_t active_seconds; /* net's coarse clock when something last came */
	char address[NET_ADDRESS_BYTES];
};

/* Binds a socket for each worker to this address. Returns 0, or -1 with errno. Main thread, like all functions that
   follow unless they name another thread. */
FS_MUST_CHECK int udp_bind(struct net *net, const struct addrinfo *info);
/* Serves a socket that is bound already. All workers wait at this one: another user may have bound it, and then no
   second one could be bound beside it. The list owns it from here on. Returns 0, or -1 with errno. */
FS_MUST_CHECK int udp_adopt(struct net *net, int fd);
/* Returns true if there is a socket on this address, given as text. */
bool udp_have(const struct net *net, const char *address);
/* Gives each socket to its worker's loop, before the workers' threads start. FS_OK or FS_ENOMEM. */
FS_MUST_CHECK int udp_start(struct net *net);
/* Takes the sockets from the loops and drops the answers that wait, after the workers' threads have ended. */
void udp_stop(struct net *net);
/* Closes and frees the sockets. */
void udp_close_all(struct net *net);
/* libevent's callbacks, on the socket's worker: context is the struct udp_socket. */
void udp_readable(evutil_socket_t fd, short what, void *context);
void udp_writable(evutil_socket_t fd, short what, void *context);
/* Drops the answers that wait. The socket's worker, or the main thread when the workers have ended. */
void udp_forget(struct udp_socket *socket);
/* Writes the sender's address of the datagram that this connection is into out, and returns out. */
const char *udp_peer(const struct socket_conn *sock, char out[NET_ADDRESS_BYTES]);
/* Calls see() with each address family and port. */
void udp_each_address(const struct net *net, void (*see)(void *context, int family, unsigned port), void *context);
/* Calls see() for each socket, for "stats conns". Any thread. */
void udp_each(const struct net *net, uint32_t now_seconds,
	      void (*see)(void *context, const struct net_conn_status *conn), void *context);

/* ---- addresses as text (conns.c) ------------------------------------------------------------- */

/* Writes an address into out: "tcp:127.0.0.1:4711", "tcp6:[::1]:4711", "unix:/path"; with the prefix "",
   "127.0.0.1:4711". Any thread. */
void address_text(char out[NET_ADDRESS_BYTES], const char *prefix, const struct sockaddr *address, socklen_t length);
/* Returns the port, or 0 if the address has none. Any thread. */
uint16_t address_port(const struct sockaddr *address);

#endif
