/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The real device: a file or a block device, opened O_DIRECT where that works and locked against a
 * second daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "conf/units.h"
#include "segments/device_internal.h"
#include "segments/path.h"

struct file_dev {
	struct dev dev;
	int fd;
	bool discards;
	bool look_only; /* what the file lacks are zeros, as a start would make them */
	char *path; /* absolute; NULL: it is not known */
};

static int file_read(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset)
{
	int fd = ((struct file_dev *)dev)->fd;
	uint8_t *to = buffer;

	while (bytes > 0) {
		ssize_t n = pread(fd, to, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && ((struct file_dev *)dev)->look_only) {
			memset(to, 0, bytes);
			return 0;
		}
		if (n <= 0)
			return n < 0 ? -errno : -EIO; /* the end of a short file is an error */
		to += n;
		offset += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

static int file_write(struct dev *dev, const void *buffer, uint64_t bytes, uint64_t offset)
{
	int fd = ((struct file_dev *)dev)->fd;
	const uint8_t *from = buffer;

	while (bytes > 0) {
		ssize_t n = pwrite(fd, from, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		from += n;
		offset += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

static int file_flush(struct dev *dev)
{
	if (fault_fires(FAULT_device_flush_eio))
		return -EIO;
	return fdatasync(((struct file_dev *)dev)->fd) == 0 ? 0 : -errno;
}

/* Only block devices discard: a file's holes would have to be allocated again. */
static int file_discard(struct dev *dev, uint64_t offset, uint64_t bytes)
{
	struct file_dev *file = (struct file_dev *)dev;
	uint64_t range[2] = { offset, bytes };

	if (!file->discards)
		return 0;
	if (ioctl(file->fd, BLKDISCARD, range) == 0)
		return 0;
	if (errno != EOPNOTSUPP)
		log_warn("flash: discard failed and is not tried again: %s", strerror(errno));
	file->discards = false;
	return 0;
}

static int file_settle(struct dev *dev, uint64_t offset, uint64_t bytes)
{
	int fd = ((struct file_dev *)dev)->fd;

	if (dev->direct)
		return 0;
	if (sync_file_range(fd, (off_t)offset, (off_t)bytes,
			    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) != 0 &&
	    errno == EIO)
		return -EIO;
	posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
	return 0;
}

static int allocate_in_file(struct dev *dev, uint64_t most)
{
	uint64_t allocated = atomic_load(&dev->allocated);
	int error = file_allocate(((struct file_dev *)dev)->fd, dev->bytes, most, &allocated);

	atomic_store(&dev->allocated, allocated);
	return error;
}

static int file_queue_create(struct dev *dev, unsigned depth, int eventfd, struct dev_queue **out)
{
	return aio_queue_create(((struct file_dev *)dev)->fd, depth, eventfd, out);
}

static enum dev_sight file_sight(struct dev *dev, char *why, size_t size)
{
	const struct file_dev *file = (struct file_dev *)dev;

	/* What is still being made isn't missed. */
	return file_look(file->fd, file->path, atomic_load(&dev->allocated), why, size);
}

static void file_close(struct dev *dev)
{
	struct file_dev *file = (struct file_dev *)dev;

	close(file->fd);
	free(file->path);
	mem_free(file);
}

static const struct dev_ops file_ops = {
	.read = file_read,
	.write = file_write,
	.flush = file_flush,
	.discard = file_discard,
	.settle = file_settle,
	.queue_create = file_queue_create,
	.queue_destroy = aio_queue_destroy,
	.submit = aio_submit,
	.reap = aio_reap,
	.look = file_sight,
	.allocate = allocate_in_file,
	.close = file_close,
};

/* *created: the file is new. A block device is opened O_EXCL, which refuses a mounted one. */
static int open_path(const struct seg_config *config, bool direct, bool *created)
{
	int flags = (config->look_only ? O_RDONLY | O_NONBLOCK : O_RDWR) | O_CLOEXEC | (direct ? O_DIRECT : 0);
	const char *path = config->path;
	struct stat st;
	int fd;

	if (config->look_only)
		return open(path, flags);
	if (stat(path, &st) == 0 && S_ISBLK(st.st_mode))
		return open(path, flags | O_EXCL);
	fd = open(path, flags | O_CREAT | O_EXCL, 0600);
	if (fd >= 0) {
		*created = true;
		return fd;
	}
	if (errno == EEXIST)
		return open(path, flags);
	return -1;
}

/* Open file description locks: another open in the same process is refused as well. */
int file_lock(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
		return FS_OK;
	return errno == EAGAIN || errno == EACCES ? FS_EBUSY : FS_ESYS;
}

bool seg_is_locked(const char *path)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat st;
	bool locked = false;
	int fd;

	if (stat(path, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)))
		return false;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		locked = fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
		close(fd);
	}
	return locked;
}

/* Pages that are missing or can't be read count as empty, so that the others decide. */
static void read_start(int fd, uint8_t *start)
{
	memset(start, 0, DEV_START_BYTES);
	for (uint64_t at = 0; at < DEV_START_BYTES; at += SEG_PAGE) {
		ssize_t n = pread(fd, start + at, SEG_PAGE, (off_t)at);

		if (n < (ssize_t)SEG_PAGE)
			memset(start + at + (n > 0 ? n : 0), 0, SEG_PAGE - (uint64_t)(n > 0 ? n : 0));
	}
}

/* A wrong path must not destroy the data there. */
static int check_foreign(int fd, const char *path, bool block_device)
{
	uint8_t *start = mem_aligned(SEG_PAGE, DEV_START_BYTES);
	bool foreign, extstore;

	if (!start)
		return FS_ENOMEM;
	read_start(fd, start);
	foreign = super_foreign(start);
	mem_free(start);
	extstore = extstore_left(fd);
	if (!foreign && !extstore)
		return FS_OK;
	if (extstore)
		log_error(
			"flash: %s holds what memcached's extstore has left, and stays untouched; to use it, name it by "
			"-o ext_path=%s:SIZE, or remove it",
			path, path);
	else if (block_device)
		log_error("flash: %s holds something that is not a flashield cache, and stays untouched; to destroy "
			  "its contents: wipefs -a %s && dd if=/dev/zero of=%s bs=1M count=1",
			  path, path, path);
	else
		log_error("flash: %s holds something that is not a flashield cache, and stays untouched; to destroy "
			  "its contents, remove the file",
			  path);
	return FS_EFOREIGN;
}

static int fit_block_device(struct file_dev *file, const struct seg_config *config)
{
	uint64_t bytes = 0;

	if (ioctl(file->fd, BLKGETSIZE64, &bytes) != 0)
		return FS_ESYS;
	if (config->flash_bytes > bytes) {
		log_error("flash: %s has %llu bytes, less than the configured size", config->path,
			  (unsigned long long)bytes);
		return FS_ERANGE;
	}
	file->dev.block_device = true;
	file->dev.bytes = config->flash_bytes ? config->flash_bytes : bytes;
	file->dev.found_bytes = file->dev.bytes;
	atomic_store(&file->dev.allocated, file->dev.bytes);
	file->discards = true;
	return FS_OK;
}

static int file_size(int fd, uint64_t *bytes)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	*bytes = (uint64_t)st.st_size;
	return 0;
}

static int fit_file(struct file_dev *file, const struct seg_config *config)
{
	/* The superblock has its place at once. */
	uint64_t ready = fault_fires(FAULT_device_file_slow) ? DEV_START_BYTES : DEV_READY_BYTES;
	int error = file_size(file->fd, &file->dev.found_bytes);
	char wanted[UNITS_TEXT_BYTES];

	if (error == 0 && !config->look_only)
		error = file_reserve(file->fd, config->flash_bytes, &file->dev.found_bytes);
	file->dev.bytes = config->flash_bytes;
	file->dev.found_bytes &= ~(uint64_t)(SEG_PAGE - 1);
	if (error == 0 && !config->look_only)
		error = allocate_in_file(&file->dev, ready);
	if (error != 0) {
		log_error("flash: %s: no room for %s: %s", config->path, units_show_size(config->flash_bytes, wanted),
			  strerror(-error));
		errno = -error;
		return FS_ESYS;
	}
	return FS_OK;
}

/* Does a direct read work? Some file systems accept the flag and refuse the I/O. */
static bool direct_works(int fd)
{
	void *page = mem_aligned(SEG_PAGE, SEG_PAGE);
	bool works = page && (pread(fd, page, SEG_PAGE, 0) >= 0 || errno != EINVAL);

	mem_free(page);
	return works;
}

static int open_file(struct file_dev *file, const struct seg_config *config, bool *created)
{
	bool direct = config->direct != SEG_DIRECT_OFF;

	file->fd = open_path(config, direct, created);
	if (direct && (file->fd >= 0 ? !direct_works(file->fd) : errno == EINVAL)) {
		if (file->fd >= 0)
			close(file->fd);
		direct = false;
		log_warn("flash: %s can't be opened O_DIRECT: reads and writes go through the page cache",
			 config->path);
		file->fd = open_path(config, false, created);
	}
	file->dev.direct = direct;
	file->dev.fd = file->fd;
	if (file->fd >= 0)
		return FS_OK;
	return errno == EBUSY ? FS_EBUSY : FS_ESYS;
}

int dev_open(struct dev **out, const struct seg_config *config)
{
	struct file_dev *file = mem_zalloc(sizeof(*file));
	bool created = false;
	struct stat st;
	int rc, error;

	*out = NULL;
	if (!file)
		return FS_ENOMEM;
	file->dev.ops = &file_ops;
	file->look_only = config->look_only;
	rc = open_file(file, config, &created);
	if (rc == FS_OK && !config->look_only)
		rc = file_lock(file->fd);
	if (rc == FS_EBUSY)
		created = false; /* another process locked the new file first, and owns it now */
	if (rc == FS_OK && fstat(file->fd, &st) != 0)
		rc = FS_ESYS;
	if (rc == FS_OK && !S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode))
		rc = FS_EINVAL;
	if (rc == FS_OK && created && config->owner && fchown(file->fd, config->owner->user, config->owner->group) != 0)
		log_warn("flash: %s can't be given to the user: %s", config->path, strerror(errno));
	if (rc == FS_OK)
		rc = check_foreign(file->fd, config->path, S_ISBLK(st.st_mode));
	if (rc == FS_OK)
		rc = S_ISBLK(st.st_mode) ? fit_block_device(file, config) : fit_file(file, config);
	if (rc == FS_OK) {
		file->dev.read_block = file->dev.direct ? file_read_block(file->fd) : SEG_PAGE;
		if (!file->dev.direct)
			posix_fadvise(file->fd, 0, 0, POSIX_FADV_RANDOM);
		file->path = realpath(config->path, NULL); /* a later change of the working directory does no harm */
		*out = &file->dev;
		return FS_OK;
	}
	error = errno;
	if (created)
		unlink(config->path);
	if (file->fd >= 0)
		close(file->fd);
	mem_free(file);
	errno = error;
	return rc;
}

void dev_read_faults(uint8_t *first, uint64_t bytes, int64_t *result)
{
	if (*result >= 0 && fault_fires(FAULT_device_read_eio))
		*result = -EIO;
	if (*result >= 0 && bytes > 0 && fault_fires(FAULT_device_read_corrupt))
		first[bytes / 2] ^= 1;
}

int dev_read(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset)
{
	int64_t result;

	must(bytes % SEG_PAGE == 0 && offset % SEG_PAGE == 0);
	result = dev->ops->read(dev, buffer, bytes, offset);
	ctr_add(CTR_flash_bytes_read, bytes);
	dev_read_faults(buffer, bytes, &result);
	return (int)result;
}

uint32_t dev_read_what_can_be(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset)
{
	uint8_t *page = buffer;
	uint32_t unreadable = 0;

	if (dev_read(dev, buffer, bytes, offset) == 0)
		return 0;
	for (uint64_t at = 0; at < bytes; at += SEG_PAGE) {
		if (dev_read(dev, page + at, SEG_PAGE, offset + at) == 0)
			continue;
		memset(page + at, 0, SEG_PAGE);
		unreadable++;
	}
	return unreadable;
}
