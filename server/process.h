/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's process: background, user, limits, memory, pid file. It is done as in memcached, except that
 *
 *   - with -d the parent stays until the daemon serves, so that an error of the start is seen and sets the exit code;
 *   - -k locks pages when they are first used, not all at once, and raises the limit on locked memory where it may;
 *   - a pid file that names another process by now is not removed.
 *
 * Threads: the main thread. All functions except process_detach_done and process_remove_pid are called before other
 * threads start.
 */
#ifndef FS_SERVER_PROCESS_H
#define FS_SERVER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct conf;

/* The main thread's. */
struct process {
	const struct conf *conf;
	bool switch_user; /* the process is root, and becomes uid and gid */
	uid_t uid;
	gid_t gid;
	int ready_fd; /* -d: the parent learns from it that the daemon serves; else -1 */
	char *pid_path; /* absolute; NULL when no pid file was written */
};

/* Fills *process: finds the user, and goes into the background (the parent does not return from here). Returns 0, or an
   exit code of sysexits.h after the reason was written to standard error. */
FS_MUST_CHECK int process_prepare(struct process *process, const struct conf *conf);
/* -L: starts the program anew, once, with malloc's setting for large pages, which malloc reads only at its start.
   Returns if there is nothing to do, or if that fails, which the log tells. argv is main's. */
void process_use_large_pages(const struct conf *conf, char **argv);
/* Drops root and all capabilities for good (privileges.h). Raises the limits for -k and -r before that, and puts both
   into effect. Returns 0, or -1 with a reason; memory that can't be locked is only a warning. */
FS_MUST_CHECK int process_become_user(struct process *process, char reason[256]);
/* Writes the pid file. A file that can't be written, and one that names a running process and is replaced, are warnings
   in the log, as in memcached. */
void process_write_pid(struct process *process);
/* Removes the pid file if it still names this process. */
void process_remove_pid(struct process *process);
/* -d: lets the parent exit with code 0, and closes standard input and output. */
void process_detach_done(struct process *process);
/* Returns true if the log is a file or the system's log by now: what was told before is on standard error alone. */
bool process_log_moved(const struct process *process);

#endif
