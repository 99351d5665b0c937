/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets: binding them, accepting, and the connection limit. */
#include "server/net/net_internal.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "conf/conf.h"
#include "conf/counters.h"

#define ACCEPTS 64	/* per event */
#define RETRY_MS 10	/* after descriptors ran out */
#define WARN_US 60000000u /* between two lines that say so */
#define SPARE_FDS 128	/* beside the connections: flash, libevent, log, ... */
#define WORKER_FDS 16

/* ---- accepting ------------------------------------------------------------------------------- */

static void stop_accepting(struct net *net)
{
	struct timeval retry = { .tv_usec = RETRY_MS * 1000 };

	if (net->accepting) {
		for (struct listener *l = net->listeners; l; l = l->next)
			event_del(&l->event);
		net->accepting = false;
		atomic_store(&net->accepting_shown, false);
		net->stopped_us = clk_now_us(clk_boot());
		ctr_add(CTR_listen_disabled_num, 1);
	}
	event_add(&net->retry, &retry);
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
	struct net *net = context;

	(void)fd;
	(void)what;
	for (struct listener *l = net->listeners; l; l = l->next)
		event_add(&l->event, NULL);
	net->accepting = true;
	atomic_store(&net->accepting_shown, true);
	atomic_fetch_add(&net->not_accepting_us, clk_now_us(clk_boot()) - net->stopped_us);
}

/* Tried again a hundred times a second: not each time is worth a line. */
static void warn_of_want(int error)
{
	static uint64_t warned_us; /* the main thread's */
	uint64_t now_us = clk_now_us(clk_boot());

	if (warned_us != 0 && now_us - warned_us < WARN_US)
		return;
	warned_us = now_us;
	log_warn("no more connections for now: %s", strerror(error));
}

static void refuse(int fd)
{
	static const char text[] = "ERROR Too many open connections\r\n";

	ctr_add(CTR_rejected_connections, 1);
	if (send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("a refused connection could not be told so");
	close(fd);
}

static void admit(struct net *net, const struct listener *listener, int fd)
{
	const struct opening opening = { .fd = fd, .listener = listener, .transport = listener->transport };
	unsigned open = atomic_fetch_add(&net->connections, 1) + 1;
	struct worker *worker = &net->workers[net->next_worker];

	if (open > atomic_load(&net->connection_peak))
		atomic_store(&net->connection_peak, open);
	ctr_add(CTR_total_connections, 1);
	net->next_worker = (net->next_worker + 1) % net->worker_count;
	if (!worker_give(worker, &opening)) {
		net_connection_closed(net);
		close(fd);
	}
}

static void on_connection(evutil_socket_t fd, short what, void *context)
{
	struct listener *listener = context;
	struct net *net = listener->net;

	(void)what;
	for (unsigned i = 0; i < ACCEPTS; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (client < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
				warn_of_want(errno);
				stop_accepting(net);
			}
			return;
		}
		if (atomic_load(&net->connections) >= (unsigned)net->server->conf->conn_limit)
			refuse(client);
		else
			admit(net, listener, client);
	}
}

void net_connection_closed(struct net *net)
{
	atomic_fetch_sub(&net->connections, 1);
}

/* ---- binding --------------------------------------------------------------------------------- */

static bool add_listener(struct net *net, int fd, const struct transport *transport, bool local)
{
	struct listener *listener = mem_zalloc(sizeof(*listener));

	if (!listener)
		return false;
	*listener = (struct listener){ .next = net->listeners, .net = net, .fd = fd, .local = local,
				       .transport = transport };
	net->listeners = listener;
	return true;
}

static void set_option(int fd, int level, int option)
{
	int on = 1;

	if (setsockopt(fd, level, option, &on, sizeof(on)) != 0)
		log_warn("socket option %d of level %d can't be set: %m", option, level);
}

/* 0, or -1 with errno. */
static int bind_tcp(struct net *net, const struct addrinfo *info, const struct transport *transport)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, info->ai_protocol);
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	int error;

	if (fd < 0)
		return -1;
	set_option(fd, SOL_SOCKET, SO_REUSEADDR);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE); /* accepted sockets inherit these */
	set_option(fd, IPPROTO_TCP, TCP_NODELAY);
	if (info->ai_family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 &&
	    getsockname(fd, (struct sockaddr *)&bound, &length) == 0 && add_listener(net, fd, transport, false)) {
		if (net->tcp_port == 0)
			net->tcp_port = ntohs(info->ai_family == AF_INET6 ?
						      ((struct sockaddr_in6 *)&bound)->sin6_port :
						      ((struct sockaddr_in *)&bound)->sin_port);
		return 0;
	}
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static const struct transport *usual_transport(const struct net *net)
{
	return net->certificates ? &transport_tls : &transport_plain;
}

/* All addresses that a host has. host NULL: all interfaces. */
static int bind_host(struct net *net, const char *host, const char *port, const struct transport *transport,
		     char reason[256])
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	unsigned bound = 0;
	int code = getaddrinfo(host, port, &hints, &list);

	if (code != 0) {
		snprintf(reason, 256, "can't listen on %s port %s: %s", host ? host : "*", port,
			 gai_strerror(code));
		return FS_EINVAL;
	}
	reason[0] = 0;
	for (struct addrinfo *info = list; info; info = info->ai_next) {
		if (bind_tcp(net, info, transport) == 0)
			bound++;
		else if (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL)
			snprintf(reason, 256, "can't listen on %s port %s: %m", host ? host : "*", port);
		else if (!reason[0] && bound == 0)
			snprintf(reason, 256, "can't listen on %s port %s: %m", host ? host : "*", port);
	}
	freeaddrinfo(list);
	return bound > 0 ? FS_OK : FS_ESYS;
}

/* getaddrinfo would take 70000 for 4464. */
static bool is_port(const char *text)
{
	size_t length = strspn(text, "0123456789");

	return length > 0 && length <= 5 && !text[length] && atoi(text) <= UINT16_MAX;
}

/*
 * One of -l's addresses: HOST, HOST:PORT, [V6]:PORT, or a bare IPv6 address. After "notls:" its
 * connections are plain in spite of -Z.
 */
static int bind_address(struct net *net, char *address, const char *port, char reason[256])
{
	const struct transport *transport = usual_transport(net);
	char *host = address, *colon;

	if (strncmp(host, "notls:", 6) == 0) {
		transport = &transport_plain;
		host += 6;
	}
	if (*host == '[') {
		char *bracket = strchr(++host, ']');

		if (!bracket) {
			snprintf(reason, 256, "\"%s\" lacks its \"]\"", address);
			return FS_EINVAL;
		}
		*bracket = 0;
		if (bracket[1] == ':')
			port = bracket + 2;
	} else {
		colon = strchr(host, ':');
		if (colon && !strchr(colon + 1, ':')) {
			*colon = 0;
			port = colon + 1;
		}
	}
	if (!is_port(port)) {
		snprintf(reason, 256, "can't listen on %s: \"%s\" is not a port from 0 to 65535", host, port);
		return FS_EINVAL;
	}
	return bind_host(net, *host && strcmp(host, "*") != 0 ? host : NULL, port, transport, reason);
}

static int bind_all(struct net *net, char reason[256])
{
	const struct conf *conf = net->server->conf;
	char port[16], *list, *rest = NULL;
	int code = FS_OK;

	snprintf(port, sizeof(port), "%d", conf->port < 0 ? 0 : conf->port);
	if (!conf->listen)
		return conf->port == 0 ? FS_OK : bind_host(net, NULL, port, usual_transport(net), reason);
	list = strdup(conf->listen);
	if (!list)
		return FS_ENOMEM;
	for (char *address = strtok_r(list, ",; ", &rest); address && code == FS_OK;
	     address = strtok_r(NULL, ",; ", &rest))
		code = bind_address(net, address, port, reason);
	free(list);
	return code;
}

static int bind_unix(struct net *net, char reason[256])
{
	const struct conf *conf = net->server->conf;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat old;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	mode_t mask;
	bool ok;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", conf->unix_socket);
	if (lstat(conf->unix_socket, &old) == 0 && S_ISSOCK(old.st_mode))
		unlink(conf->unix_socket);
	mask = umask((mode_t)~conf->unix_mask & 0777);
	ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	if (!ok)
		snprintf(reason, 256, "can't listen on %s: %m", conf->unix_socket);
	umask(mask);
	if (ok) {
		net->unix_path = realpath(conf->unix_socket, NULL); /* -d goes to another directory */
		ok = add_listener(net, fd, &transport_plain, true);
	}
	if (!ok && fd >= 0)
		close(fd);
	return ok ? FS_OK : FS_ESYS;
}

int listen_open(struct net *net, char reason[256])
{
	int code = net->server->conf->unix_socket ? bind_unix(net, reason) : bind_all(net, reason);

	if (code == FS_OK && !net->listeners) {
		snprintf(reason, 256, "nothing to listen on: port is 0 and there is no UNIX socket");
		return FS_EINVAL;
	}
	return code;
}

void listen_close(struct net *net)
{
	while (net->listeners) {
		struct listener *listener = net->listeners;

		net->listeners = listener->next;
		close(listener->fd);
		mem_free(listener);
	}
	if (net->unix_path)
		unlink(net->unix_path);
	free(net->unix_path);
	net->unix_path = NULL;
}

/* Bound long before, so that a port in use is seen first of all; but who connects while a large
   flash file is being made is refused, not kept waiting. */
int listen_start(struct net *net)
{
	for (struct listener *l = net->listeners; l; l = l->next)
		if (listen(l->fd, net->server->conf->listen_backlog) != 0)
			return FS_ESYS;
	for (struct listener *l = net->listeners; l; l = l->next)
		if (event_assign(&l->event, net->base, l->fd, EV_READ | EV_PERSIST, on_connection, l) != 0 ||
		    event_add(&l->event, NULL) != 0)
			return FS_ENOMEM;
	if (event_assign(&net->retry, net->base, -1, 0, on_retry, net) != 0)
		return FS_ENOMEM;
	net->accepting = true;
	atomic_store(&net->accepting_shown, true);
	return FS_OK;
}

void listen_stop(struct net *net)
{
	for (struct listener *l = net->listeners; l; l = l->next)
		if (event_initialized(&l->event))
			event_del(&l->event);
	if (event_initialized(&net->retry))
		event_del(&net->retry);
	net->accepting = false;
}

void listen_raise_limit(const struct net *net)
{
	const struct conf *conf = net->server->conf;
	rlim_t wanted = (rlim_t)conf->conn_limit + (rlim_t)conf->threads * WORKER_FDS + SPARE_FDS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted;
	if (limit.rlim_max < wanted)
		limit.rlim_max = wanted;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
			log_warn("%d connections (-c) need %lu open files, but the limit is %lu (ulimit -n)",
				 conf->conn_limit, (unsigned long)wanted, (unsigned long)limit.rlim_max);
	}
}
