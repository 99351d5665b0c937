/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's answers: output bytes, the queue of replies, and how both are sent in order. */
#include "server/net/net_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/metrics/counters.h"
#include "server/count/observe.h"

#define PIECES 96 /* of one sendmsg; a reply has up to three, beside the bytes before it */

#define READ_BYTES 4096u /* by which a flash read's buffer is longer than the value */

static void hold_memory(struct conn *conn, uint64_t bytes)
{
	conn->output.held += bytes;
	conn->worker->held += bytes;
}

static void let_memory_go(struct conn *conn, uint64_t bytes)
{
	debug_must(conn->output.held >= bytes);
	debug_must(conn->worker->held >= bytes);
	conn->output.held -= bytes;
	conn->worker->held -= bytes;
}

/* ---- output bytes ---------------------------------------------------------------------------- */

static char *fail_output(struct conn *conn)
{
	conn->failed = true;
	return conn->worker->scratch->sink;
}

/* Moves the bytes that wait to the front of the buffer. Positions in the stream don't change. */
static void compact_output(struct output *output)
{
	must(output->head <= output->tail && output->tail <= output->capacity);
	memmove(output->bytes, output->bytes + output->head, output->tail - output->head);
	output->origin += output->head;
	output->tail -= output->head;
	output->head = 0;
}

static bool grow_output(struct conn *conn)
{
	struct output *output = &conn->output;
	uint32_t capacity = output->capacity * 2;
	char *bytes;

	if (output->capacity == CONN_BUFFER_BYTES) {
		bytes = mem_alloc(capacity);
		if (bytes) {
			memcpy(bytes, output->bytes, output->tail);
			worker_took(conn->worker, capacity);
			worker_buffer_give(conn->worker, output->bytes);
		}
	} else {
		bytes = mem_realloc(output->bytes, capacity);
		if (bytes)
			worker_took(conn->worker, capacity - output->capacity);
	}
	if (!bytes)
		return false;
	hold_memory(conn, capacity - output->capacity);
	output->bytes = bytes;
	output->capacity = capacity;
	return true;
}

char *conn_make_room(struct conn *conn, uint32_t bytes)
{
	struct output *output = &conn->output;

	must(bytes <= CONN_ROOM_BYTES);
	if (conn->failed)
		return fail_output(conn);
	if (!output->bytes) {
		output->bytes = worker_buffer_take(conn->worker);
		if (!output->bytes)
			return fail_output(conn);
		output->capacity = CONN_BUFFER_BYTES;
		hold_memory(conn, CONN_BUFFER_BYTES);
	}
	if (output->capacity - output->tail < bytes && output->head > output->capacity / 2)
		compact_output(output);
	while (output->capacity - output->tail < bytes)
		if (!grow_output(conn))
			return fail_output(conn);
	return output->bytes + output->tail;
}

static void free_output_bytes(struct conn *conn)
{
	struct output *output = &conn->output;

	if (output->capacity == CONN_BUFFER_BYTES) {
		worker_buffer_give(conn->worker, output->bytes);
	} else {
		worker_gave(conn->worker, output->capacity);
		mem_free(output->bytes);
	}
	let_memory_go(conn, output->capacity);
	output->origin += output->tail;
	output->bytes = NULL;
	output->head = output->tail = output->capacity = 0;
}

/* ---- replies --------------------------------------------------------------------------------- */

static uint32_t reply_bytes(const struct reply *reply)
{
	return reply->text_length + (reply->has_value ? reply->request.value.length + reply->tail_length : 0);
}

/* Accounts for the memory of a reply. An item's value counts too: it may be overwritten meanwhile, and then only the
   reply keeps it. */
static void hold_reply(struct conn *conn, struct reply *reply)
{
	const struct store_value *value = &reply->request.value;
	uint64_t bytes = sizeof(*reply);

	if (reply->pending)
		bytes += (uint64_t)conn->worker->flash_value_bytes + READ_BYTES;
	else if (reply->has_value)
		bytes += value->length + (value->from_flash ? READ_BYTES : 0);
	must(bytes <= UINT32_MAX);
	reply->held = (uint32_t)bytes;
	hold_memory(conn, bytes);
}

static void on_reply_done(struct store_request *request);

struct reply *conn_reply_take(struct conn *conn)
{
	struct worker *worker = conn->worker;
	struct reply *reply = worker->replies;

	if (reply) {
		debug_must(worker->reply_count > 0);
		worker->replies = reply->next;
		worker->reply_count--;
	} else {
		reply = mem_zalloc(sizeof(*reply));
		if (!reply) {
			conn->failed = true;
			return NULL;
		}
		worker_took(worker, sizeof(*reply));
		reply->request.done = on_reply_done;
		reply->request.owner = reply;
	}
	reply->conn = conn;
	reply->request.fate = NULL;
	return reply;
}

void conn_reply_give(struct conn *conn, struct reply *reply)
{
	struct worker *worker = conn->worker;

	must(!reply->pending);
	if (worker->reply_count >= SPARE_REPLIES) {
		worker_gave(worker, sizeof(*reply));
		mem_free(reply);
		return;
	}
	reply->next = worker->replies;
	worker->replies = reply;
	worker->reply_count++;
}

void reply_free_all(struct worker *worker)
{
	while (worker->replies) {
		struct reply *reply = worker->replies;

		worker->replies = reply->next;
		mem_free(reply);
	}
	worker->reply_count = 0;
}

void conn_queue(struct conn *conn, struct reply *reply)
{
	struct output *output = &conn->output;

	must(reply->conn == conn && !conn->dead);
	reply->position = output->origin + output->tail;
	reply->sent = 0;
	reply->next = NULL;
	if (output->first)
		output->last->next = reply;
	else
		output->first = reply;
	output->last = reply;
	hold_reply(conn, reply);
	if (!reply->pending) {
		output->value_bytes += reply_bytes(reply);
		return;
	}
	reply->since_ns = conn->worker->durations.since_ns;
	conn->pending++;
	if (reply->ordered) {
		conn->ordered++;
		conn->ordered_mask |= 1ull << (reply->request.hash >> 58);
	}
}

bool conn_must_wait(const struct conn *conn, uint64_t hash)
{
	if (conn->ordered == 0 || !(conn->ordered_mask >> (hash >> 58) & 1))
		return false;
	for (const struct reply *reply = conn->output.first; reply; reply = reply->next)
		if (reply->pending && reply->ordered && reply->request.hash == hash)
			return true;
	return false;
}

/* Gives back a reply, with its value, whose bytes were sent or will never be. */
static void finish_reply(struct conn *conn, struct reply *reply)
{
	let_memory_go(conn, reply->held);
	if (reply->has_value)
		store_value_release(conn->store, &reply->request.value);
	conn_reply_give(conn, reply);
}

static void on_reply_done(struct store_request *request)
{
	struct reply *reply = request->owner;
	struct conn *conn = reply->conn;

	must(reply->pending && conn->pending > 0 && (!reply->ordered || conn->ordered > 0));
	durations_done(&conn->worker->durations, conn->store, reply->since_ns);
	reply->pending = false;
	conn->pending--;
	if (reply->ordered && --conn->ordered == 0)
		conn->ordered_mask = 0;
	let_memory_go(conn, reply->held);
	/* Of a dead connection observe() could read no more than its number; a flush_all names no key. */
	if (!conn->dead && request->op != STORE_FLUSH)
		observe_waited(conn, request, reply->since_ns);
	conn->protocol->compose(reply);
	hold_reply(conn, reply);
	if (reply->has_value) /* a moving average over eight */
		conn->worker->flash_value_bytes +=
			(int64_t)(reply->request.value.length - conn->worker->flash_value_bytes) / 8;
	if (conn->dead) {
		finish_reply(conn, reply);
		if (conn->pending == 0)
			conn_free(conn);
		return;
	}
	conn->output.value_bytes += reply_bytes(reply);
	worker_make_ready((struct socket_conn *)conn);
}

void conn_drop_output(struct conn *conn)
{
	while (conn->output.first) {
		struct reply *reply = conn->output.first;

		conn->output.first = reply->next;
		if (!reply->pending)
			finish_reply(conn, reply);
	}
	conn->output.value_bytes = 0;
	if (conn->output.bytes)
		free_output_bytes(conn);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Short pieces are copied together. So a hundred values of a multiget are one piece instead of 300; the kernel saves
   more by that than the copy costs. */
struct pieces {
	struct iovec piece[PIECES];
	unsigned count;
	uint32_t copied;
	size_t bytes;
	char *copy; /* the worker's scratch, SCRATCH_COPY_BYTES */
};

static void add_reference(struct pieces *pieces, const char *bytes, size_t length)
{
	must(pieces->count < PIECES);
	pieces->piece[pieces->count++] = (struct iovec){ .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };
}

static void add_copy(struct pieces *pieces, const char *bytes, size_t length)
{
	struct iovec *last = pieces->count > 0 ? &pieces->piece[pieces->count - 1] : NULL;
	char *to = pieces->copy + pieces->copied;

	memcpy(to, bytes, length);
	pieces->copied += (uint32_t)length;
	if (last && (char *)last->iov_base + last->iov_len == to)
		last->iov_len += length;
	else
		add_reference(pieces, to, length);
}

/* Adds the bytes that were not sent before: *skip of them were, here and in the pieces that follow. Takes off *skip
   those of this piece. */
static void add_piece(struct pieces *pieces, const char *bytes, size_t length, size_t *skip)
{
	size_t cut = *skip < length ? *skip : length;

	*skip -= cut;
	if (length == cut)
		return;
	if (length - cut <= CONN_COPY_BYTES && length - cut <= SCRATCH_COPY_BYTES - pieces->copied)
		add_copy(pieces, bytes + cut, length - cut);
	else
		add_reference(pieces, bytes + cut, length - cut);
	pieces->bytes += length - cut;
}

static void add_output(struct pieces *pieces, const struct output *output, uint32_t from, uint32_t to)
{
	size_t skip = 0;

	if (from < to)
		add_piece(pieces, output->bytes + from, to - from, &skip);
}

/* Gathers the bytes that may be sent now, in order, up to the first reply that is pending. */
static void gather_pieces(const struct conn *conn, struct pieces *pieces)
{
	const struct output *output = &conn->output;
	uint32_t at = output->head;
	const struct reply *reply;

	pieces->copy = conn->worker->scratch->copy;
	pieces->count = 0;
	pieces->copied = 0;
	pieces->bytes = 0;
	for (reply = output->first; reply && pieces->count + 5 <= PIECES; reply = reply->next) {
		uint32_t position = (uint32_t)(reply->position - output->origin);
		size_t skip = reply->sent;

		add_output(pieces, output, at, position);
		at = position;
		if (reply->pending)
			return;
		add_piece(pieces, reply->text, reply->text_length, &skip);
		if (reply->has_value) {
			add_piece(pieces, reply->request.value.data, reply->request.value.length, &skip);
			add_piece(pieces, "\r\n", reply->tail_length, &skip);
		}
	}
	if (!reply)
		add_output(pieces, output, at, output->tail);
}

/* Takes bytes that have been sent off the front of the output bytes. */
static void advance_output(struct output *output, size_t bytes)
{
	must(bytes <= output->tail - output->head);
	output->head += (uint32_t)bytes;
	if (output->head == output->tail) {
		output->origin += output->tail;
		output->head = output->tail = 0;
	}
}

/* Takes bytes that have been sent off the front of output bytes and replies. Gives back replies that have none left. */
static void consume_output(struct conn *conn, size_t bytes)
{
	struct output *output = &conn->output;

	while (output->first) {
		struct reply *reply = output->first;
		uint32_t before = (uint32_t)(reply->position - output->origin) - output->head;
		uint32_t left;

		must(before <= output->tail - output->head);
		if (bytes < before || (bytes == before && reply->pending))
			break;
		output->head += before;
		bytes -= before;
		left = reply_bytes(reply) - reply->sent;
		must(reply->sent <= reply_bytes(reply) && output->value_bytes >= left);
		if (bytes < left) {
			reply->sent += (uint32_t)bytes;
			output->value_bytes -= bytes;
			return;
		}
		bytes -= left;
		output->value_bytes -= left;
		output->first = reply->next;
		finish_reply(conn, reply);
	}
	advance_output(output, bytes);
}

static bool output_is_sendable(const struct output *output)
{
	const struct reply *first = output->first;

	if (!first)
		return output->head < output->tail;
	return !first->pending || first->position > output->origin + output->head;
}

/* Notes that the socket took `sent` of the offered bytes, or that it failed with errno (-1). False: it takes no more
   for now. */
static inline bool note_sent(struct conn *conn, ssize_t sent, size_t offered)
{
	if (__builtin_expect(sent < 0, 0)) {
		if (errno == EINTR)
			return true;
		conn->blocked = errno == EAGAIN || errno == EWOULDBLOCK;
		conn->failed = !conn->blocked;
		return false;
	}
	ctr_add(CTR_bytes_written, (uint64_t)sent);
	conn->blocked = (size_t)sent < offered;
	return !conn->blocked;
}

static bool __attribute__((noinline)) flush_replies(struct conn *conn)
{
	struct socket_conn *sock = (struct socket_conn *)conn;
	struct pieces pieces;
	struct msghdr message = { .msg_iov = pieces.piece };
	ssize_t sent;
	bool more;

	debug_must(!sock->lent);
	gather_pieces(conn, &pieces);
	message.msg_iovlen = pieces.count;
	if (pieces.count == 0) /* replies without bytes, of quiet commands */
		sent = 0;
	else if (!sock_is_plain(sock))
		sent = sock->transport->send(sock, pieces.piece, pieces.count);
	else if (pieces.count == 1)
		sent = send(sock->fd, pieces.piece[0].iov_base, pieces.piece[0].iov_len, MSG_NOSIGNAL);
	else
		sent = sendmsg(sock->fd, &message, MSG_NOSIGNAL);
	more = note_sent(conn, sent, pieces.bytes);
	if (sent >= 0)
		consume_output(conn, (size_t)sent);
	return more;
}

static ssize_t __attribute__((noinline)) send_otherwise(struct socket_conn *sock, char *bytes, size_t length)
{
	const struct iovec piece = { bytes, length };

	return sock->transport->send(sock, &piece, 1);
}

/* Sends the output bytes, which are in one piece. Most answers are sent by this. */
static inline bool flush_bytes(struct conn *conn)
{
	struct socket_conn *sock = (struct socket_conn *)conn;
	struct output *output = &conn->output;
	char *bytes = output->bytes + output->head;
	size_t length = output->tail - output->head;
	ssize_t sent =
		sock_is_plain(sock) ? send(sock->fd, bytes, length, MSG_NOSIGNAL) : send_otherwise(sock, bytes, length);
	bool more = note_sent(conn, sent, length);

	if (sent >= 0)
		advance_output(output, (size_t)sent);
	return more;
}

void conn_flush(struct conn *conn)
{
	bool more = !conn->blocked && !conn->failed;

	debug_must(!sock_of(conn)->lent);
	while (more && output_is_sendable(&conn->output))
		more = __builtin_expect(conn->output.first != NULL, 0) ? flush_replies(conn) : flush_bytes(conn);
}

bool conn_may_go_slow(struct conn *conn)
{
	const struct output *output = &conn->output;
	bool stuck = conn->blocked || (output->first && output->first->pending);

	/* It holds ready answers, which are sent next, or pending ones, which will be. Either way it is asked again. */
	if (__builtin_expect(conn->worker->held > conn->worker->held_limit, 0) && output->held > CONN_LEAST_BYTES &&
	    !conn_output_is_empty(conn)) {
		conn->wait = CONN_WAIT_OUTPUT;
		return false;
	}
	if (__builtin_expect(conn_output_bytes(conn) >= (stuck ? CONN_OUTPUT_BYTES : CONN_FLUSH_BYTES), 0)) {
		conn->wait = CONN_WAIT_OUTPUT;
		return false;
	}
	if (__builtin_expect(conn->pending == 0, 1))
		return true;
	if (conn->pending >= CONN_PENDING ||
	    conn->pending * (uint64_t)conn->worker->flash_value_bytes >= CONN_PENDING_BYTES) {
		conn->wait = CONN_WAIT_REPLIES;
		return false;
	}
	return true;
}

void conn_shrink_output(struct conn *conn)
{
	if (conn->output.bytes && conn->output.head == conn->output.tail && !conn->output.first)
		free_output_bytes(conn);
}
