/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/bench/server_internal.h"

#define ANSWER_TIMEOUT_S 60
#define ANSWER_BYTES (256 * 1024)

void ask_close(struct server *server)
{
	if (server->stats_fd >= 0)
		close(server->stats_fd);
	server->stats_fd = -1;
}

static int ask_connect(struct server *server)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(server->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timeval timeout = { .tv_sec = ANSWER_TIMEOUT_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return FS_ESYS;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		bool refused = errno == ECONNREFUSED;

		close(fd);
		return refused ? FS_EAGAIN : FS_ESYS;
	}
	server->stats_fd = fd;
	return 0;
}

/* Has the answer come to its end? All that is asked here ends with a line of its own kind. */
static bool complete(const char *answer, size_t length)
{
	static const char *const ends[] = { "END\r\n", "OK\r\n", "ERROR\r\n" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = strlen(ends[i]);

		if (length >= end && memcmp(answer + length - end, ends[i], end) == 0 &&
		    (length == end || answer[length - end - 1] == '\n'))
			return true;
	}
	return length > 2 &&
	       (strncmp(answer, "VERSION ", 8) == 0 || strncmp(answer, "CLIENT_ERROR", 12) == 0 ||
		strncmp(answer, "SERVER_ERROR", 12) == 0) &&
	       answer[length - 1] == '\n';
}

/* Sends a line and reads its whole answer, terminated by a NUL. */
static int ask(struct server *server, const char *line, char *answer, size_t answer_bytes)
{
	size_t length = 0;
	int code = server->stats_fd < 0 ? ask_connect(server) : 0;

	if (code != 0)
		return code;
	if (send(server->stats_fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line))
		goto broken;
	answer[0] = '\0';
	while (!complete(answer, length)) {
		ssize_t got = recv(server->stats_fd, answer + length, answer_bytes - 1 - length, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			goto broken;
		length += (size_t)got;
		answer[length] = '\0';
	}
	return 0;
broken:
	ask_close(server); /* the next question gets a connection of its own */
	return FS_ESYS;
}

int ask_version(struct server *server)
{
	char answer[256];
	int code = ask(server, "version\r\n", answer, sizeof(answer));

	if (code != 0)
		return code;
	if (sscanf(answer, "VERSION %79s", server->version) != 1)
		return FS_ECORRUPT;
	return 0;
}

double server_stat(struct server *server, const char *group, const char *name)
{
	size_t length = strlen(name);
	char line[128], *answer;
	double figure = NAN;

	answer = malloc(ANSWER_BYTES);
	if (!answer)
		return figure;
	snprintf(line, sizeof(line), group[0] ? "stats %s\r\n" : "stats%s\r\n", group);
	if (ask(server, line, answer, ANSWER_BYTES) != 0)
		goto out;
	for (char *at = answer; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
		if (strncmp(at, "STAT ", 5) == 0 && strncmp(at + 5, name, length) == 0 && at[5 + length] == ' ') {
			char *end;
			double value = strtod(at + 6 + length, &end);

			if (*end == '\r')
				figure = value;
			break;
		}
	}
out:
	free(answer);
	return figure;
}

void server_flush(struct server *server)
{
	char answer[256];

	if (ask(server, "flush_all\r\n", answer, sizeof(answer)) != 0 || strcmp(answer, "OK\r\n") != 0)
		fprintf(stderr, "flashield-bench: %s doesn't flush\n", server_names[server->spec.kind]);
}
