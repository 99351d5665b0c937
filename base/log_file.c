/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"

#define MODE 0640

static char *file_path; /* from the root; NULL: the log is no file */
static int old_error = -1; /* the standard error before; -1: closed */

static int say_failure(const char *path, char reason[256])
{
	int error = errno;

	snprintf(reason, 256, "--log-file: %.180s: %s", path, strerror(error));
	errno = error;
	return FS_ESYS;
}

/* Returns the file, made for this user if it is missing, or -1. */
static int open_file(const char *path, uid_t user, gid_t group)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, MODE);

	if (fd < 0)
		return errno == EEXIST ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY) : -1;
	if (geteuid() == 0 && user != 0 && fchown(fd, user, group) != 0)
		log_warn("--log-file: %s can't be given to the user: %m", path);
	return fd;
}

static char *path_from_root(const char *path)
{
	char *folder = *path == '/' ? NULL : getcwd(NULL, 0), *whole;

	if (asprintf(&whole, "%s%s%s", folder ? folder : "", folder ? "/" : "", path) < 0)
		whole = NULL;
	must(whole);
	free(folder);
	return whole;
}

int log_file_open(const char *path, uid_t user, gid_t group, char reason[256])
{
	int fd = open_file(path, user, group);

	if (fd < 0)
		return say_failure(path, reason);
	old_error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (dup2(fd, STDERR_FILENO) < 0) {
		close(fd);
		return say_failure(path, reason);
	}
	close(fd);
	file_path = path_from_root(path);
	log_leave_journal();
	return FS_OK;
}

bool log_file_is_open(void)
{
	return file_path != NULL;
}

void log_file_tell(const char *line)
{
	if (old_error >= 0 && dprintf(old_error, "%s\n", line) < 0) {
		/* There is nobody left to tell. */
	}
}

void log_file_settle(void)
{
	if (old_error >= 0)
		close(old_error);
	old_error = -1;
}

int log_file_reopen(char reason[256])
{
	int fd;

	if (!file_path)
		return FS_OK;
	fd = open_file(file_path, geteuid(), getegid());
	if (fd < 0)
		return say_failure(file_path, reason);
	if (dup2(fd, STDERR_FILENO) < 0) {
		close(fd);
		return say_failure(file_path, reason);
	}
	close(fd);
	return FS_OK;
}

int log_file_check(const char *path, char reason[256])
{
	const char *slash = strrchr(path, '/');
	char *folder;
	bool good = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;

	if (!good && errno == ENOENT) {
		folder = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
		must(folder);
		good = faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
		free(folder);
	}
	return good ? FS_OK : say_failure(path, reason);
}
