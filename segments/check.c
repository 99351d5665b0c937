/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at the file or block device of --flash-path without changing or locking it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "segments/device_internal.h"

/* The folder of a file that is still to be made must allow that. */
static int check_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
	bool writable = folder && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
	int error = folder ? errno : ENOMEM;

	free(folder);
	errno = error;
	return writable ? FS_OK : FS_ESYS;
}

static int check_contents(int fd, bool takes_extstore)
{
	uint8_t *start = mem_zalloc(DEV_START_BYTES);
	uint64_t at = 0;
	bool foreign;

	if (!start)
		return FS_ENOMEM;
	while (at < DEV_START_BYTES) {
		ssize_t n = pread(fd, start + at, DEV_START_BYTES - at, (off_t)at);

		if (n <= 0)
			break; /* a part that can't be read counts as empty, as at the start */
		at += (uint64_t)n;
	}
	foreign = super_foreign(start);
	mem_free(start);
	if (extstore_left(fd))
		foreign = !takes_extstore;
	return foreign ? FS_EFOREIGN : FS_OK;
}

int seg_check_path(const char *path, bool takes_extstore)
{
	struct stat st;
	int fd, code;

	if (stat(path, &st) != 0)
		return errno == ENOENT ? check_folder(path) : FS_ESYS;
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return FS_EINVAL;
	if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0)
		return FS_ESYS;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return FS_ESYS;
	code = check_contents(fd, takes_extstore);
	close(fd);
	return code;
}
