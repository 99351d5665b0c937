/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP sockets: every worker has one of its own on each address (SO_REUSEPORT). The kernel spreads clients over them by
 * their port, and a datagram wakes one worker. With one socket for all workers it would wake each that sleeps.
 *
 * Threads: a socket belongs to its worker while the worker's thread runs; before and after, to the main thread.
 */
#include "server/net/net_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"
#include "conf/conf.h"

#define BUFFER_BYTES (8 << 20) /* of a socket, asked of the kernel, which may allow less */

/* ---- sockets --------------------------------------------------------------------------------- */

static void set_udp_option(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)) != 0)
		log_warn("can't set the socket option %d of level %d: %m", option, level);
}

/* Among them: the kernel tells our address that a datagram came to, from which the answer must leave. */
static void set_udp_options(int fd, int family)
{
	if (family == AF_INET6)
		set_udp_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	else
		set_udp_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
	set_udp_option(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
	set_udp_option(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
}

/* Opens and binds a socket. The first one of an address, which leads, is bound without SO_REUSEPORT, so that a port in
   use is an error. It gets the option after that, and the others can be bound beside it. -1 with errno. */
static int open_socket(const struct sockaddr *address, socklen_t length, bool leads)
{
	int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -1;
	if (address->sa_family == AF_INET6)
		set_udp_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	set_udp_options(fd, address->sa_family);
	if (!leads)
		set_udp_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (bind(fd, address, length) == 0) {
		if (leads)
			set_udp_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
		return fd;
	}
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static void append_udp_socket(struct net *net, struct udp_socket *socket)
{
	struct udp_socket **end = &net->datagrams;

	while (*end)
		end = &(*end)->next;
	*end = socket;
	net->listener_count++;
}

static void init_udp_socket(struct udp_socket *socket, struct net *net, int fd, bool leads,
			    const struct sockaddr *bound, socklen_t length)
{
	socket->net = net;
	socket->fd = fd;
	socket->family = bound->sa_family;
	socket->port = address_port(bound);
	socket->leads = leads;
	address_text(socket->address, "udp", bound, length);
	TAILQ_INIT(&socket->waiting);
}

int udp_bind(struct net *net, const struct addrinfo *info)
{
	struct sockaddr_storage bound;
	socklen_t length = info->ai_addrlen;

	memcpy(&bound, info->ai_addr, length);
	for (int i = 0; i < net->server->conf->threads; i++) {
		struct udp_socket *socket = mem_zalloc(sizeof(*socket));
		int fd = socket ? open_socket((struct sockaddr *)&bound, length, i == 0) : -1;

		if (fd < 0) {
			mem_free(socket);
			return -1;
		}
		if (i == 0) { /* the others get its port, which the kernel may have chosen */
			length = sizeof(bound);
			if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
				log_warn("can't read the port of a UDP socket: %m");
		}
		init_udp_socket(socket, net, fd, i == 0, (struct sockaddr *)&bound, length);
		append_udp_socket(net, socket);
	}
	return 0;
}

int udp_adopt(struct net *net, int fd)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);

	if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
		return -1;
	set_udp_options(fd, bound.ss_family);
	for (int i = 0; i < net->server->conf->threads; i++) {
		struct udp_socket *socket = mem_zalloc(sizeof(*socket));
		int own = i == 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0);

		if (!socket || own < 0) {
			mem_free(socket);
			if (own >= 0 && i > 0)
				close(own);
			return -1;
		}
		init_udp_socket(socket, net, own, i == 0, (struct sockaddr *)&bound, length);
		append_udp_socket(net, socket);
	}
	return 0;
}

bool udp_have(const struct net *net, const char *address)
{
	for (const struct udp_socket *s = net->datagrams; s; s = s->next)
		if (strcmp(s->address, address) == 0)
			return true;
	return false;
}

int udp_start(struct net *net)
{
	unsigned i = 0;

	for (struct udp_socket *s = net->datagrams; s; s = s->next) {
		i = s->leads ? 0 : i + 1;
		must(i < net->worker_count);
		s->worker = &net->workers[i];
		atomic_store(&s->active_seconds, atomic_load(&net->now_seconds));
		if (event_assign(&s->readable, s->worker->base, s->fd, EV_READ | EV_PERSIST, udp_readable, s) != 0 ||
		    event_assign(&s->writable, s->worker->base, s->fd, EV_WRITE, udp_writable, s) != 0 ||
		    event_add(&s->readable, NULL) != 0)
			return FS_ENOMEM;
	}
	return FS_OK;
}

void udp_stop(struct net *net)
{
	for (struct udp_socket *s = net->datagrams; s; s = s->next) {
		udp_forget(s);
		if (event_initialized(&s->readable))
			event_del(&s->readable);
		if (event_initialized(&s->writable))
			event_del(&s->writable);
	}
}

void udp_close_all(struct net *net)
{
	while (net->datagrams) {
		struct udp_socket *socket = net->datagrams;

		net->datagrams = socket->next;
		close(socket->fd);
		mem_free(socket);
	}
}

/* ---- what others show of them ---------------------------------------------------------------- */

void udp_each_address(const struct net *net, void (*see)(void *context, int family, unsigned port), void *context)
{
	for (const struct udp_socket *s = net->datagrams; s; s = s->next)
		if (s->leads)
			see(context, s->family, s->port);
}

void udp_each(const struct net *net, uint32_t now_seconds,
	      void (*see)(void *context, const struct net_conn_status *conn), void *context)
{
	for (const struct udp_socket *s = net->datagrams; s; s = s->next) {
		uint32_t active = atomic_load_explicit(&s->active_seconds, memory_order_relaxed);
		struct net_conn_status status = { .fd = s->fd,
						  .address = s->address,
						  .state = "conn_read",
						  .idle_seconds = now_seconds > active ? now_seconds - active : 0 };

		see(context, &status);
	}
}
