/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of serving: nobody connects any more, and each connection is closed when the requests that have arrived are
 * executed and their answers sent, an idle one at once. A connection that is in the middle of a request, or doesn't take
 * its answers, has DRAIN_MS; a second signal ends that at once. Loans are not waited for: their borrowers end next.
 */
#include <poll.h>

#include "base/clock.h"
#include "server/net/net_internal.h"

#define DRAIN_MS 2000u
#define LOOK_US 5000 /* between two looks of the main thread */

/* ---- the worker ------------------------------------------------------------------------------ */

/* Has the socket bytes that were not received? Closing it would reset the connection, and cost the peer its answers. */
static bool has_arrived(const struct socket_conn *sock)
{
	struct pollfd fd = { .fd = sock->fd, .events = POLLIN };

	return sock->more || poll(&fd, 1, 0) != 0;
}

/* Is all answered that the connection has asked for? At the end of its stream the events close it. */
static bool is_done(const struct socket_conn *sock)
{
	const struct conn *conn = &sock->conn;

	return !sock->ready && conn->pending == 0 && conn_output_is_empty(conn) &&
	       conn->input.start == conn->input.end && conn->body_left == 0 && conn->session.state == SESSION_LINE &&
	       !has_arrived(sock);
}

void drain(struct worker *worker)
{
	struct socket_conn *sock, *next;
	bool left = false;

	for (sock = LIST_FIRST(&worker->conns); sock; sock = next) {
		next = LIST_NEXT(sock, link);
		if (sock->lent || sock->transport->datagram)
			continue;
		if (is_done(sock))
			conn_kill(&sock->conn);
		else
			left = true;
	}
	atomic_store(&worker->drained, !left);
}

/* ---- the main thread ------------------------------------------------------------------------- */

static bool all_drained(const struct net *net)
{
	for (unsigned i = 0; i < net->worker_count; i++)
		if (!atomic_load(&net->workers[i].drained))
			return false;
	return true;
}

void drain_all(struct net *net)
{
	const struct timeval look = { .tv_usec = LOOK_US };
	uint64_t until_us = clk_now_us(clk_boot()) + DRAIN_MS * 1000ull;

	listen_shut(net);
	net->draining = true;
	for (unsigned i = 0; i < net->worker_count; i++) {
		atomic_store(&net->workers[i].draining, true);
		worker_ring(&net->workers[i]);
	}
	while (!all_drained(net) && !net->hurried && clk_now_us(clk_boot()) < until_us) {
		event_base_loopexit(net->base, &look);
		event_base_loop(net->base, 0);
	}
}
