/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/connect.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_within(int fd, const struct sockaddr *address, socklen_t length, uint64_t timeout_us)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(errno);
	int code = 0;

	if (connect(fd, address, length) == 0)
		return FS_OK;
	if (errno != EINPROGRESS)
		return FS_ESYS;
	if (poll(&pollfd, 1, (int)(timeout_us / 1000)) <= 0) {
		errno = ETIMEDOUT;
		return FS_ESYS;
	}
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
	errno = code;
	return code ? FS_ESYS : FS_OK;
}

static int connect_unix(const char *path, uint64_t timeout_us, int *fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return FS_ESYS;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return FS_ESYS;
	return connect_within(*fd, (const struct sockaddr *)&address, sizeof(address), timeout_us);
}

static int connect_tcp(const char *host, const char *port, uint64_t timeout_us, int *fd, const char **why)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list;
	int code = getaddrinfo(host, port, &hints, &list), result = FS_ESYS, one = 1;

	if (code) {
		*why = gai_strerror(code);
		return FS_ESYS;
	}
	for (struct addrinfo *at = list; at && result != FS_OK; at = at->ai_next) {
		*fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (*fd < 0)
			continue;
		result = connect_within(*fd, at->ai_addr, at->ai_addrlen, timeout_us);
		*why = strerror(errno);
		if (result != FS_OK) {
			close(*fd);
			*fd = -1;
		}
	}
	freeaddrinfo(list);
	if (result == FS_OK)
		setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return result;
}

const char *connect_host(const char *server, char host[256])
{
	const char *colon = strrchr(server, ':');
	bool bracketed = server[0] == '[' && colon && colon > server + 1 && colon[-1] == ']';

	if (strchr(server, '/') || !colon || colon == server || colon - server >= 256)
		return NULL;
	snprintf(host, 256, "%.*s", (int)(colon - server - (bracketed ? 2 : 0)), server + bracketed);
	return host;
}

int connect_server(const char *server, uint64_t timeout_us, int *fd, char error[256])
{
	const char *colon = strrchr(server, ':');
	const char *why = "not HOST:PORT and not the path of a unix socket";
	char host[256] = "";
	int code = FS_EINVAL;

	*fd = -1;
	if (strchr(server, '/')) {
		code = connect_unix(server, timeout_us, fd);
		why = strerror(errno);
	} else if (colon && colon[1] && (size_t)(colon - server) < sizeof(host)) {
		bool bracketed = server[0] == '[' && colon[-1] == ']';

		snprintf(host, sizeof(host), "%.*s", (int)(colon - server - (bracketed ? 2 : 0)), server + bracketed);
		code = connect_tcp(host[0] ? host : "127.0.0.1", colon + 1, timeout_us, fd, &why);
	}
	if (code == FS_OK)
		return FS_OK;
	snprintf(error, 256, "can't reach the server at %s: %s", server, why);
	if (*fd >= 0)
		close(*fd);
	return code;
}
