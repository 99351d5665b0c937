/* SPDX-License-Identifier: BSD-3-Clause */
/* What the study "device" writes to: nothing that somebody may miss, unless told to. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tools/bench/device.h"
#include "tools/common/text.h"

#define NEW_FILE_BYTES (4ull << 30) /* where no size is given */
#define DIRECT_FLAGS (O_WRONLY | O_DIRECT | O_CLOEXEC)

__attribute__((format(printf, 3, 4))) static int refuse(int code, char error[DEVICE_ERROR_BYTES], const char *format,
							...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, DEVICE_ERROR_BYTES, format, arguments);
	va_end(arguments);
	return code;
}

static int refuse_open(char error[DEVICE_ERROR_BYTES], const char *path)
{
	int saved = errno;
	const char *reason = saved == EBUSY    ? "it is mounted or otherwise in use"
			     : saved == EINVAL ? "its file system knows no O_DIRECT"
					       : strerror(saved);

	refuse(FS_ESYS, error, "%s: %s", path, reason);
	errno = saved;
	return FS_ESYS;
}

static int make_file(struct device_target *target, const char *path, uint64_t size, char error[DEVICE_ERROR_BYTES])
{
	char wanted[TEXT_BYTES], free_text[TEXT_BYTES];
	struct statvfs fs;
	uint64_t room;

	size = size ? size : NEW_FILE_BYTES;
	target->fd = open(path, DIRECT_FLAGS | O_CREAT | O_EXCL, 0600);
	if (target->fd < 0)
		return refuse_open(error, path);
	if (unlink(path) != 0 || fstatvfs(target->fd, &fs) != 0)
		return refuse_open(error, path);
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (room < size)
		return refuse(FS_EFULL, error, "%s: %s wanted, the file system has %s free", path,
			      text_size((double)size, wanted), text_size((double)room, free_text));
	target->bytes = size;
	return FS_OK;
}

static int open_file(struct device_target *target, const char *path, uint64_t size, uint64_t has,
		     char error[DEVICE_ERROR_BYTES])
{
	target->bytes = size ? size : has;
	target->fd = open(path, DIRECT_FLAGS);
	return target->fd < 0 ? refuse_open(error, path) : FS_OK;
}

static int open_block(struct device_target *target, const char *path, uint64_t size, char error[DEVICE_ERROR_BYTES])
{
	char wanted[TEXT_BYTES], has_text[TEXT_BYTES];
	uint64_t has;

	target->is_block = true;
	/* O_EXCL on a block device: nobody else holds it, neither as a mount nor below another device. */
	target->fd = open(path, DIRECT_FLAGS | O_EXCL);
	if (target->fd < 0 || ioctl(target->fd, BLKGETSIZE64, &has) != 0)
		return refuse_open(error, path);
	target->bytes = size ? size : has;
	if (size > has)
		return refuse(FS_EINVAL, error, "%s: --size is %s, it has %s", path, text_size((double)size, wanted),
			      text_size((double)has, has_text));
	return FS_OK;
}

static int open_existing(struct device_target *target, const char *path, uint64_t size, bool overwrite,
			 const struct stat *status, char error[DEVICE_ERROR_BYTES])
{
	if (!S_ISREG(status->st_mode) && !S_ISBLK(status->st_mode))
		return refuse(FS_EINVAL, error, "%s is neither a file nor a block device", path);
	if (!overwrite)
		return refuse(FS_EINVAL, error, "%s is there already: --overwrite destroys what it holds", path);
	if (S_ISBLK(status->st_mode))
		return open_block(target, path, size, error);
	return open_file(target, path, size, (uint64_t)status->st_size, error);
}

int device_open(struct device_target *target, const char *path, uint64_t size, bool overwrite,
		char error[DEVICE_ERROR_BYTES])
{
	struct stat status;
	int rc;

	*target = (struct device_target){ .fd = -1 };
	if (stat(path, &status) == 0)
		rc = open_existing(target, path, size, overwrite, &status, error);
	else if (errno == ENOENT)
		rc = make_file(target, path, size, error);
	else
		rc = refuse_open(error, path);
	/* What was there may have been replaced between the two calls: what counts is what was opened. */
	if (rc == FS_OK && (fstat(target->fd, &status) != 0 || S_ISBLK(status.st_mode) != target->is_block))
		rc = refuse(FS_EBUSY, error, "%s changes while it is opened", path);
	if (rc != FS_OK) {
		device_close(target);
		return rc;
	}
	target->number = target->is_block ? status.st_rdev : status.st_dev;
	return FS_OK;
}

void device_close(struct device_target *target)
{
	if (target->fd >= 0)
		close(target->fd);
	target->fd = -1;
}
