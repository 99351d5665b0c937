/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP: each datagram is a connection of its own, which ends when it is answered.
 *
 *   datagram |request id, sequence, total, 0|commands|      8 bytes and what TCP would carry
 *      -> conn_open -> receive(): the commands, then the end -> ... -> send() gathers -> close() frames and sends
 *
 * An answer is one message: datagrams of at most 1400 bytes, numbered from 0 to total - 1. (memcached 1.6 numbers each
 * value of a multiget as a message of its own; no client can put these together again.)
 *
 * Datagrams that don't fit into the socket's buffer wait until the socket is writable. The memory of a worker's
 * requests and gathered answers is bounded. Beyond the bound, answers and new requests are dropped and counted, as UDP
 * allows.
 *
 * Threads: all functions run on the worker that the socket belongs to.
 */
#include "server/net/net_internal.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/metrics/counters.h"

#define HEADER_BYTES 8u
#define DATAGRAM_BYTES 1400u /* of an answer, header included */
#define PAYLOAD_BYTES (DATAGRAM_BYTES - HEADER_BYTES)
#define ANSWER_MOST ((uint64_t)UINT16_MAX * PAYLOAD_BYTES) /* of an answer: more datagrams can't be numbered */
#define RECEIVES 32u /* per event */
#define SENDS 32u /* per system call */
#define LEAST_BYTES (2u << 20) /* of all answers of a worker: room for a value of the usual -I */
#define CONTROL_BYTES 64u /* which of our addresses a datagram came to */

/* A request, and its answer so far. */
struct datagram {
	struct udp_socket *socket;
	TAILQ_ENTRY(datagram) link; /* waits until the socket takes more */
	struct sockaddr_storage peer;
	socklen_t peer_length;
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES]; /* the answer leaves from the address that was asked */
	size_t control_length;
	uint16_t id;
	bool spoilt; /* an answer that is too long, or came when memory was short */
	char *answer;
	uint64_t answer_length, answer_capacity, sent;
	uint32_t request_length, taken;
	char request[];
};

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t datagram_limit(const struct worker *worker)
{
	return worker->held_limit > LEAST_BYTES ? worker->held_limit : LEAST_BYTES;
}

static uint64_t datagram_size(const struct datagram *datagram)
{
	return sizeof(struct socket_conn) + sizeof(*datagram) + datagram->request_length + datagram->answer_capacity;
}

static void datagram_free(struct datagram *datagram)
{
	must(datagram->socket->worker->datagram_bytes >= datagram_size(datagram));
	datagram->socket->worker->datagram_bytes -= datagram_size(datagram);
	worker_gave(datagram->socket->worker, datagram_size(datagram) - sizeof(struct socket_conn));
	mem_free(datagram->answer);
	mem_free(datagram);
}

/* ---- sending --------------------------------------------------------------------------------- */

struct batch {
	struct mmsghdr messages[SENDS];
	struct iovec pieces[SENDS][2];
	uint16_t headers[SENDS][HEADER_BYTES / 2];
};

/* Prepares the next datagrams of an answer, at most SENDS. Returns their number. */
static unsigned fill_batch(struct batch *batch, struct datagram *datagram)
{
	uint64_t total = (datagram->answer_length + PAYLOAD_BYTES - 1) / PAYLOAD_BYTES;
	unsigned count = 0;

	for (uint64_t at = datagram->sent; at < datagram->answer_length && count < SENDS;
	     at += PAYLOAD_BYTES, count++) {
		uint64_t left = datagram->answer_length - at;
		uint16_t *header = batch->headers[count];

		header[0] = htobe16(datagram->id);
		header[1] = htobe16((uint16_t)(at / PAYLOAD_BYTES));
		header[2] = htobe16((uint16_t)total);
		header[3] = 0;
		batch->pieces[count][0] = (struct iovec){ header, HEADER_BYTES };
		batch->pieces[count][1] =
			(struct iovec){ datagram->answer + at, left < PAYLOAD_BYTES ? left : PAYLOAD_BYTES };
		batch->messages[count].msg_hdr = (struct msghdr){
			.msg_name = &datagram->peer,
			.msg_namelen = datagram->peer_length,
			.msg_iov = batch->pieces[count],
			.msg_iovlen = 2,
			.msg_control = datagram->control_length ? datagram->control : NULL,
			.msg_controllen = datagram->control_length,
		};
	}
	return count;
}

/* False: the socket takes no more for now. True: all is sent, or the rest can't be sent and is dropped. */
static bool send_answer(struct datagram *datagram)
{
	struct batch batch;

	while (datagram->sent < datagram->answer_length) {
		unsigned count = fill_batch(&batch, datagram);
		int sent = sendmmsg(datagram->socket->fd, batch.messages, count, MSG_DONTWAIT);

		if (sent > 0) {
			datagram->sent += (uint64_t)sent * PAYLOAD_BYTES;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return false;
		} else if (errno != EINTR) {
			ctr_add(CTR_udp_answers_dropped, 1);
			log_debug("<%d an answer can't be sent: %m", datagram->socket->fd);
			return true;
		}
	}
	return true;
}

void udp_writable(evutil_socket_t fd, short what, void *context)
{
	struct udp_socket *socket = context;
	struct datagram *datagram;

	(void)fd;
	(void)what;
	must(socket->worker);
	worker_wake(socket->worker);
	while ((datagram = TAILQ_FIRST(&socket->waiting)) && send_answer(datagram)) {
		TAILQ_REMOVE(&socket->waiting, datagram, link);
		datagram_free(datagram);
	}
	if (datagram)
		event_add(&socket->writable, NULL);
}

void udp_forget(struct udp_socket *socket)
{
	struct datagram *datagram;

	while ((datagram = TAILQ_FIRST(&socket->waiting))) {
		TAILQ_REMOVE(&socket->waiting, datagram, link);
		datagram_free(datagram);
	}
}

/* ---- the transport --------------------------------------------------------------------------- */

static ssize_t udp_receive(struct socket_conn *sock, const struct iovec *pieces, unsigned count, bool *more)
{
	struct datagram *datagram = sock->transport_data;
	ssize_t got = 0;

	for (unsigned i = 0; i < count; i++) {
		uint32_t left = datagram->request_length - datagram->taken;
		uint32_t part = left < pieces[i].iov_len ? left : (uint32_t)pieces[i].iov_len;

		memcpy(pieces[i].iov_base, datagram->request + datagram->taken, part);
		datagram->taken += part;
		got += part;
	}
	*more = got > 0; /* the next call returns the end, 0 */
	return got;
}

static bool make_answer_room(struct datagram *datagram, size_t bytes)
{
	struct worker *worker = datagram->socket->worker;
	uint64_t needed = datagram->answer_length + bytes, capacity = datagram->answer_capacity;
	char *answer;

	must(datagram->answer_length <= capacity);

	if (needed <= capacity)
		return true;
	capacity = capacity * 2 > needed ? capacity * 2 : needed;
	if (needed > ANSWER_MOST ||
	    worker->datagram_bytes + capacity - datagram->answer_capacity > datagram_limit(worker))
		return false;
	answer = mem_realloc(datagram->answer, capacity);
	if (!answer)
		return false;
	worker->datagram_bytes += capacity - datagram->answer_capacity;
	worker_took(worker, capacity - datagram->answer_capacity);
	datagram->answer = answer;
	datagram->answer_capacity = capacity;
	return true;
}

/* Takes everything. Bytes that there is no room for spoil the answer; the rest of it is thrown away. */
static ssize_t udp_send(struct socket_conn *sock, const struct iovec *pieces, unsigned count)
{
	struct datagram *datagram = sock->transport_data;
	size_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += pieces[i].iov_len;
	datagram->spoilt = datagram->spoilt || !make_answer_room(datagram, bytes);
	for (unsigned i = 0; i < count && !datagram->spoilt; i++) {
		memcpy(datagram->answer + datagram->answer_length, pieces[i].iov_base, pieces[i].iov_len);
		datagram->answer_length += pieces[i].iov_len;
	}
	return (ssize_t)bytes;
}

/* Sends the answer. An incomplete one, as of a worker that stops, is dropped: the client would take it for a complete
   one. */
static void udp_close(struct socket_conn *sock)
{
	struct datagram *datagram = sock->transport_data;
	struct udp_socket *socket = datagram->socket;

	sock->transport_data = NULL;
	if (datagram->spoilt || sock->conn.failed || !conn_output_is_empty(&sock->conn)) {
		ctr_add(CTR_udp_answers_dropped, 1);
		datagram_free(datagram);
	} else if (TAILQ_EMPTY(&socket->waiting) && send_answer(datagram)) {
		datagram_free(datagram);
	} else {
		TAILQ_INSERT_TAIL(&socket->waiting, datagram, link);
		event_add(&socket->writable, NULL);
	}
}

const struct transport transport_udp = {
	.receive = udp_receive,
	.send = udp_send,
	.close = udp_close,
	.datagram = true,
};

const char *udp_peer(const struct socket_conn *sock, char out[NET_ADDRESS_BYTES])
{
	const struct datagram *datagram = sock->transport_data;

	address_text(out, "", (const struct sockaddr *)&datagram->peer, datagram->peer_length);
	return out;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void drop_datagram(struct udp_socket *socket, const char *why)
{
	ctr_add(CTR_udp_requests_dropped, 1);
	log_debug("<%d a datagram was dropped: %s", socket->fd, why);
}

/* Keeps our address that the datagram came to, in the form that sendmsg takes. The interface is left to the routing,
   except for link-local addresses, which need one. */
static void keep_local(struct datagram *datagram, struct msghdr *message)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);

	if (!control || (message->msg_flags & MSG_CTRUNC) || message->msg_controllen > CONTROL_BYTES)
		return;
	if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
		((struct in_pktinfo *)(void *)CMSG_DATA(control))->ipi_ifindex = 0;
	} else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
		struct in6_pktinfo *info = (void *)CMSG_DATA(control);

		if (IN6_IS_ADDR_MULTICAST(&info->ipi6_addr))
			return;
		if (!IN6_IS_ADDR_LINKLOCAL(&info->ipi6_addr))
			info->ipi6_ifindex = 0;
	} else {
		return;
	}
	datagram->control_length = message->msg_controllen;
	memcpy(datagram->control, message->msg_control, message->msg_controllen);
}

/* Makes a datagram with a copy of the request. NULL: memory is out. */
static struct datagram *datagram_make(struct udp_socket *socket, struct msghdr *message, uint16_t id, const char *bytes,
				      uint32_t length)
{
	struct datagram *datagram = mem_alloc(sizeof(*datagram) + length);

	if (!datagram)
		return NULL;
	*datagram = (struct datagram){ .socket = socket, .id = id, .request_length = length };
	memcpy(&datagram->peer, message->msg_name, message->msg_namelen);
	datagram->peer_length = message->msg_namelen;
	keep_local(datagram, message);
	memcpy(datagram->request, bytes, length);
	socket->worker->datagram_bytes += datagram_size(datagram);
	worker_took(socket->worker,
		    datagram_size(datagram) - sizeof(struct socket_conn)); /* conn_open accounts for the connection */
	return datagram;
}

/* Answers the first datagram of a request in several. The others are dropped without an answer. */
static void refuse_parts(struct udp_socket *socket, struct msghdr *message, uint16_t id)
{
	static const char text[] = "SERVER_ERROR multi-packet request not supported\r\n";
	struct datagram *datagram = datagram_make(socket, message, id, "", 0);
	struct iovec piece = { (void *)(uintptr_t)text, sizeof(text) - 1 };
	struct socket_conn none = { .transport = &transport_udp, .transport_data = datagram };

	if (!datagram)
		return;
	udp_send(&none, &piece, 1);
	udp_close(&none);
}

static void take_datagram(struct udp_socket *socket, struct msghdr *message, const char *bytes, size_t length)
{
	struct opening opening = { .fd = socket->fd, .transport = &transport_udp };
	uint16_t header[HEADER_BYTES / 2], from = address_port(message->msg_name);

	if (length <= HEADER_BYTES || (message->msg_flags & MSG_TRUNC)) {
		drop_datagram(socket, "it has no header, has no request, or is too long");
		return;
	}
	/* With a forged sender, two servers would answer each other for ever. */
	if (from == 0 || from == socket->port) {
		drop_datagram(socket, "it seems to come from a server");
		return;
	}
	if (socket->worker->datagram_bytes + length > datagram_limit(socket->worker)) {
		drop_datagram(socket, "answers hold too much memory");
		return;
	}
	memcpy(header, bytes, HEADER_BYTES);
	if (be16toh(header[2]) != 1) {
		if (be16toh(header[2]) > 1 && header[1] == 0)
			refuse_parts(socket, message, be16toh(header[0]));
		drop_datagram(socket, "its request has more than one datagram");
		return;
	}
	opening.transport_data = datagram_make(socket, message, be16toh(header[0]), bytes + HEADER_BYTES,
					       (uint32_t)(length - HEADER_BYTES));
	if (opening.transport_data)
		conn_open(socket->worker, &opening);
	else
		drop_datagram(socket, "out of memory");
}

void udp_readable(evutil_socket_t fd, short what, void *context)
{
	struct udp_socket *socket = context;
	char *bytes = socket->worker->scratch->datagram;

	(void)what;
	worker_wake(socket->worker);
	if (atomic_load(&socket->worker->stopping)) {
		event_del(&socket->readable);
		return;
	}
	atomic_store_explicit(&socket->active_seconds, socket->worker->now_seconds, memory_order_relaxed);
	for (unsigned i = 0; i < RECEIVES; i++) {
		struct sockaddr_storage peer;
		_Alignas(struct cmsghdr) char control[CONTROL_BYTES];
		struct iovec piece = { bytes, SCRATCH_DATAGRAM_BYTES };
		struct msghdr message = { .msg_name = &peer,
					  .msg_namelen = sizeof(peer),
					  .msg_iov = &piece,
					  .msg_iovlen = 1,
					  .msg_control = control,
					  .msg_controllen = sizeof(control) };
		ssize_t got = recvmsg((int)fd, &message, MSG_DONTWAIT);

		if (got < 0)
			return;
		take_datagram(socket, &message, bytes, (size_t)got);
	}
}
