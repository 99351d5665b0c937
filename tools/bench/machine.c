/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/text.h"

#define LINE_BYTES 4096

/* The first line of a file, or the rest after `label` of the first line that starts with it. */
static void line_of(const char *path, const char *label, char out[LINE_BYTES])
{
	char line[LINE_BYTES];
	FILE *in = fopen(path, "r");

	snprintf(out, LINE_BYTES, "unknown");
	while (in && fgets(line, sizeof(line), in)) {
		const char *start = line + strlen(label);

		if (strncmp(line, label, strlen(label)) != 0)
			continue;
		start += strspn(start, " \t:");
		snprintf(out, LINE_BYTES, "%.*s", (int)strcspn(start, "\n"), start);
		break;
	}
	if (in)
		fclose(in);
}

unsigned machine_cpus(void)
{
	cpu_set_t allowed;

	return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? (unsigned)CPU_COUNT(&allowed) : 1;
}

static bool lies_below(const char *path, const char *mount)
{
	size_t length = strlen(mount);

	return strncmp(path, mount, length) == 0 && (mount[length - 1] == '/' || path[length] == '/' || !path[length]);
}

/* "ext4 on /dev/vda1": of the last mount over the longest part of the directory's path. */
static void file_system_of(const char *directory, char out[LINE_BYTES])
{
	char line[LINE_BYTES], mount[1024], type[64], source[1024];
	char *path = realpath(directory, NULL), *rest;
	FILE *in = fopen("/proc/self/mountinfo", "r");
	size_t longest = 0;

	snprintf(out, LINE_BYTES, "unknown");
	while (path && in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%*s %*s %*s %*s %1023s", mount) != 1 || !lies_below(path, mount) ||
		    strlen(mount) < longest)
			continue;
		rest = strstr(line, " - ");
		if (!rest || sscanf(rest, " - %63s %1023s", type, source) != 2)
			continue;
		longest = strlen(mount);
		snprintf(out, LINE_BYTES, "%s on %s", type, source);
	}
	if (in)
		fclose(in);
	free(path);
}

void machine_about(const struct bench *bench)
{
	const struct bench_options *options = bench->options;
	char line[LINE_BYTES], text[TEXT_BYTES];
	struct utsname kernel;
	time_t now = time(NULL);
	struct tm local;

	if (strftime(line, sizeof(line), "%F %T %z", localtime_r(&now, &local)) > 0)
		figures_about(bench->figures, "date", "%s", line);
	line_of("/proc/cpuinfo", "model name", line);
	figures_about(bench->figures, "machine", "%s, %ld cores of which this run may use %u, %s of memory", line,
		      sysconf(_SC_NPROCESSORS_ONLN), machine_cpus(),
		      text_size((double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE), text));
	if (uname(&kernel) == 0)
		figures_about(bench->figures, "kernel", "%s %s %s", kernel.sysname, kernel.release, kernel.machine);
	file_system_of(options->directory, line);
	figures_about(bench->figures, "flash files", "in %s: %s", options->directory, line);
	line_of("/proc/loadavg", "", line);
	figures_about(bench->figures, "load average", "%.*s at the start", (int)strcspn(line, "/") - 2, line);
	if (options->server_cpu >= 0)
		figures_about(bench->figures, "CPUs", "servers on %d, load generator on %d", options->server_cpu,
			      options->load_cpu);
	else
		figures_about(bench->figures, "CPUs", "unpinned");
	figures_about(bench->figures, "run", "scale %g, %u rounds", options->scale, options->rounds);
}
