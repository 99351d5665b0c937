/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at the file or block device of --flash-path, and at its file system, without changing or locking it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "segments/device_internal.h"
#include "segments/path.h"

#define FIT_STEPS 16u /* seg_fit_bytes */
#define FIT_LEAVES 20u

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

int64_t seg_flash_bytes(const char *path, uint64_t flash_bytes)
{
	uint64_t bytes = 0;
	struct stat st;
	int fd, rc;

	if (stat(path, &st) != 0)
		return errno == ENOENT ? (int64_t)flash_bytes : FS_ESYS;
	if (S_ISREG(st.st_mode))
		return (int64_t)(flash_bytes ? flash_bytes : (uint64_t)st.st_size);
	if (!S_ISBLK(st.st_mode))
		return FS_EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return FS_ESYS;
	rc = ioctl(fd, BLKGETSIZE64, &bytes);
	close(fd);
	if (rc != 0)
		return FS_ESYS;
	return (int64_t)(flash_bytes && flash_bytes < bytes ? flash_bytes : bytes);
}

/* What a file may take of its file system, in bytes. */
struct room {
	uint64_t size, held; /* of the file: its length, and its blocks */
	uint64_t free, all; /* of the file system: what a user may take, and that with what is taken */
};

/* A file's blocks are reserved first, and its size grows as the zeros are written (device_file.c): a file of full size is
   complete. False: the question doesn't arise. */
static bool look_for_room(const char *path, uint64_t flash_bytes, struct room *room)
{
	struct statvfs files;
	struct stat st;
	char folder[4096];

	*room = (struct room){ 0 };
	snprintf(folder, sizeof(folder), "%s", path);
	if (stat(path, &st) == 0) {
		if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size >= flash_bytes)
			return false;
		room->size = (uint64_t)st.st_size;
		room->held = (uint64_t)st.st_blocks * 512;
	} else {
		char *slash = strrchr(folder, '/');

		if (slash)
			slash[slash == folder] = '\0';
		else
			snprintf(folder, sizeof(folder), ".");
	}
	if (statvfs(folder, &files) != 0)
		return false;
	room->free = (uint64_t)files.f_bavail * files.f_frsize;
	room->all = room->free + (uint64_t)(files.f_blocks - files.f_bfree) * files.f_frsize;
	return true;
}

uint64_t seg_free_bytes(const char *path, uint64_t flash_bytes)
{
	struct room room;

	return look_for_room(path, flash_bytes, &room) ? room.held + room.free : UINT64_MAX;
}

uint64_t seg_fit_bytes(const char *path, uint64_t flash_bytes)
{
	uint64_t step = flash_bytes / FIT_STEPS / SEG_PAGE * SEG_PAGE, kept, others, most, fit = 0;
	struct room room;

	if (!look_for_room(path, flash_bytes, &room) || room.held + room.free >= flash_bytes || step == 0)
		return flash_bytes;
	most = room.all - room.all / FIT_LEAVES;
	others = room.all - room.free > room.held ? room.all - room.free - room.held : 0;
	if (most > others)
		fit = (most - others) / step * step;
	/* Of a file that is whole, all; of one that a cut start has reserved, what that start wanted. */
	kept = room.held >= room.size ? room.size / SEG_PAGE * SEG_PAGE : 0;
	kept = kept > room.held / step * step ? kept : room.held / step * step;
	return fit > kept ? fit : kept;
}
