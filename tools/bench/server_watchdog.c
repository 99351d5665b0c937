/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/server_internal.h"

#define FOOD "WATCHDOG=1"
#define MESSAGE_BYTES 4096

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A name without a file: nothing is left behind, and whoever the server becomes may send there. */
int watchdog_create(struct server *server)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int length;

	snprintf(server->watchdog_name, sizeof(server->watchdog_name), "@flashield-bench-%d-%u", (int)getpid(),
		 server->port);
	length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", server->watchdog_name + 1);
	server->watchdog_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server->watchdog_fd < 0 ||
	    bind(server->watchdog_fd, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) != 0) {
		fprintf(stderr, "flashield-bench: a socket for the server's state: %s\n", strerror(errno));
		return FS_ESYS;
	}
	server->fed_seconds = now_seconds();
	return FS_OK;
}

void watchdog_destroy(struct server *server)
{
	if (server->watchdog_fd >= 0)
		close(server->watchdog_fd);
	server->watchdog_fd = -1;
}

/* A message has a variable per line. */
static bool is_food(const char *message)
{
	for (const char *line = message; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, FOOD, strlen(FOOD)) == 0)
			return true;
	}
	return false;
}

double server_unfed_seconds(struct server *server)
{
	char message[MESSAGE_BYTES];
	ssize_t length;

	if (server->watchdog_fd < 0)
		return NAN;
	while ((length = recv(server->watchdog_fd, message, sizeof(message) - 1, 0)) >= 0) {
		message[length] = '\0';
		if (is_food(message))
			server->fed_seconds = now_seconds();
	}
	return now_seconds() - server->fed_seconds;
}
