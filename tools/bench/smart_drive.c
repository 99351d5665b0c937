/* SPDX-License-Identifier: BSD-3-Clause */
/* Which drive lies below, and asking it: smartctl and nvme as child processes, their JSON through a pipe. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "tools/bench/smart.h"

#define OUTPUT_BYTES (1u << 20) /* smartctl prints some 10 kB */
#define LEVELS_MOST 8u /* of mappings on mappings */
#define SYSFS_PATH_BYTES (PATH_MAX + 64)

/* ---- the drive below ------------------------------------------------------------------------- */

/* Entries of a directory, 0 if it isn't there; name has the last one. */
static unsigned count_entries(const char *path, char name[SMART_NAME_BYTES])
{
	DIR *directory = opendir(path);
	const struct dirent *entry;
	unsigned count = 0;

	if (!directory)
		return 0;
	while ((entry = readdir(directory)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		snprintf(name, SMART_NAME_BYTES, "%.*s", SMART_NAME_BYTES - 1, entry->d_name);
	}
	closedir(directory);
	return count;
}

static bool has_entry(const char *directory, const char *name)
{
	char path[SYSFS_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return access(path, F_OK) == 0;
}

/* A partition's directory lies in its drive's. */
static void leave_partition(char directory[PATH_MAX])
{
	if (has_entry(directory, "partition"))
		*strrchr(directory, '/') = '\0';
}

int smart_find_drive(const char *sysfs, unsigned major, unsigned minor, char name[SMART_NAME_BYTES])
{
	char link[SYSFS_PATH_BYTES], directory[PATH_MAX], slaves[SYSFS_PATH_BYTES], below[SMART_NAME_BYTES];

	snprintf(link, sizeof(link), "%s/dev/block/%u:%u", sysfs, major, minor);
	for (unsigned level = 0; level < LEVELS_MOST; level++) {
		unsigned count;

		if (!realpath(link, directory))
			return FS_ENOTFOUND;
		leave_partition(directory);
		/* What a mapping (dm, md) lies on stands in "slaves". Several drives have no common counters. */
		snprintf(slaves, sizeof(slaves), "%s/slaves", directory);
		count = count_entries(slaves, below);
		if (count > 1)
			return FS_ENOTFOUND;
		if (count == 0) {
			snprintf(name, SMART_NAME_BYTES, "%s", strrchr(directory, '/') + 1);
			return FS_OK;
		}
		snprintf(link, sizeof(link), "%s/class/block/%s", sysfs, below);
	}
	return FS_ENOTFOUND;
}

/* ---- asking it ------------------------------------------------------------------------------- */

/* Reads to the end; what doesn't fit is read and left out, so that the writer never waits. */
static void read_all(int fd, char *output)
{
	char beyond[4096];
	size_t used = 0;

	for (;;) {
		bool fits = used < OUTPUT_BYTES - 1;
		ssize_t n = fits ? read(fd, output + used, OUTPUT_BYTES - 1 - used) : read(fd, beyond, sizeof(beyond));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (fits)
			used += (size_t)n;
	}
	output[used] = '\0';
}

/* smartctl is for root and lies where only root's PATH may lead. */
static int spawn(pid_t *pid, const posix_spawn_file_actions_t *actions, char *const *arguments)
{
	static const char *const folders[] = { "/usr/sbin", "/usr/local/sbin", "/sbin" };
	int error = posix_spawnp(pid, arguments[0], actions, NULL, arguments, environ);

	for (size_t i = 0; error != 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/%s", folders[i], arguments[0]);
		error = posix_spawn(pid, path, actions, NULL, arguments, environ);
	}
	return error;
}

/* What a program prints. FS_ENOTFOUND if it can't be started. Its exit status says nothing here. */
static int run(char *const *arguments, char *output)
{
	posix_spawn_file_actions_t actions;
	int ends[2], error, status;
	pid_t pid;

	output[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) != 0)
		return FS_ESYS;
	/* These fail for want of memory only. */
	must(posix_spawn_file_actions_init(&actions) == 0);
	must(posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0);
	must(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) == 0);
	must(posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0);
	error = spawn(&pid, &actions, arguments);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (error == 0) {
		read_all(ends[0], output);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return error == 0 ? FS_OK : FS_ENOTFOUND;
}

/* sysfs writes '/' in a name as '!'. */
static void device_path(const char *name, char path[SMART_NAME_BYTES + 8])
{
	snprintf(path, SMART_NAME_BYTES + 8, "/dev/%s", name);
	for (char *c = path; *c; c++)
		if (*c == '!')
			*c = '/';
}

int smart_read(const char *name, struct smart_counters *counters, char *why)
{
	char path[SMART_NAME_BYTES + 8], smartctl[] = "smartctl", json[] = "--json", info[] = "-i", attributes[] = "-A",
					 nvme[] = "nvme", ocp[] = "ocp", log[] = "smart-add-log", o[] = "-o",
					 word[] = "json";
	char *ask_smartctl[] = { smartctl, json, info, attributes, path, NULL };
	char *ask_nvme[] = { nvme, ocp, log, path, o, word, NULL };
	char *output = mem_must_zalloc(OUTPUT_BYTES);
	int rc;

	smart_clear(counters);
	why[0] = '\0';
	device_path(name, path);
	rc = run(ask_smartctl, output);
	if (rc != FS_OK) {
		snprintf(why, SMART_WHY_BYTES, "smartctl isn't installed (package smartmontools)");
		goto out;
	}
	rc = smart_parse_smartctl(output, counters, why);
	/* Plain NVMe counts the host's writes only. A drive, or an nvme program, that doesn't know the
	   Open Compute log leaves it at that. */
	if (rc == FS_OK && strncmp(name, "nvme", 4) == 0 && run(ask_nvme, output) == FS_OK &&
	    smart_parse_ocp(output, counters) != FS_OK)
		snprintf(why, SMART_WHY_BYTES, "the drive has no Open Compute log");
out:
	mem_free(output);
	return rc;
}
