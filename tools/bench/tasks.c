/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/tasks.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sum over the threads' files of this name. A thread that has just ended counts nothing. */
static uint64_t sum(pid_t pid, const char *file, uint64_t (*figure)(FILE *in))
{
	struct dirent *entry;
	uint64_t total = 0;
	char path[320];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		FILE *in;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", (int)pid, entry->d_name, file);
		in = fopen(path, "re");
		if (!in)
			continue;
		total += figure(in);
		fclose(in);
	}
	if (tasks)
		closedir(tasks);
	return total;
}

/* "ran waited slices" */
static uint64_t schedstat_waited(FILE *in)
{
	unsigned long long waited_ns;

	return fscanf(in, "%*u %llu", &waited_ns) == 1 ? waited_ns : 0;
}

static uint64_t status_sleeps(FILE *in)
{
	static const char name[] = "voluntary_ctxt_switches:";
	char line[256];

	while (fgets(line, sizeof(line), in))
		if (strncmp(line, name, sizeof(name) - 1) == 0)
			return strtoull(line + sizeof(name) - 1, NULL, 10);
	return 0;
}

uint64_t tasks_waited_ns(pid_t pid)
{
	return sum(pid, "schedstat", schedstat_waited);
}

uint64_t tasks_sleeps(pid_t pid)
{
	return sum(pid, "status", status_sleeps);
}
