/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a daemon does with its process: background, user, pid file. All as memcached does it, but
 * for one thing: with -d the parent stays until the daemon serves, so that what goes wrong at the
 * start is seen and is the exit code.
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
	int ready_fd;	/* -d: told when the daemon serves; else -1 */
	char *pid_path; /* absolute; NULL when none was written */
};

/* Finds the user and goes into the background (the parent does not return from here). 0 or an exit
   code, the reason having been told on standard error. */
int process_prepare(struct process *process, const struct conf *conf);
/* Drops root for good. 0 or -1 with a reason. */
int process_become_user(struct process *process, char reason[256]);
int process_write_pid(struct process *process, char reason[256]);
void process_remove_pid(struct process *process);
/* -d: lets the parent go, with exit code 0, and closes standard input and output. */
void process_detach_done(struct process *process);

#endif
