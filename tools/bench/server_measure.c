/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/server_internal.h"

uint64_t server_cpu_ns(const struct server *server)
{
	struct timespec used;
	clockid_t clock;

	if (server->pid <= 0 || clock_getcpuclockid(server->pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

int measure_open_instructions(pid_t pid)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.inherit = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		/* Where only user mode may be counted (perf_event_paranoid), that is better than nothing:
		   it is the same for every server. */
		attributes.exclude_kernel = 1;
		attributes.exclude_hv = 1;
		fd = syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return (int)fd;
}

bool server_instructions(const struct server *server, uint64_t *count)
{
	*count = 0;
	return server->perf_fd >= 0 && read(server->perf_fd, count, sizeof(*count)) == sizeof(*count);
}

/* A figure of /proc/PID/<file>: the number behind "name:". 0 when it can't be read. */
static uint64_t proc_figure(pid_t pid, const char *file, const char *name)
{
	char path[64], line[256];
	size_t length = strlen(name);
	uint64_t figure = 0;
	FILE *in;

	if (pid <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	in = fopen(path, "re");
	if (!in)
		return 0;
	while (fgets(line, sizeof(line), in)) {
		if (strncmp(line, name, length) == 0 && line[length] == ':') {
			figure = strtoull(line + length + 1, NULL, 10);
			break;
		}
	}
	fclose(in);
	return figure;
}

uint64_t server_resident_bytes(const struct server *server)
{
	return proc_figure(server->pid, "status", "VmRSS") * 1024;
}

uint64_t server_peak_bytes(const struct server *server)
{
	return proc_figure(server->pid, "status", "VmHWM") * 1024;
}

uint64_t server_written_bytes(const struct server *server)
{
	return proc_figure(server->pid, "io", "write_bytes");
}

void server_drop_cache(const struct server *server)
{
	int fd;

	if (!server->flash_path[0])
		return;
	fd = open(server->flash_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* Dirty pages can't be dropped, hence the sync. A failure of either leaves the cache warm, which
	   the server's own figures show; there is nothing to do about it here. */
	if (fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
		fprintf(stderr, "flashield-bench: the page cache of %s can't be dropped\n", server->flash_path);
	close(fd);
}
