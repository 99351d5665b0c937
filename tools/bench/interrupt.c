/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/bench/bench.h"

static volatile sig_atomic_t interrupted;
static char children_path[64]; /* lists pids, each followed by a blank */

bool bench_interrupted(void)
{
	return interrupted;
}

/* Only what a signal handler may call. */
static void end_children(void)
{
	char text[4096];
	int fd = open(children_path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text));
	pid_t pid = 0;

	for (ssize_t i = 0; i < length; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			pid = pid * 10 + (text[i] - '0');
			continue;
		}
		if (pid > 0)
			kill(pid, SIGTERM);
		pid = 0;
	}
	if (fd >= 0)
		close(fd);
}

static void on_signal(int number)
{
	int error = errno;

	(void)number;
	interrupted = 1;
	end_children();
	errno = error;
}

void interrupt_init(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	snprintf(children_path, sizeof(children_path), "/proc/%d/task/%d/children", getpid(), getpid());
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL); /* the terminal was closed */
}
