/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of the store that ends by SIGKILL, in a process of its own: what it leaves in files is all that there is. */
#ifndef FS_TESTS_STORE_KILLED_CHILD_H
#define FS_TESTS_STORE_KILLED_CHILD_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/server/store/harness.h"

/* Runs the work in a child, which is killed when the work returns, if not before. */
static inline void run_in_killed_child(struct harness *h, void (*work)(struct harness *h))
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		work(h);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

#endif
