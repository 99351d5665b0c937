/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/real_inspect.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TOOL "flashield-inspect"

/* In the daemon's folder. False: not there. */
static bool find_tool(const struct bench *bench, char path[4096])
{
	const char *slash = strrchr(bench->options->flashield, '/');
	int folder = slash ? (int)(slash + 1 - bench->options->flashield) : 0;

	return snprintf(path, 4096, "%.*s%s", folder, bench->options->flashield, TOOL) < 4096 &&
	       access(path, X_OK) == 0;
}

static pid_t start(const char *path, const char *flash_path, int *output)
{
	int pipes[2];
	pid_t pid;

	if (pipe(pipes) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		execl(path, TOOL, flash_path, "verify", (char *)NULL);
		_exit(2);
	}
	close(pipes[1]);
	if (pid < 0)
		close(pipes[0]);
	else
		*output = pipes[0];
	return pid;
}

/* Reads to the end; the last line that is not empty stays. */
static void read_summary(int fd, struct inspection *out)
{
	FILE *lines = fdopen(fd, "r");
	char line[sizeof(out->summary)];

	out->summary[0] = 0;
	if (!lines) {
		close(fd);
		return;
	}
	while (fgets(line, sizeof(line), lines)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0])
			memcpy(out->summary, line, sizeof(line));
	}
	fclose(lines);
}

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int inspect_verify(const struct bench *bench, const char *flash_path, struct inspection *out)
{
	double started = now_seconds();
	char path[4096];
	int output, status;
	pid_t pid;

	if (!find_tool(bench, path))
		return FS_ENOTFOUND;
	pid = start(path, flash_path, &output);
	if (pid < 0)
		return FS_ESYS;
	read_summary(output, out);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
		return FS_ESYS;
	out->seconds = now_seconds() - started;
	out->passed = WEXITSTATUS(status) == 0;
	return FS_OK;
}
