/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of --metrics-listen: its address, and the port that the kernel has chosen for 0. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/metrics/metrics_internal.h"

#define BACKLOG 64

/* "[::]" and "*" are for IPv4 too, whatever the machine's default is. */
static bool set_socket_up(int fd, int family)
{
	const int one = 1, zero = 0;

	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
	       (family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) == 0);
}

/* Listens on one of the addresses that a name has. The socket, or -1 with errno. */
static int listen_on(const struct addrinfo *found)
{
	int fd = -1, error = EADDRNOTAVAIL;

	for (; found && fd < 0; found = found->ai_next) {
		fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && set_socket_up(fd, found->ai_family) &&
		    bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
			break;
		error = errno;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	errno = error;
	return fd;
}

static int listen_at(const char *host, const char *port, const char *address, char reason[256])
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *found = NULL;
	int code = getaddrinfo(host, port, &hints, &found), fd;

	if (code != 0) {
		snprintf(reason, 256, "%s: %s", address, code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
		return -1;
	}
	fd = listen_on(found);
	if (fd < 0)
		snprintf(reason, 256, "%s: %s", address, strerror(errno));
	freeaddrinfo(found);
	return fd;
}

int metrics_socket(const char *address, char reason[256])
{
	const char *colon = strrchr(address, ':');
	const bool brackets = address[0] == '[';
	char host[256];
	int fd;

	snprintf(host, sizeof(host), "%.*s", (int)(colon - address - 2 * brackets), address + brackets);
	if (*host && strcmp(host, "*") != 0)
		return listen_at(host, colon + 1, address, reason);
	fd = listen_at("::", colon + 1, address, reason);
	return fd < 0 && errno != EADDRINUSE ? listen_at("0.0.0.0", colon + 1, address, reason) : fd;
}

void metrics_socket_name(int fd, const char *address, char out[METRICS_ADDRESS_BYTES])
{
	const char *colon = strrchr(address, ':');
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	char port[NI_MAXSERV];

	if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0 ||
	    getnameinfo((struct sockaddr *)&bound, length, NULL, 0, port, sizeof(port), NI_NUMERICSERV) != 0)
		snprintf(port, sizeof(port), "%s", colon + 1);
	snprintf(out, METRICS_ADDRESS_BYTES, "%.*s:%s", (int)(colon - address), address, port);
}
