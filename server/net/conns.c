/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as text, the events of "watch connevents", and the list that "stats conns" shows. */
#include "server/net/net_internal.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/events.h"

/* ---- addresses ------------------------------------------------------------------------------- */

uint16_t address_port(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
	if (address->sa_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
	return 0;
}

void address_text(char out[NET_ADDRESS_BYTES], const char *prefix, const struct sockaddr *address, socklen_t length)
{
	bool six = address->sa_family == AF_INET6;
	char host[64];

	if (address->sa_family == AF_UNIX) {
		const struct sockaddr_un *local = (const void *)address;
		size_t path = length > offsetof(struct sockaddr_un, sun_path)
				      ? strnlen(local->sun_path, length - offsetof(struct sockaddr_un, sun_path))
				      : 0;

		snprintf(out, NET_ADDRESS_BYTES, "unix:%.*s", (int)path, local->sun_path);
		return;
	}
	if (getnameinfo(address, length, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
		snprintf(host, sizeof(host), "?");
	snprintf(out, NET_ADDRESS_BYTES, "%s%s%s%s%s%s:%u", prefix, *prefix && six ? "6" : "", *prefix ? ":" : "",
		 six ? "[" : "", host, six ? "]" : "", address_port(address));
}

/* A client of a UNIX socket has no address of its own: the socket's stands for it. */
static void peer_text(int fd, const struct listener *listener, const char *prefix, char out[NET_ADDRESS_BYTES])
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);

	if (listener && listener->local)
		snprintf(out, NET_ADDRESS_BYTES, "%s", listener->address);
	else if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0)
		address_text(out, prefix, (struct sockaddr *)&peer, length);
	else
		snprintf(out, NET_ADDRESS_BYTES, "%s%s?", prefix, *prefix ? ":" : ""); /* it has gone */
}

const char *conn_peer(const struct conn *conn, char out[NET_ADDRESS_BYTES])
{
	const struct socket_conn *sock = (const struct socket_conn *)conn;

	if (sock->transport->datagram)
		return udp_peer(sock, out);
	peer_text(sock->fd, conn->listener, "", out);
	return out;
}

/* ---- events ---------------------------------------------------------------------------------- */

static const char *const reason_words[] = {
	[CONN_REASON_ERROR] = "error",
	[CONN_REASON_NORMAL] = "normal",
	[CONN_REASON_IDLE] = "idle_timeout",
	[CONN_REASON_SHUTDOWN] = "shutdown",
};

void conn_tell(const struct conn *conn, bool opened)
{
	const struct socket_conn *sock = (const struct socket_conn *)conn;
	char host[64] = "?";
	const char *address = host;
	struct sockaddr_storage peer = { 0 };
	socklen_t length = sizeof(peer);
	bool local = conn->listener && conn->listener->local;

	if (sock->transport->datagram)
		return;
	if (!local && getpeername(sock->fd, (struct sockaddr *)&peer, &length) == 0 &&
	    getnameinfo((struct sockaddr *)&peer, length, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
		address = "?";
	events_emit(
		EVENT_CONNEVENTS, "type=%s rip=%s rport=%u transport=%s%s%s cfd=%d", opened ? "conn_new" : "conn_close",
		address, local ? 0u : address_port((const struct sockaddr *)&peer), local ? "local" : "tcp",
		opened ? "" : " reason=", opened ? "" : reason_words[conn->failed ? CONN_REASON_ERROR : conn->reason],
		sock->fd);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const char *const state_words[] = {
#define CONN_STATE_WORD(id, word) word,
	CONN_STATE_TABLE(CONN_STATE_WORD)
#undef CONN_STATE_WORD
};

/* The caller holds the worker's list_lock, without which the worker closes none: the descriptor is the connection's. */
static void see_conn(const struct socket_conn *sock, const struct conn *asking, uint32_t now_seconds,
		     void (*see)(void *context, const struct net_conn_status *conn), void *context)
{
	char address[NET_ADDRESS_BYTES], listen_address[NET_ADDRESS_BYTES];
	uint32_t active = atomic_load_explicit(&sock->active_seconds, memory_order_relaxed);
	uint8_t state = &sock->conn == asking ? (uint8_t)CONN_STATE_PARSE
					      : atomic_load_explicit(&sock->state, memory_order_relaxed);
	struct net_conn_status status = {
		.fd = sock->fd,
		.address = address,
		.listen_address = listen_address,
		.state = state < sizeof(state_words) / sizeof(state_words[0]) ? state_words[state] : "",
		.idle_seconds = now_seconds > active ? now_seconds - active : 0,
	};
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);

	must(*status.state && sock->magic == SOCKET_CONN_MAGIC);
	peer_text(sock->fd, sock->conn.listener, "tcp", address);
	if (getsockname(sock->fd, (struct sockaddr *)&bound, &length) == 0)
		address_text(listen_address, "tcp", (struct sockaddr *)&bound, length);
	else
		snprintf(listen_address, sizeof(listen_address), "?");
	see(context, &status);
}

static void see_listeners(struct net *net, uint32_t now_seconds,
			  void (*see)(void *context, const struct net_conn_status *conn), void *context)
{
	for (const struct listener *l = net->listeners; l; l = l->next) {
		uint32_t active = atomic_load_explicit(&l->active_seconds, memory_order_relaxed);
		struct net_conn_status status = { .fd = l->fd,
						  .address = l->address,
						  .state = state_words[CONN_STATE_LISTENING],
						  .idle_seconds = now_seconds > active ? now_seconds - active : 0 };

		see(context, &status);
	}
}

void net_each_connection(struct net *net, const struct conn *asking,
			 void (*see)(void *context, const struct net_conn_status *conn), void *context)
{
	uint32_t now_seconds = atomic_load_explicit(&net->now_seconds, memory_order_relaxed);

	see_listeners(net, now_seconds, see, context);
	udp_each(net, now_seconds, see, context);
	for (unsigned i = 0; i < net->worker_count; i++) {
		struct worker *worker = &net->workers[i];
		const struct socket_conn *sock;

		lock_acquire(&worker->list_lock);
		LIST_FOREACH(sock, &worker->conns, link)
		if (!sock->transport->datagram)
			see_conn(sock, asking, now_seconds, see, context);
		lock_release(&worker->list_lock);
	}
}
