/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flashield-admin: asks a running daemon for work that takes long, and shows how far it is. The daemon does the work, whether
 * or not this program goes on.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/args.h"
#include "tools/common/connect.h"

#define ANSWER_BYTES (256u << 10)
#define LOOK_EVERY_MS 500

static const char help[] =
	"Usage: flashield-admin [OPTION]... move NEW\n"
	"       flashield-admin [OPTION]... move status|cancel\n"
	"Moves the flash of a running Flashield, which has the option enable-move, to another file or device\n"
	"while it serves. NEW is its path for the daemon, and absolute. A file is made if it is missing.\n"
	"Then the next start of the daemon needs NEW as its flash-path.\n"
	"\n"
	"  --server S     HOST:PORT, or the path of a unix socket  (127.0.0.1:11211)\n"
	"  --size SIZE    of the new flash  (that of the present file or device, or of the old flash)\n"
	"  --rate SIZE    most bytes per second to copy; 0: no limit  (the daemon's move-rate)\n"
	"  --no-wait      don't wait for the end of the move\n"
	"  --timeout T    for a connection and for an answer  (5s)\n"
	"  --help  --version\n"
	"\n"
	"Sizes take k, m, g, t (powers of 1024), times us, ms, s, m, h, d.\n"
	"Exit status: 0 the flash has moved, or what was asked for is done; 1 the move has failed or was\n"
	"cancelled, and the flash is where it was; 2 bad usage, or the daemon can't be asked.\n";

struct options {
	const char *server;
	const char *size, *rate;
	bool no_wait;
	int64_t timeout_us;
};

/* ---- the daemon ------------------------------------------------------------------------------ */

struct peer {
	const struct options *options;
	int fd;
	size_t length;
	char answer[ANSWER_BYTES + 1]; /* the last one, and a 0 behind it */
};

static void wait_for(const struct peer *peer, short events)
{
	struct pollfd pollfd = { .fd = peer->fd, .events = events };

	if (poll(&pollfd, 1, (int)(peer->options->timeout_us / 1000)) <= 0)
		arg_die("%s doesn't answer", peer->options->server);
}

static void send_line(const struct peer *peer, const char *line)
{
	for (size_t sent = 0, length = strlen(line); sent < length;) {
		ssize_t n = write(peer->fd, line + sent, length - sent);

		if (n > 0)
			sent += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			wait_for(peer, POLLOUT);
		else if (errno != EINTR)
			arg_die("%s: %s", peer->options->server, strerror(errno));
	}
}

static bool ends_with(const struct peer *peer, const char *end)
{
	size_t length = strlen(end);

	return peer->length >= length && memcmp(peer->answer + peer->length - length, end, length) == 0;
}

/* Is there a line that ends a report, or is the answer of one line? */
static bool is_complete(const struct peer *peer)
{
	if (!ends_with(peer, "\r\n"))
		return false;
	return strncmp(peer->answer, "STAT ", 5) != 0 || ends_with(peer, "\r\nEND\r\n");
}

/* Asks one command, and reads its answer. */
static void ask(struct peer *peer, const char *line)
{
	send_line(peer, line);
	peer->length = 0;
	while (peer->length < ANSWER_BYTES) {
		ssize_t n = read(peer->fd, peer->answer + peer->length, ANSWER_BYTES - peer->length);

		if (n > 0)
			peer->length += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			wait_for(peer, POLLIN);
		else if (n == 0 || errno != EINTR)
			arg_die("%s has closed the connection", peer->options->server);
		peer->answer[peer->length] = '\0';
		if (is_complete(peer))
			return;
	}
}

/* Copies the value of a row of "stats flash", which was asked. False: there is no such row. */
static bool find_row(const struct peer *peer, const char *name, char *out, size_t size)
{
	size_t length = strlen(name);

	for (const char *line = peer->answer; (line = strstr(line, "STAT ")) != NULL;) {
		line += 5;
		if (strncmp(line, name, length) != 0 || line[length] != ' ')
			continue;
		line += length + 1;
		snprintf(out, size, "%.*s", (int)strcspn(line, "\r\n"), line);
		return true;
	}
	return false;
}

/* The command must be answered by "OK". */
static void demand(struct peer *peer, const char *line)
{
	ask(peer, line);
	if (strcmp(peer->answer, "OK\r\n") == 0)
		return;
	peer->answer[strcspn(peer->answer, "\r\n")] = '\0';
	if (strcmp(peer->answer, "ERROR") == 0)
		arg_die("%s doesn't know the command: it was started without --enable-move", peer->options->server);
	if (strcmp(peer->answer, "NOT_FOUND") == 0)
		arg_die("no move is under way that could be cancelled");
	arg_die("%s answers: %s", peer->options->server, peer->answer);
}

/* ---- commands -------------------------------------------------------------------------------- */

struct state {
	char word[32], path[4096], reason[512], segments[32], copied[32];
};

static void look(struct peer *peer, struct state *state)
{
	ask(peer, "stats flash\r\n");
	if (!find_row(peer, "flash_move", state->word, sizeof(state->word)) ||
	    !find_row(peer, "flash_move_path", state->path, sizeof(state->path)) ||
	    !find_row(peer, "flash_move_reason", state->reason, sizeof(state->reason)) ||
	    !find_row(peer, "flash_move_segments", state->segments, sizeof(state->segments)) ||
	    !find_row(peer, "flash_move_segments_copied", state->copied, sizeof(state->copied)))
		arg_die("%s doesn't tell of moves", peer->options->server);
}

static void show(const struct state *state)
{
	if (strcmp(state->word, "none") == 0)
		printf("none\n");
	else if (strcmp(state->word, "failed") == 0)
		printf("failed: %s: %s\n", state->path, state->reason);
	else
		printf("%s: %s: %s of %s segments\n", state->word, state->path, state->copied, state->segments);
	fflush(stdout);
}

static int show_status(struct peer *peer)
{
	struct state state;

	look(peer, &state);
	show(&state);
	return 0;
}

/* Shows each change until the move is over. */
static int wait_for_end(struct peer *peer)
{
	const struct timespec pause = { .tv_nsec = LOOK_EVERY_MS * 1000000L };
	struct state state, shown = { .word = "" };

	for (;;) {
		look(peer, &state);
		if (strcmp(state.word, shown.word) != 0 || strcmp(state.copied, shown.copied) != 0)
			show(&state);
		if (strcmp(state.word, "done") == 0)
			return 0;
		if (strcmp(state.word, "failed") == 0 || strcmp(state.word, "cancelled") == 0)
			return EXIT_WRONG;
		shown = state;
		nanosleep(&pause, NULL);
	}
}

static int begin_move(struct peer *peer, const char *path)
{
	uint64_t size = 0, rate;
	char line[4096 + 64];
	int length;

	if (path[0] != '/' || strpbrk(path, " \t\r\n"))
		arg_die("\"%s\" is not an absolute path without spaces", path);
	if (peer->options->size)
		size = arg_size("--size", peer->options->size, 128 << 10, UINT64_C(1) << 54);
	length = snprintf(line, sizeof(line), "flash_move %s %" PRIu64, path, size);
	if (peer->options->rate) {
		rate = arg_size("--rate", peer->options->rate, 0, UINT64_C(1) << 50);
		length += snprintf(line + length, sizeof(line) - (size_t)length, " %" PRIu64, rate);
	}
	if ((size_t)length + 2 >= sizeof(line))
		arg_die("the path is too long");
	memcpy(line + length, "\r\n", 3);
	demand(peer, line);
	return peer->options->no_wait ? 0 : wait_for_end(peer);
}

int main(int argc, char **argv)
{
	struct options options = { .server = "127.0.0.1:11211", .timeout_us = 5000000 };
	const struct arg_option rows[] = {
		ARG("server", ARG_TEXT, &options.server),
		ARG("size", ARG_TEXT, &options.size),
		ARG("rate", ARG_TEXT, &options.rate),
		ARG("no-wait", ARG_ON, &options.no_wait),
		ARG("timeout", ARG_TIME_US, &options.timeout_us, .low = 1e3, .high = 3600e6),
		ARGS_END,
	};
	static struct peer peer;
	int first = args_parse(argc, argv, rows, help), code;
	char error[256];

	if (argc - first != 2 || strcmp(argv[first], "move") != 0)
		arg_die("\"move NEW\", \"move status\" or \"move cancel\" is needed; see --help");
	peer.options = &options;
	if (connect_server(options.server, (uint64_t)options.timeout_us, &peer.fd, error) != FS_OK)
		arg_die("%s", error);
	if (strcmp(argv[first + 1], "status") == 0) {
		code = show_status(&peer);
	} else if (strcmp(argv[first + 1], "cancel") == 0) {
		demand(&peer, "flash_move cancel\r\n");
		code = 0;
	} else {
		code = begin_move(&peer, argv[first + 1]);
	}
	close(peer.fd);
	return code;
}
