/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of server.h share: command lines, the child, its drive, its watchdog, its counters, its answers. */
#ifndef FS_TOOLS_BENCH_SERVER_INTERNAL_H
#define FS_TOOLS_BENCH_SERVER_INTERNAL_H

#include "tools/bench/server.h"

/* --- server_command.c: the command line --- */

#define COMMAND_WORDS 96
#define COMMAND_BYTES 4096

/* Words for exec, kept in text. Threads: one. */
struct command {
	char *words[COMMAND_WORDS + 1]; /* ends with NULL */
	unsigned count;
	unsigned environment; /* so many of the first are NAME=VALUE, as in a shell's line */
	char text[COMMAND_BYTES];
	size_t used;
};

/* The words that start the server as its spec says. FS_EINVAL: it has more than fits. */
FS_MUST_CHECK int command_build(struct command *command, const struct server *server,
				const struct bench_options *options);
/* The words with blanks between, as one reads them in a report; cut off at out's end. */
void command_describe(const struct command *command, char *out, size_t out_bytes);

/* --- server_child.c: the process --- */

/* Forks and executes; sets pid and perf_fd. FS_ENOTFOUND: there is no such program; FS_ESYS. */
FS_MUST_CHECK int child_start(struct server *server, const struct command *command, int cpu);
/* Waits for the child's end for at most timeout_ms. True, and its wait status, when it has ended (it is
   reaped then). */
bool child_wait(pid_t pid, int timeout_ms, int *status);

/* --- server_drive.c: the emulated drive --- */

/* Makes the control file drive_path and maps it as drive. FS_ESYS, with a line on standard error. */
FS_MUST_CHECK int drive_create(struct server *server);
/* Is it in effect in the process? FS_ESYS, with a line on standard error, if not. */
FS_MUST_CHECK int drive_check(const struct server *server);
/* Sets all settings to 0, so that nothing is held any more. */
void drive_release(struct server *server);
/* Removes file and mapping, if there are any. */
void drive_destroy(struct server *server);

/* --- server_watchdog.c: the service manager's part --- */

/* Makes the socket that the server is to tell its state. FS_ESYS, with a line on standard error. */
FS_MUST_CHECK int watchdog_create(struct server *server);
void watchdog_destroy(struct server *server);

/* --- server_measure.c --- */

/* Opens the instruction counter of a child that waits before its exec; -1 where there is none. */
int measure_open_instructions(pid_t pid);

/* --- server_ask.c: the connection for questions, kept in stats_fd --- */

/* Tries once to connect and to learn the version. FS_EAGAIN: nothing listens yet. */
FS_MUST_CHECK int ask_version(struct server *server);
void ask_close(struct server *server);

#endif
