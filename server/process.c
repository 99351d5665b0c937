/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "conf/conf.h"

/* ---- background ------------------------------------------------------------------------------ */

/* The parent: waits for the daemon's word, or for its end. Does not return. */
static _Noreturn void wait_for(pid_t child, int fd)
{
	char word;
	int status;
	ssize_t got;

	do
		got = read(fd, &word, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		_exit(EXIT_SUCCESS);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : EX_OSERR);
}

static int detach(struct process *process)
{
	int pipe_fds[2];
	pid_t child;

	if (pipe2(pipe_fds, O_CLOEXEC) != 0 || (child = fork()) < 0) {
		fprintf(stderr, "can't go into the background: %m\n");
		return EX_OSERR;
	}
	if (child > 0) {
		close(pipe_fds[1]);
		wait_for(child, pipe_fds[0]);
	}
	close(pipe_fds[0]);
	process->ready_fd = pipe_fds[1];
	return setsid() < 0 ? EX_OSERR : 0;
}

void process_detach_done(struct process *process)
{
	int null_fd;

	if (process->ready_fd < 0)
		return;
	null_fd = chdir("/") == 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
	if (null_fd >= 0) {
		dup2(null_fd, STDIN_FILENO);
		dup2(null_fd, STDOUT_FILENO);
		if (process->conf->verbose == 0) /* who asked for more wants to see it */
			dup2(null_fd, STDERR_FILENO);
		close(null_fd);
	}
	if (write(process->ready_fd, "", 1) != 1)
		fprintf(stderr, "the parent process has gone\n");
	close(process->ready_fd);
	process->ready_fd = -1;
}

/* ---- user ------------------------------------------------------------------------------------ */

static int find_user(struct process *process)
{
	const struct passwd *user;

	if (getuid() != 0 && geteuid() != 0)
		return 0;
	if (!process->conf->user || !*process->conf->user) {
		fprintf(stderr, "can't run as root without the -u switch\n");
		return EX_USAGE;
	}
	user = getpwnam(process->conf->user);
	if (!user) {
		fprintf(stderr, "can't find the user %s to switch to\n", process->conf->user);
		return EX_NOUSER;
	}
	process->uid = user->pw_uid;
	process->gid = user->pw_gid;
	process->switch_user = true;
	return 0;
}

int process_become_user(struct process *process, char reason[256])
{
	if (!process->switch_user)
		return 0;
	if (initgroups(process->conf->user, process->gid) == 0 && setgid(process->gid) == 0 &&
	    setuid(process->uid) == 0)
		return 0;
	snprintf(reason, 256, "can't become user %s: %m", process->conf->user);
	return -1;
}

int process_prepare(struct process *process, const struct conf *conf)
{
	int exit_code;

	*process = (struct process){ .conf = conf, .ready_fd = -1 };
	exit_code = find_user(process);
	if (exit_code == 0 && conf->daemonize)
		exit_code = detach(process);
	return exit_code;
}

/* ---- pid file -------------------------------------------------------------------------------- */

int process_write_pid(struct process *process, char reason[256])
{
	const char *path = process->conf->pidfile;
	FILE *file;

	if (!path)
		return 0;
	file = fopen(path, "we");
	if (file && fprintf(file, "%ld\n", (long)getpid()) > 0 && fclose(file) == 0) {
		process->pid_path = realpath(path, NULL);
		return 0;
	}
	snprintf(reason, 256, "can't write the pid file %s: %m", path);
	return -1;
}

void process_remove_pid(struct process *process)
{
	if (process->pid_path && unlink(process->pid_path) != 0)
		fprintf(stderr, "can't remove the pid file %s: %m\n", process->pid_path);
	free(process->pid_path);
	process->pid_path = NULL;
}
