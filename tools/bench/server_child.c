/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/server_internal.h"

/* Between fork and exec the child stops at `gate` until the parent has opened its counters: a counter is
   inherited only by threads that start after it. `report` closes on exec; what comes out of it before
   is the errno of what failed. */
struct handshake {
	int gate[2], report[2];
};

static void limits_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit); /* the server complains itself if it has too few */
	}
}

static int descriptors_point(const char *log_path)
{
	int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (log < 0 || null < 0)
		return -1;
	return dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ? -1 : 0;
}

static int pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* Never returns. */
static void child_main(const struct server *server, const struct command *command, int cpu, pid_t parent,
		       const struct handshake *handshake)
{
	char go;
	int failed;

	/* The parent may have died before the signal was asked for; then nobody would ever send it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	close(handshake->gate[1]);
	while (read(handshake->gate[0], &go, 1) < 0 && errno == EINTR)
		continue;
	if (getppid() != parent)
		_exit(1);
	limits_raise();
	for (unsigned i = 0; i < command->environment; i++)
		putenv(command->words[i]);
	if (pin(cpu) == 0 && descriptors_point(server->log_path) == 0)
		execvp(command->words[command->environment], command->words + command->environment);
	failed = errno;
	if (write(handshake->report[1], &failed, sizeof(failed)) < 0)
		_exit(1);
	_exit(1);
}

/* Waits for the exec. 0, or the errno of what failed. */
static int outcome(int report_fd)
{
	int failed;
	ssize_t got;

	do
		got = read(report_fd, &failed, sizeof(failed));
	while (got < 0 && errno == EINTR);
	return got == sizeof(failed) ? failed : 0;
}

static void handshake_close(const struct handshake *handshake)
{
	for (int i = 0; i < 2; i++) {
		if (handshake->gate[i] >= 0)
			close(handshake->gate[i]);
		if (handshake->report[i] >= 0)
			close(handshake->report[i]);
	}
}

int child_start(struct server *server, const struct command *command, int cpu)
{
	struct handshake handshake = { { -1, -1 }, { -1, -1 } };
	pid_t parent = getpid();
	int failed = 0, code = FS_ESYS, status;

	if (pipe2(handshake.gate, O_CLOEXEC) != 0 || pipe2(handshake.report, O_CLOEXEC) != 0)
		goto out;
	server->pid = fork();
	if (server->pid < 0)
		goto out;
	if (server->pid == 0)
		child_main(server, command, cpu, parent, &handshake);
	server->perf_fd = measure_open_instructions(server->pid);
	close(handshake.gate[1]); /* its end of file lets the child go on */
	handshake.gate[1] = -1;
	close(handshake.report[1]);
	handshake.report[1] = -1;
	failed = outcome(handshake.report[0]);
	code = failed == 0 ? 0 : failed == ENOENT ? FS_ENOTFOUND : FS_ESYS;
	if (failed) {
		child_wait(server->pid, -1, &status);
		server->pid = 0;
	}
out:
	if (failed == 0 && code != 0)
		failed = errno;
	if (code != 0)
		fprintf(stderr, "flashield-bench: can't start %s: %s\n", command->words[command->environment],
			strerror(failed));
	handshake_close(&handshake);
	return code;
}

bool child_wait(pid_t pid, int timeout_ms, int *status)
{
	struct pollfd ended = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	int ready;

	if (ended.fd >= 0) {
		do
			ready = poll(&ended, 1, timeout_ms);
		while (ready < 0 && errno == EINTR);
		close(ended.fd);
	}
	return waitpid(pid, status, timeout_ms < 0 ? 0 : WNOHANG) == pid;
}
