/* SPDX-License-Identifier: BSD-3-Clause */
/* A client as the transport of its connection. */
#include "tests/fuzz/service.h"

#include <errno.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/innocent.h"

#define TURNS_MOST 1000000u /* of a worker, for one client's bytes: it doesn't hang */

/* ---- the transport --------------------------------------------------------------------------- */

/* Of so many bytes that could move: few, often, or all. */
static size_t cut(struct client *client, size_t most)
{
	struct rng *cuts = client->cuts;

	if (!cuts || most <= 1 || rng_below(cuts, 4) == 0)
		return most;
	return 1 + rng_below(cuts, rng_below(cuts, 2) ? most : most < 8 ? most : 8);
}

static size_t left(const struct client *client)
{
	return client->length - client->at;
}

static ssize_t client_receive(struct socket_conn *sock, const struct iovec *pieces, unsigned count, bool *more)
{
	struct client *client = sock->transport_data;
	size_t room = 0, take, done = 0;

	for (unsigned i = 0; i < count; i++)
		room += pieces[i].iov_len;
	require(room > 0);
	*more = false;
	if (left(client) == 0) {
		errno = EAGAIN;
		return client->ended ? 0 : -1;
	}
	take = cut(client, left(client) < room ? left(client) : room);
	for (unsigned i = 0; i < count && done < take; i++) {
		size_t part = take - done < pieces[i].iov_len ? take - done : pieces[i].iov_len;

		memcpy(pieces[i].iov_base, client->bytes + client->at, part);
		client->at += part;
		done += part;
	}
	*more = done == room;
	return (ssize_t)done;
}

static void keep(struct client *client, const char *bytes, size_t length)
{
	if (client->answer_capacity - client->answer_length < length) {
		client->answer_capacity = 2 * (client->answer_length + length);
		client->answer = realloc(client->answer, client->answer_capacity);
		if (!client->answer)
			abort();
	}
	memcpy(client->answer + client->answer_length, bytes, length);
	client->answer_length += length;
}

static ssize_t client_take(struct socket_conn *sock, const struct iovec *pieces, unsigned count)
{
	struct client *client = sock->transport_data;
	size_t length = 0, take, done = 0;

	for (unsigned i = 0; i < count; i++)
		length += pieces[i].iov_len;
	require(length > 0);
	if (client->cuts && rng_below(client->cuts, 8) == 0) {
		errno = EAGAIN;
		return -1;
	}
	take = cut(client, length);
	for (unsigned i = 0; i < count && done < take; i++) {
		size_t part = take - done < pieces[i].iov_len ? take - done : pieces[i].iov_len;

		keep(client, pieces[i].iov_base, part);
		done += part;
	}
	return (ssize_t)done;
}

static void client_closed(struct socket_conn *sock)
{
	struct client *client = sock->transport_data;

	client->sock = NULL;
}

static const struct transport transport_client = {
	.receive = client_receive,
	.send = client_take,
	.close = client_closed,
};

/* ---- a connection's life --------------------------------------------------------------------- */

/* The kernel's part is played with a pair of sockets that nothing is ever sent through: they are never readable and
   always writable. The daemon doesn't close them. */
static int idle_socket(void)
{
	static int pair[2] = { -1, -1 };

	if (pair[0] < 0)
		require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	return pair[0];
}

void client_open(struct client *client, struct service *service, struct rng *cuts)
{
	struct opening opening = { .fd = idle_socket(), .transport = &transport_client, .transport_data = client };

	*client = (struct client){ .service = service, .cuts = cuts, .certain = SIZE_MAX };
	conn_open(&service->worker, &opening);
	client->sock = LIST_FIRST(&service->worker.conns);
	require(client->sock && client->sock->transport_data == client);
}

static bool has_something(const struct client *client)
{
	return left(client) > 0 || client->ended;
}

/* What it waits for will never come: all that is left is the rest of a command. */
static bool is_idle(const struct client *client)
{
	const struct socket_conn *sock = client->sock;

	return !has_something(client) && sock->reading && !sock->ready && sock->conn.pending == 0 &&
	       conn_output_is_empty(&sock->conn);
}

static void innocent_lost(void *context)
{
	struct client *client = context;

	if (client->certain == SIZE_MAX)
		client->certain = client->answer_length;
}

static void run(struct client *client)
{
	struct worker *worker = &client->service->worker;

	innocent_begin(client->service, innocent_lost, client);
	for (unsigned turns = 0; client->sock && !is_idle(client); turns++) {
		require(turns < TURNS_MOST);
		if (client->sock->reading && has_something(client))
			event_active(&client->sock->readable, EV_READ, 0);
		service_turn(client->service);
		if (client->sock && client->sock->conn.pending > 0 && worker->ready_count == 0 &&
		    !client->sock->reading)
			service_wait(client->service);
	}
	while (store_worker_pending(worker->store) > 0) { /* of a connection that is gone */
		service_wait(client->service);
		service_turn(client->service);
	}
	innocent_end();
}

void client_send(struct client *client, const uint8_t *bytes, size_t length)
{
	client->bytes = bytes;
	client->length = length;
	client->at = 0;
	run(client);
}

void client_end(struct client *client)
{
	client->ended = true;
	run(client);
	require(!client->sock);
}

void client_free(struct client *client)
{
	free(client->answer);
	client->answer = NULL;
}
