/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a daemon does with its process: background, user, limits, memory, pid file. All as memcached does it, but
 * for these: with -d the parent stays until the daemon serves, so that what goes wrong at the
 * start is seen and is the exit code; -k locks pages when they are used, instead of all at once, and raises
 * the limit on locked memory where it may; a pid file that tells another by now is not removed.
 *
 * Threads: the main thread, before others start, but for process_remove_pid.
 */
#ifndef FS_SERVER_PROCESS_H
#define FS_SERVER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

struct conf;

struct process {
	const struct conf *conf;
	bool switch_user;
	uid_t uid;
	gid_t gid;
	int ready_fd; /* -d: told when the daemon serves; else -1 */
	char *pid_path; /* absolute; NULL when none was written */
};

/* Finds the user and goes into the background (the parent does not return from here). 0 or an exit
   code, the reason having been told on standard error. */
int process_prepare(struct process *process, const struct conf *conf);
/* -L: starts the program anew, once, with malloc told to use large pages, which it only takes at the start. Returns
   when there is nothing to do, or it can't be done (said in the log). argv is main's. */
void process_use_large_pages(const struct conf *conf, char **argv);
/* Drops root, and what capabilities there are, for good (privileges.h); -k and -r come into effect, whose limits were raised before. 0 or -1 with a reason; that memory can't
   be locked is only a warning. */
int process_become_user(struct process *process, char reason[256]);
/* Like memcached, goes on without a pid file that can't be written, and over one of a living process; each is a
   warning in the log. */
void process_write_pid(struct process *process);
void process_remove_pid(struct process *process);
/* -d: lets the parent go, with exit code 0, and closes standard input and output. */
void process_detach_done(struct process *process);

#endif
