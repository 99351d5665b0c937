/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/base/base_test.h"

int run_in_child(void (*function)(void), char *text, size_t text_bytes)
{
	int ends[2], status = 0;
	size_t length = 0;
	ssize_t got;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL); /* cmocka catches it */
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		function();
		_exit(0);
	}
	close(ends[1]);
	while (length + 1 < text_bytes && (got = read(ends[0], text + length, text_bytes - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}
