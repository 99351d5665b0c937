/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets that a service manager has bound and handed over. They take the place of -l, -p, -U and -s. Each is checked
 * first, as the unit's author may have meant another daemon, or another kind of service.
 */
#include "server/net/net_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/log.h"
#include "conf/conf.h"
#include "conf/listen.h"

/* Values of FileDescriptorName= that choose between TLS and plain connections, with -Z. */
#define NAME_TLS "tls"
#define NAME_PLAIN "notls"

static bool socket_is_named(const struct net_socket *given, const char *name)
{
	return strcmp(given->name, name) == 0;
}

static int refuse_inherited(const struct net_socket *given, const char *why, char reason[256])
{
	snprintf(reason, 256, "the socket handed over as descriptor %d (%.60s) can't be used: %s", given->fd,
		 *given->name ? given->name : "without a name", why);
	return FS_EINVAL;
}

/* Returns a socket option's value, or -1: it isn't a socket, or has no such option. */
static int socket_property(int fd, int option)
{
	int value = -1;
	socklen_t length = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

/* NULL: the name asks for something that can't be served, and *why says so. */
static const struct transport *choose_transport(const struct net *net, const struct net_socket *given, int family,
						const char **why)
{
	bool tls = net->certificates && family != AF_UNIX && !socket_is_named(given, NAME_PLAIN);

	if (socket_is_named(given, NAME_TLS)) {
		*why = "its name asks for TLS, which is off (-Z)";
		return net->certificates ? &transport_tls : NULL;
	}
	return tls ? &transport_tls : &transport_plain;
}

static void switch_socket_option_on(int fd, int level, int option)
{
	int on = 1;

	if (setsockopt(fd, level, option, &on, sizeof(on)) != 0)
		log_warn("can't set the socket option %d of level %d: %m", option, level);
}

static int adopt_stream(struct net *net, const struct net_socket *given, int family, char reason[256])
{
	const char *why = NULL;
	const struct transport *transport = choose_transport(net, given, family, &why);
	struct reception reception = reception_of(net, CONF_LISTEN_TLS_BY_Z, net->server->conf->binding_protocol);

	if (!transport)
		return refuse_inherited(given, why, reason);
	if (socket_property(given->fd, SO_ACCEPTCONN) != 1)
		return refuse_inherited(given, "it doesn't listen; its .socket unit needs Accept=no", reason);
	if (family != AF_UNIX) {
		switch_socket_option_on(given->fd, SOL_SOCKET, SO_KEEPALIVE); /* accepted sockets inherit these */
		switch_socket_option_on(given->fd, IPPROTO_TCP, TCP_NODELAY);
	}
	reception.transport = transport;
	return bind_add_listener(net, given->fd, &reception, family == AF_UNIX)
		       ? FS_OK
		       : refuse_inherited(given, "no memory", reason);
}

static int adopt_datagram(struct net *net, const struct net_socket *given, int family, char reason[256])
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);

	if (family == AF_UNIX)
		return refuse_inherited(given, "datagrams of UNIX sockets aren't served", reason);
	if (socket_is_named(given, NAME_TLS))
		return refuse_inherited(given, "its name asks for TLS, which datagrams don't have", reason);
	if (getsockname(given->fd, (struct sockaddr *)&bound, &length) != 0 ||
	    address_port((struct sockaddr *)&bound) == 0)
		return refuse_inherited(given, "it isn't bound to a port", reason);
	return udp_adopt(net, given->fd) == 0 ? FS_OK : refuse_inherited(given, strerror(errno), reason);
}

static int adopt_socket(struct net *net, const struct net_socket *given, char reason[256])
{
	int type = socket_property(given->fd, SO_TYPE), family = socket_property(given->fd, SO_DOMAIN);
	int flags = fcntl(given->fd, F_GETFL);

	if (type < 0)
		return refuse_inherited(given, errno == EBADF ? "there is no such descriptor" : "it isn't a socket",
					reason);
	if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
		return refuse_inherited(given, "it is not of IPv4 or IPv6, nor a UNIX socket", reason);
	if (flags < 0 || fcntl(given->fd, F_SETFL, flags | O_NONBLOCK) != 0)
		return refuse_inherited(given, strerror(errno), reason);
	if (type == SOCK_STREAM)
		return adopt_stream(net, given, family, reason);
	if (type == SOCK_DGRAM)
		return adopt_datagram(net, given, family, reason);
	return refuse_inherited(given, "it is neither a stream socket nor one of datagrams", reason);
}

int inherited_open(struct net *net, char reason[256])
{
	int code = FS_OK;

	for (unsigned i = 0; i < net->inherited_count && code == FS_OK; i++)
		code = adopt_socket(net, &net->inherited[i], reason);
	if (code == FS_OK)
		log_info("the service manager has handed over %u sockets, which take the place of -l, -p, -U and -s",
			 net->inherited_count);
	return code;
}

bool inherited_any(const struct net *net)
{
	return net->inherited_count > 0;
}
