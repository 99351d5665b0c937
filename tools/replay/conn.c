/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/replay/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

#define READ_BYTES (128u << 10)
#define OUT_BYTES (32u << 10)

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

int conn_connect(const char *server, uint64_t timeout_us, int *fd, char error[256])
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

void conn_init(struct conn *conn, int fd, uint32_t depth)
{
	uint32_t ring_room = 2;

	/* A miss's fill may go out before its get has left the ring. */
	while (ring_room < depth + 2)
		ring_room *= 2;
	*conn = (struct conn){ .fd = fd, .ring_mask = ring_room - 1 };
	conn->ring = mem_must_zalloc(ring_room * sizeof(*conn->ring));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	buffer_reserve(&conn->in, READ_BYTES);
	buffer_reserve(&conn->out, OUT_BYTES);
}

void conn_fini(struct conn *conn)
{
	close(conn->fd);
	mem_free(conn->ring);
	mem_free(conn->in.bytes);
	mem_free(conn->out.bytes);
}

char *buffer_reserve(struct buffer *buffer, size_t bytes)
{
	if (buffer->start && (buffer->start == buffer->end || buffer->capacity - buffer->end < bytes)) {
		memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->end - buffer->start);
		buffer->end -= buffer->start;
		buffer->start = 0;
	}
	if (buffer->capacity - buffer->end < bytes) {
		size_t capacity = buffer->capacity ? buffer->capacity : bytes;

		while (capacity - buffer->end < bytes)
			capacity *= 2;
		buffer->bytes = mem_realloc(buffer->bytes, capacity);
		must(buffer->bytes);
		buffer->capacity = capacity;
	}
	return buffer->bytes + buffer->end;
}

int conn_flush(struct conn *conn)
{
	struct buffer *out = &conn->out;

	while (out->start < out->end) {
		ssize_t sent = send(conn->fd, out->bytes + out->start, out->end - out->start, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN ? FS_OK : FS_ESYS;
		out->start += (size_t)sent;
	}
	out->start = out->end = 0;
	return FS_OK;
}

int conn_read(struct conn *conn)
{
	struct buffer *in = &conn->in;
	ssize_t got;

	if (in->start == in->end)
		in->start = in->end = 0;
	/* Compacting for a few bytes of room would copy more bytes than a read brings. */
	if (in->capacity - in->end < READ_BYTES / 4)
		buffer_reserve(in, READ_BYTES / 2);
	do
		got = recv(conn->fd, in->bytes + in->end, in->capacity - in->end, 0);
	while (got < 0 && errno == EINTR);
	if (got > 0) {
		in->end += (size_t)got;
		return FS_OK;
	}
	if (got < 0 && errno == EAGAIN)
		return FS_EAGAIN;
	if (got == 0)
		errno = 0;
	return FS_ESYS;
}
