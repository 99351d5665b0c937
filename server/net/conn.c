/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's life: opening, reading, its turns, closing. */
#include "server/net/net_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/events.h"
#include "base/log.h"
#include "base/metrics/counters.h"

#define ROOM_BYTES 4096u /* least room in the input before reading */
#define RECEIVES 16u /* of one connection in a turn */
#define INPUT_LEAST_BYTES (2u * CONN_INPUT_MAX_BYTES) /* one connection may always send its longest line */

int conn_number(const struct conn *conn)
{
	return ((const struct socket_conn *)conn)->fd;
}

/* ---- input buffer ---------------------------------------------------------------------------- */

/* A buffer for a line of many keys. All such buffers of a worker together may take as much memory as its answers may.
   So clients that begin long lines and don't end them take no memory beyond that. NULL: that much is taken. */
static char *__attribute__((cold)) take_long_input(struct worker *worker, uint32_t capacity)
{
	uint64_t most = worker->held_limit > INPUT_LEAST_BYTES ? worker->held_limit : INPUT_LEAST_BYTES;
	char *bytes = worker->input_bytes + capacity <= most ? mem_alloc(capacity) : NULL;

	if (bytes) {
		worker->input_bytes += capacity;
		worker_took(worker, capacity);
	} else {
		log_limited(LOG_LEVEL_INFO, "a connection was closed: there is no memory for its long line");
	}
	return bytes;
}

static void __attribute__((cold)) free_long_input(struct conn *conn)
{
	must(conn->worker->input_bytes >= conn->input.capacity);
	conn->worker->input_bytes -= conn->input.capacity;
	worker_gave(conn->worker, conn->input.capacity);
	mem_free(conn->input.bytes);
}

static void free_input(struct conn *conn)
{
	struct input *input = &conn->input;

	if (input->capacity == CONN_BUFFER_BYTES)
		worker_buffer_give(conn->worker, input->bytes);
	else
		free_long_input(conn);
	*input = (struct input){ 0 };
}

/* Moves the input's bytes into a buffer of another capacity, which has room for them. False: memory is out. */
static bool change_input_buffer(struct conn *conn, uint32_t capacity)
{
	struct input *input = &conn->input;
	uint32_t length = input->end - input->start;
	char *bytes = capacity == CONN_BUFFER_BYTES ? worker_buffer_take(conn->worker)
						    : take_long_input(conn->worker, capacity);

	if (!bytes)
		return false;
	must(length <= capacity);
	memcpy(bytes, input->bytes + input->start, length);
	free_input(conn);
	*input = (struct input){ .bytes = bytes, .end = length, .capacity = capacity };
	return true;
}

/* Takes the first buffer. */
static inline bool borrow_buffer(struct conn *conn)
{
	char *bytes = worker_buffer_take(conn->worker);

	if (bytes)
		conn->input = (struct input){ .bytes = bytes, .capacity = CONN_BUFFER_BYTES };
	return bytes != NULL;
}

static bool make_input_room(struct conn *conn)
{
	struct input *input = &conn->input;
	uint32_t length = input->end - input->start;

	if (!input->bytes)
		return borrow_buffer(conn);
	if (input->capacity - input->end >= ROOM_BYTES)
		return true;
	if (input->capacity - length >= input->capacity / 2) {
		memmove(input->bytes, input->bytes + input->start, length);
		input->start = 0;
		input->end = length;
		return true;
	}
	return change_input_buffer(conn, input->capacity * 2);
}

/* A buffer is borrowed only as long as there are bytes in it. */
static void shrink_input(struct conn *conn)
{
	struct input *input = &conn->input;

	if (!input->bytes)
		return;
	if (input->start == input->end)
		free_input(conn);
	else if (input->capacity > CONN_BUFFER_BYTES && input->end - input->start < CONN_BUFFER_BYTES / 2 &&
		 conn->session.state == SESSION_LINE)
		change_input_buffer(conn, CONN_BUFFER_BYTES);
}

/* ---- reading --------------------------------------------------------------------------------- */

static ssize_t __attribute__((noinline)) receive_otherwise(struct socket_conn *sock, char *bytes, size_t room)
{
	const struct iovec piece = { bytes, room };

	return sock->transport->receive(sock, &piece, 1, &sock->more);
}

/* Receives into the buffer. Sets sock->more, as receive_body does. */
static ssize_t receive_input(struct conn *conn)
{
	struct socket_conn *sock = sock_of(conn);
	struct input *input = &conn->input;
	char *bytes = input->bytes + input->end;
	size_t room = input->capacity - input->end;
	ssize_t got;

	if (sock_is_plain(sock)) {
		got = recv(sock->fd, bytes, room, 0);
		sock->more = got == (ssize_t)room;
	} else {
		got = receive_otherwise(sock, bytes, room);
	}
	if (got > 0)
		input->end += (uint32_t)got;
	return got;
}

/* Receives a value straight into its item, and the bytes behind it into the buffer. */
static ssize_t __attribute__((noinline)) receive_body(struct conn *conn)
{
	struct socket_conn *sock = sock_of(conn);
	struct input *input = &conn->input;
	const struct iovec pieces[2] = { { conn->body, conn->body_left },
					 { input->bytes + input->end, input->capacity - input->end } };
	uint32_t body;
	ssize_t got;

	if (sock_is_plain(sock)) {
		got = readv(sock->fd, pieces, 2);
		sock->more = got == (ssize_t)(pieces[0].iov_len + pieces[1].iov_len);
	} else {
		got = sock->transport->receive(sock, pieces, 2, &sock->more);
	}
	if (got <= 0)
		return got;
	body = (size_t)got < conn->body_left ? (uint32_t)got : conn->body_left;
	conn->body += body;
	conn->body_left -= body;
	input->end += (uint32_t)got - body;
	return got;
}

/* Returns the number of bytes read, 0 at the end of the stream, or -1 with errno. */
static ssize_t receive_bytes(struct conn *conn)
{
	struct input *input = &conn->input;
	ssize_t got;

	if (!make_input_room(conn)) {
		errno = ENOMEM;
		return -1;
	}
	got = conn->body_left > 0 && input->start == input->end ? receive_body(conn) : receive_input(conn);
	if (got > 0)
		ctr_add(CTR_bytes_read, (uint64_t)got);
	return got;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* All connections' answers together take too much memory. It comes back as they are sent, or as a sweep closes
   connections. Meanwhile only connections go on that are in the middle of a value, which is received or thrown away, or
   have answers of their own to wait for. */
static bool __attribute__((cold, noinline)) must_starve(struct conn *conn)
{
	if (conn->body_left > 0 || conn->session.state == SESSION_SWALLOW || !conn_output_is_empty(conn))
		return false;
	atomic_store_explicit(&conn->worker->starving, true, memory_order_relaxed);
	conn->wait = CONN_WAIT_MEMORY;
	return true;
}

static enum conn_verdict run_input(struct conn *conn)
{
	struct input *input = &conn->input;

	conn->wait = CONN_WAIT_NONE;
	if (conn->finishing)
		return CONN_MORE;
	if (!conn->protocol) {
		if (input->start == input->end)
			return CONN_MORE;
		conn->protocol = conn->worker->net->choose_protocol(
			conn->server->conf,
			conn->listener ? conn->listener->reception.protocol : conn->worker->net->datagram_protocol,
			(unsigned char)input->bytes[input->start]);
		if (!conn->protocol)
			return CONN_CLOSE;
	}
	if (__builtin_expect(conn->worker->held > conn->worker->held_most, 0) && must_starve(conn))
		return CONN_WAIT;
	return conn->protocol->input(conn);
}

/* Sets the state that "stats conns" shows. It seldom changes. */
static void show_state(struct socket_conn *sock, enum conn_verdict verdict)
{
	const struct conn *conn = &sock->conn;
	uint8_t state = conn->blocked                            ? CONN_STATE_WRITE
			: conn->body_left > 0                    ? CONN_STATE_BODY
			: conn->session.state == SESSION_SWALLOW ? CONN_STATE_SWALLOW
			: verdict == CONN_YIELD                  ? CONN_STATE_NEW_COMMAND
								 : CONN_STATE_READ;

	if (__builtin_expect(state != atomic_load_explicit(&sock->state, memory_order_relaxed), 0))
		atomic_store_explicit(&sock->state, state, memory_order_relaxed);
}

/* Has the loop watch for the events that the connection waits for from here on. */
static void settle_conn(struct conn *conn, enum conn_verdict verdict)
{
	struct socket_conn *sock = sock_of(conn);

	if (conn->blocked) {
		event_add(&sock->writable, NULL);
		if (sock->blocked_seconds == 0)
			sock->blocked_seconds = conn->worker->now_seconds;
	} else if (__builtin_expect(sock->blocked_seconds != 0, 0) && conn_output_is_empty(conn)) {
		sock->blocked_seconds = 0;
	}
	if (verdict == CONN_YIELD) {
		ctr_add(CTR_conn_yields, 1);
		worker_make_ready(sock);
	}
	if (!sock->reading && !conn->finishing && conn->wait == CONN_WAIT_NONE) {
		event_add(&sock->readable, NULL);
		sock->reading = true;
	}
	show_state(sock, verdict);
	shrink_input(conn);
	conn_shrink_output(conn);
}

/* A connection that receives no more has sent all: it is closed, or lent. */
static bool __attribute__((cold)) end_conn_step(struct socket_conn *sock)
{
	if (sock->loan && !sock->conn.failed) {
		shrink_input(&sock->conn);
		conn_shrink_output(&sock->conn);
		loan_take(sock);
	} else {
		conn_kill(&sock->conn);
	}
	return false;
}

/* Sends the answers, goes on with commands that waited for nothing else, and settles. False: the connection is closed
   or lent. */
static bool finish_conn_step(struct conn *conn, enum conn_verdict verdict)
{
	for (;;) {
		if (verdict == CONN_CLOSE) {
			conn->finishing = true;
			conn->input.start = conn->input.end;
		}
		if (verdict != CONN_YIELD || conn_output_bytes(conn) >= CONN_FLUSH_BYTES)
			conn_flush(conn);
		if (conn->wait != CONN_WAIT_OUTPUT || conn->failed || !conn_may_go(conn))
			break;
		verdict = run_input(conn);
	}
	if (__builtin_expect(conn->failed || (conn->finishing && conn_output_is_empty(conn)), 0))
		return end_conn_step(sock_of(conn));
	settle_conn(conn, verdict);
	return true;
}

static bool may_receive(const struct socket_conn *sock)
{
	return sock->conn.wait == CONN_WAIT_NONE && !sock->ready && !sock->conn.finishing;
}

/* Stops watching for input that would not be received now: the loop would spin. */
static void stop_reading(struct socket_conn *sock)
{
	if (sock->reading && (sock->conn.wait != CONN_WAIT_NONE || sock->conn.finishing)) {
		event_del(&sock->readable);
		sock->reading = false;
	}
}

/* TLS can't receive before it has sent. on_writable will make the connection ready, and settle_conn will watch for
   input again. */
static void __attribute__((cold)) wait_until_writable(struct socket_conn *sock)
{
	event_add(&sock->writable, NULL);
	event_del(&sock->readable);
	sock->reading = false;
}

/* Reads once. False: there was nothing. */
static bool receive_some(struct socket_conn *sock)
{
	struct conn *conn = &sock->conn;
	ssize_t got;

	debug_must(!sock->lent);
	got = receive_bytes(conn);

	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
		shrink_input(conn);
		if (sock->more)
			wait_until_writable(sock);
		return false;
	}
	atomic_store_explicit(&sock->active_seconds, conn->worker->now_seconds, memory_order_relaxed);
	conn->failed = conn->failed || got < 0;
	if (got == 0 && !conn->finishing)
		conn->reason = CONN_REASON_NORMAL;
	conn->finishing = conn->finishing || got == 0; /* answers what it has asked for so far */
	return true;
}

static inline bool has_rest(const struct socket_conn *sock)
{
	return __builtin_expect(sock->more || sock->conn.wait != CONN_WAIT_NONE || sock->conn.finishing, 0);
}

/* A socket that filled all the room may have more: a large value, or a long pipeline. After RECEIVES of them other
   connections get their turn. */
static void __attribute__((noinline)) receive_rest(struct socket_conn *sock)
{
	struct worker *worker = sock->conn.worker;

	for (unsigned receives = 0; sock->more && may_receive(sock); receives++) {
		bool stays;

		if (receives == RECEIVES) {
			worker_make_ready(sock);
			return;
		}
		if (!receive_some(sock))
			return;
		stays = finish_conn_step(&sock->conn, run_input(&sock->conn));
		/* The answer to a datagram is sent when the end of the datagram is received. */
		if (!stays || !sock->transport->datagram)
			durations_sent(&worker->durations, worker->store);
		if (!stays)
			return;
	}
	stop_reading(sock);
}

/* Looks ahead at the keys of all these connections. A single connection whose input has no room for two keys is not
   worth the look. */
static void foresee_keys(struct worker *worker, struct socket_conn *const *socks, unsigned count)
{
	uint64_t hashes[CONN_FORESEEN];
	unsigned foreseen = 0;

	worker->foreseen_count = worker->foreseen_next = 0;
	if (count == 1 && socks[0]->conn.input.end - socks[0]->conn.input.start < CONN_FORESEE_BYTES)
		return;
	for (unsigned i = 0; i < count; i++) {
		const struct conn *conn = &socks[i]->conn;

		if (conn->protocol && conn->input.start < conn->input.end)
			foreseen +=
				conn->protocol->foresee(conn, worker->foreseen + foreseen, CONN_FORESEEN - foreseen);
	}
	for (unsigned i = 0; i < foreseen; i++)
		hashes[i] = worker->foreseen[i].hash;
	if (foreseen > 1)
		store_foresee(worker->store, hashes, foreseen);
	worker->foreseen_count = foreseen;
}

uint64_t conn_hash(struct conn *conn, const char *key, size_t length)
{
	struct worker *worker = conn->worker;
	const struct foreseen *next = &worker->foreseen[worker->foreseen_next];

	if (worker->foreseen_next < worker->foreseen_count && next->key == key && next->length == length) {
		worker->foreseen_next++;
		debug_must(next->hash == store_hash(conn->server->store, key, length));
		return next->hash;
	}
	return store_hash(conn->server->store, key, length);
}

_Static_assert(CONN_STEPS <= 32, "a bit for each");

void conn_step_all(struct worker *worker, struct socket_conn *const *socks, unsigned count)
{
	enum conn_verdict verdicts[CONN_STEPS];
	uint32_t rest = 0; /* a bit for each connection that has more, or stops reading */

	must(count <= CONN_STEPS);
	foresee_keys(worker, socks, count);
	for (unsigned i = 0; i < count; i++)
		verdicts[i] = run_input(&socks[i]->conn);
	worker->foreseen_count = 0; /* buffers move from here on */
	for (unsigned i = 0; i < count; i++)
		if (finish_conn_step(&socks[i]->conn, verdicts[i]) && has_rest(socks[i]))
			rest |= 1u << i;
	durations_sent(&worker->durations, worker->store);
	for (; rest; rest &= rest - 1)
		receive_rest(socks[__builtin_ctz(rest)]);
}

/* Receives. The commands are executed together with those of the other connections that are readable now
   (conn_step_all). */
static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct socket_conn *sock = context;

	(void)fd;
	(void)what;
	must(sock->magic == SOCKET_CONN_MAGIC);
	worker_wake(sock->conn.worker);
	if (!may_receive(sock))
		stop_reading(sock);
	else if (receive_some(sock))
		worker_make_fresh(sock);
	if (sock->conn.worker->fresh_count >= CONN_STEPS)
		worker_run_fresh(sock->conn.worker);
}

static void on_writable(evutil_socket_t fd, short what, void *context)
{
	struct socket_conn *sock = context;

	(void)fd;
	(void)what;
	must(sock->magic == SOCKET_CONN_MAGIC && !sock->lent);
	sock->conn.blocked = false;
	worker_wake(sock->conn.worker);
	worker_make_ready(sock);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void __attribute__((cold)) refuse_opening(struct worker *worker, const struct opening *opening)
{
	struct socket_conn none = { .fd = opening->fd,
				    .transport = opening->transport,
				    .transport_data = opening->transport_data };

	log_limited(LOG_LEVEL_WARN, "a connection was refused: there is no memory for it");
	none.transport->close(&none);
	if (opening->listener)
		net_connection_closed(worker->net);
}

/* A datagram's events have no descriptor, so that libevent never watches for them. */
static bool watch_socket(struct socket_conn *sock, struct event_base *base)
{
	int fd = sock->transport->datagram ? -1 : sock->fd;

	return event_assign(&sock->readable, base, fd, EV_READ | EV_PERSIST, on_readable, sock) == 0 &&
	       event_assign(&sock->writable, base, fd, EV_WRITE, on_writable, sock) == 0 &&
	       event_add(&sock->readable, NULL) == 0;
}

void conn_open(struct worker *worker, const struct opening *opening)
{
	struct socket_conn *sock = mem_zalloc(sizeof(*sock));

	if (sock) {
		sock->magic = SOCKET_CONN_MAGIC;
		sock->fd = opening->fd;
		sock->transport = opening->transport;
		sock->transport_data = opening->transport_data;
		sock->conn.worker = worker;
		sock->conn.listener = opening->listener;
	}
	if (!sock || (sock->transport->open && !sock->transport->open(sock))) {
		refuse_opening(worker, opening);
		mem_free(sock);
		return;
	}
	if (!watch_socket(sock, worker->base)) {
		event_del(&sock->readable);
		refuse_opening(worker,
			       &(struct opening){ sock->fd, opening->listener, sock->transport, sock->transport_data });
		mem_free(sock);
		return;
	}
	worker_took(worker, sizeof(*sock));
	sock->reading = true;
	sock->active_seconds = worker->now_seconds;
	sock->conn.store = worker->store;
	sock->conn.server = worker->net->server;
	sock->conn.authenticated = !worker->net->server->auth;
	lock_acquire(&worker->list_lock);
	LIST_INSERT_HEAD(&worker->conns, sock, link);
	worker->held_most += CONN_SHARE_BYTES;
	lock_release(&worker->list_lock);
	if (sock->transport->datagram) { /* no event will tell of it */
		sock->more = true;
		worker_make_ready(sock);
	}
	if (events_on(EVENT_CONNEVENTS))
		conn_tell(&sock->conn, true);
}

void conn_free(struct conn *conn)
{
	struct socket_conn *sock = sock_of(conn);

	must(sock->magic == SOCKET_CONN_MAGIC && conn->dead && conn->pending == 0);
	worker_gave(conn->worker, sizeof(*sock));
	sock->magic = SOCKET_CONN_FREED;
	mem_free(sock);
}

void conn_kill(struct conn *conn)
{
	struct socket_conn *sock = sock_of(conn);
	struct worker *worker = conn->worker;

	must(sock->magic == SOCKET_CONN_MAGIC && !conn->dead && !sock->lent);
	if (events_on(EVENT_CONNEVENTS))
		conn_tell(conn, false);
	event_del(&sock->readable);
	event_del(&sock->writable);
	if (sock->loan)
		loan_forget(sock);
	lock_acquire(&worker->list_lock);
	LIST_REMOVE(sock, link);
	must(worker->held_most >= CONN_SHARE_BYTES);
	worker->held_most -= CONN_SHARE_BYTES;
	lock_release(&worker->list_lock);
	sock->transport->close(sock);
	worker_unmake_ready(sock);
	if (conn->protocol)
		conn->protocol->abandon(conn);
	conn_drop_output(conn);
	if (conn->input.bytes)
		free_input(conn);
	mem_free(conn->user);
	conn->user = NULL;
	conn->dead = true;
	if (conn->listener)
		net_connection_closed(worker->net);
	if (conn->pending == 0)
		conn_free(conn);
}
