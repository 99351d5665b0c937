/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flashield-admin: asks a running daemon for work that takes long, and shows how far it is. The daemon does the work, whether
 * or not this program goes on.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/common/args.h"
#include "tools/common/session.h"

#define LOOK_EVERY_MS 500

static const char help[] =
	"Usage: flashield-admin [OPTION]... move NEW\n"
	"       flashield-admin [OPTION]... move status|cancel\n"
	"Moves the flash of a running Flashield, which has the option enable-move, to another file or device\n"
	"while it serves. NEW is its path for the daemon, and absolute. A file is made if it is missing.\n"
	"Then the next start of the daemon needs NEW as its flash-path.\n"
	"\n"
	"  --server S           HOST:PORT, or the path of a unix socket  (127.0.0.1:11211)\n"
	"  --size SIZE          of the new flash  (that of the present file or device, or of the old flash)\n"
	"  --rate SIZE          most bytes per second to copy; 0: no limit  (the daemon's move-rate)\n"
	"  --no-wait            don't wait for the end of the move\n"
	"  --timeout T          for a connection and for an answer  (5s)\n" ACCESS_HELP "  --help  --version\n"
	"\n"
	"Sizes take k, m, g, t (powers of 1024), times us, ms, s, m, h, d.\n"
	"Exit status: 0 the flash has moved, or what was asked for is done; 1 the move has failed or was\n"
	"cancelled, and the flash is where it was; 2 bad usage, or the daemon can't be asked.\n";

struct options {
	const char *server;
	const char *size, *rate;
	bool no_wait;
	int64_t timeout_us;
	struct access access;
};

/* ---- the daemon ------------------------------------------------------------------------------ */

struct peer {
	const struct options *options;
	struct session session;
};

/* Asks a command, and returns the first line of the answer. It is valid until the next line is read. */
static char *ask(struct peer *peer, const char *command)
{
	size_t length;

	session_put(&peer->session, command, strlen(command));
	session_put(&peer->session, "\r\n", 2);
	return session_line(&peer->session, &length);
}

/* The command must be answered by "OK". */
static void demand(struct peer *peer, const char *command)
{
	const char *server = peer->options->server, *answer = ask(peer, command);
	char said[CLIENT_ERROR_BYTES];

	if (strcmp(answer, "OK") == 0)
		return;
	if (strcmp(answer, "ERROR") == 0)
		arg_die("%s doesn't know the command: it was started without --enable-move", server);
	if (strcmp(answer, "NOT_FOUND") == 0)
		arg_die("no move is under way that could be cancelled");
	client_quote(answer, strlen(answer), said, sizeof(said));
	arg_die("%s answers: %s", server, said);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* The rows of "stats flash" about the last move. An empty text: the daemon has none. */
struct state {
	char word[32], path[4096], reason[512], segments[32], copied[32];
};

static void take_row(struct state *state, const char *line)
{
	const struct {
		const char *name;
		char *out;
		size_t size;
	} rows[] = {
		{ "STAT flash_move ", state->word, sizeof(state->word) },
		{ "STAT flash_move_path ", state->path, sizeof(state->path) },
		{ "STAT flash_move_reason ", state->reason, sizeof(state->reason) },
		{ "STAT flash_move_segments ", state->segments, sizeof(state->segments) },
		{ "STAT flash_move_segments_copied ", state->copied, sizeof(state->copied) },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strncmp(line, rows[i].name, strlen(rows[i].name)) == 0)
			snprintf(rows[i].out, rows[i].size, "%s", line + strlen(rows[i].name));
}

static void look(struct peer *peer, struct state *state)
{
	const char *line = ask(peer, "stats flash");
	char said[CLIENT_ERROR_BYTES];
	size_t length;

	*state = (struct state){ .word = "" };
	for (; strncmp(line, "STAT ", 5) == 0; line = session_line(&peer->session, &length))
		take_row(state, line);
	client_quote(line, strlen(line), said, sizeof(said));
	if (strcmp(said, "END") != 0 && strcmp(said, "ERROR") != 0)
		arg_die("%s answers: %s", peer->options->server, said);
	if (!*state->word || !*state->path || !*state->reason || !*state->segments || !*state->copied)
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
	if ((size_t)length >= sizeof(line))
		arg_die("the path is too long");
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
		ACCESS_ARGS(&options.access),
		ARGS_END,
	};
	static struct peer peer;
	int first = args_parse(argc, argv, rows, help), code;

	if (argc - first != 2 || strcmp(argv[first], "move") != 0)
		arg_die("\"move NEW\", \"move status\" or \"move cancel\" is needed; see --help");
	peer.options = &options;
	access_open(&options.access);
	session_open(&peer.session, &options.access, options.server, (uint64_t)options.timeout_us);
	if (strcmp(argv[first + 1], "status") == 0) {
		code = show_status(&peer);
	} else if (strcmp(argv[first + 1], "cancel") == 0) {
		demand(&peer, "flash_move cancel");
		code = 0;
	} else {
		code = begin_move(&peer, argv[first + 1]);
	}
	session_close(&peer.session);
	access_close(&options.access);
	return code;
}
