/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What became of the flash file of a running daemon. A file that was cut short may still be written, which makes it
 * longer, and its superblock may be read: its size tells what the operator, or the file system, did to it.
 */
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "segments/device_internal.h"

static enum dev_sight look_at_size(uint64_t found, uint64_t bytes, char *why, size_t size)
{
	if (found >= bytes)
		return DEV_WHOLE;
	snprintf(why, size, "the flash file was cut short: it has %llu of %llu bytes", (unsigned long long)found,
		 (unsigned long long)bytes);
	return DEV_SHORT;
}

/* A path that can't be looked at, as when the daemon has given up its rights, says nothing. */
static enum dev_sight look_at_path(const struct stat *open, const char *path, char *why, size_t size)
{
	struct stat there;

	if (open->st_nlink == 0) {
		snprintf(why, size, "the flash file was deleted or replaced");
		return DEV_AWAY;
	}
	if (!path)
		return DEV_WHOLE;
	if (stat(path, &there) != 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			return DEV_WHOLE;
		snprintf(why, size, "the flash file was moved away");
		return DEV_AWAY;
	}
	if (there.st_dev == open->st_dev && there.st_ino == open->st_ino)
		return DEV_WHOLE;
	snprintf(why, size, "another file lies in the place of the flash file");
	return DEV_AWAY;
}

enum dev_sight file_look(int fd, const char *path, uint64_t bytes, char *why, size_t size)
{
	uint64_t found = 0;
	enum dev_sight sight;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return DEV_WHOLE; /* the reads and writes tell more */
	if (S_ISBLK(st.st_mode))
		return ioctl(fd, BLKGETSIZE64, &found) == 0 ? look_at_size(found, bytes, why, size) : DEV_WHOLE;
	sight = look_at_size((uint64_t)st.st_size, bytes, why, size);
	return sight == DEV_WHOLE ? look_at_path(&st, path, why, size) : sight;
}
