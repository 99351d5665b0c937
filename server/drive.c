/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/drive.h"

#ifdef FS_FAULTS

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/thread.h"
#include "server/store/drive.h"
#include "server/store/store.h"

#define LINE_BYTES (64u << 10)
#define KEYS_MOST 1024u

static struct drive {
	int listener; /* -1: none */
	int stop_fd;
	_Atomic bool stops;
	bool runs;
	pthread_t thread;
	struct store *store;
	char line[LINE_BYTES];
	struct store_place_key keys[KEYS_MOST];
} drive = { .listener = -1, .stop_fd = -1 };

int drive_listen(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("FLASHIELD_DRIVE");

	if (!path || !*path)
		return FS_OK;
	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return FS_ESYS;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	(void)unlink(path);
	drive.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	drive.stop_fd = eventfd(0, EFD_CLOEXEC);
	return drive.listener >= 0 && drive.stop_fd >= 0 &&
			       bind(drive.listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
			       chmod(path, 0777) == 0 && listen(drive.listener, 8) == 0
		       ? FS_OK
		       : FS_ESYS;
}

/* words: NULL for all objects. */
static void do_place(char *words, char answer[80])
{
	unsigned count = 0, moved;
	char *rest = NULL;

	for (char *key = words ? strtok_r(words, " ", &rest) : NULL; key && count < KEYS_MOST;
	     key = strtok_r(NULL, " ", &rest))
		drive.keys[count++] = (struct store_place_key){ .key = key, .length = strlen(key) };
	moved = store_place(drive.store, words ? drive.keys : NULL, count, &drive.stops);
	snprintf(answer, 80, "PLACED %u\n", moved);
}

static bool do_clock(const char *word)
{
	char *end = NULL;
	unsigned long long ms;

	if (strcmp(word, "stand") == 0 || strcmp(word, "go") == 0) {
		clk_boot_stand(*word == 's');
		return true;
	}
	ms = strtoull(word, &end, 10);
	if (end == word || *end)
		return false;
	clk_boot_advance(ms * 1000);
	return true;
}

static void do_line(char *line, char answer[80])
{
	char *words = line;
	const char *command = strsep(&words, " ");

	snprintf(answer, 80, "ERROR\n");
	if (strcmp(command, "place") == 0) {
		do_place(words, answer);
	} else if (strcmp(command, "rest") == 0) {
		store_rest(drive.store, &drive.stops);
		snprintf(answer, 80, "RESTS\n");
	} else if (strcmp(command, "clock") == 0 && words && do_clock(words)) {
		snprintf(answer, 80, "OK\n");
	}
}

/* Is there something to read, and no wish to stop? */
static bool await_input(int fd)
{
	struct pollfd fds[] = { { .fd = drive.stop_fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0)
		must(errno == EINTR);
	return !fds[0].revents;
}

/* Serves one client, up to the end of its stream or a line that is too long. */
static void serve_client(int client)
{
	size_t length = 0;

	while (length < LINE_BYTES - 1 && await_input(client)) {
		ssize_t got = read(client, drive.line + length, LINE_BYTES - 1 - length);
		char answer[80], *end;

		if (got <= 0)
			return;
		length += (size_t)got;
		drive.line[length] = 0;
		while ((end = strchr(drive.line, '\n')) != NULL) {
			*end++ = 0;
			length -= (size_t)(end - drive.line);
			do_line(drive.line, answer);
			memmove(drive.line, end, length + 1);
			if (write(client, answer, strlen(answer)) < 0)
				return;
		}
	}
}

static void *drive_run(void *context)
{
	(void)context;
	pthread_setname_np(pthread_self(), "drive");
	while (await_input(drive.listener)) {
		int client = accept4(drive.listener, NULL, NULL, SOCK_CLOEXEC);

		if (client < 0)
			continue;
		serve_client(client);
		close(client);
	}
	return NULL;
}

int drive_start(struct store *store)
{
	if (drive.listener < 0)
		return FS_OK;
	drive.store = store;
	errno = thread_start(&drive.thread, drive_run, NULL);
	drive.runs = errno == 0;
	return drive.runs ? FS_OK : FS_ESYS;
}

void drive_stop(void)
{
	if (!drive.runs)
		return;
	atomic_store(&drive.stops, true);
	must(eventfd_write(drive.stop_fd, 1) == 0);
	(void)pthread_join(drive.thread, NULL);
	close(drive.listener);
	close(drive.stop_fd);
	drive.runs = false;
}

#endif
