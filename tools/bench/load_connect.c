/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/bench/load_internal.h"

#define FIRST_ANSWER_SECONDS 60
#define DESCRIPTORS_BESIDE 64 /* the bench's descriptors beside connections */

/* As many descriptors as the load needs, as far as we may. What is missing, socket() tells. */
static void descriptors_raise(unsigned connections)
{
	rlim_t needed = (rlim_t)connections + DESCRIPTORS_BESIDE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
		return;
	limit.rlim_cur = needed;
	if (limit.rlim_max < needed)
		limit.rlim_max = needed;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* An answer here means that the server has accepted the connection and given it to a thread: none of that
   is left for the measured part. */
static int greet(int fd)
{
	static const char question[] = "version\r\n";
	char answer[128];
	size_t length = 0;

	if (send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) != sizeof(question) - 1)
		return FS_ESYS;
	while (length == 0 || answer[length - 1] != '\n') {
		ssize_t got = recv(fd, answer + length, sizeof(answer) - length, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			errno = ECONNRESET;
		if (got <= 0)
			return FS_ESYS;
		length += (size_t)got;
		if (length == sizeof(answer))
			break;
	}
	return length >= 8 && memcmp(answer, "VERSION ", 8) == 0 ? 0 : FS_ECORRUPT;
}

static int connection_open(struct load *load, struct connection *connection)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(load->server.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timeval timeout = { .tv_sec = FIRST_ANSWER_SECONDS };
	struct epoll_event interest = { .events = EPOLLIN, .data.ptr = connection };
	int one = 1, code;

	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0 || setsockopt(connection->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0 ||
	    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0 ||
	    connect(connection->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return FS_ESYS;
	code = greet(connection->fd);
	if (code != 0)
		return code;
	if (fcntl(connection->fd, F_SETFL, O_NONBLOCK) != 0 ||
	    epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &interest) != 0)
		return FS_ESYS;
	return 0;
}

int load_connect(struct load *load)
{
	int code = 0;

	descriptors_raise(load->spec.connections);
	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (load->epoll < 0)
		return FS_ESYS;
	for (unsigned i = 0; i < load->spec.connections && code == 0; i++) {
		code = connection_open(load, &load->connections[i]);
		if (code != 0)
			fprintf(stderr, "flashield-bench: connection %u to port %u: %s\n", i + 1, load->server.port,
				code == FS_ESYS ? strerror(errno) : "it doesn't speak the memcached protocol");
	}
	return code;
}
