/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preallocation of a flash file. First the space is reserved, so that a full file system shows at once. Then
 * zeros are written, because a block that is only reserved costs a change of metadata at its first write, and
 * refuses asynchronous reads until then.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/log.h"
#include "segments/device_internal.h"

#define ZERO_BYTES (4u << 20)
#define REPORT_BYTES (64ull << 30)

/* Reserves without growing the file: its size tells a later start how far the zeros reach. */
static int reserve_blocks(int fd, uint64_t bytes)
{
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0)
		return 0;
	return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
}

static void report_progress(const struct seg_config *config, uint64_t bytes)
{
	if (config->progress)
		config->progress(config->progress_context, bytes, config->flash_bytes);
}

static int write_zeros(int fd, const struct seg_config *config, const void *zeros, uint64_t from, uint64_t to)
{
	uint64_t reported = from;

	while (from < to) {
		uint64_t bytes = to - from < ZERO_BYTES ? to - from : ZERO_BYTES;
		ssize_t n = fault_fires(FAULT_device_file_full) ? 0 : pwrite(fd, zeros, bytes, (off_t)from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		from += (uint64_t)n;
		report_progress(config, from);
		if (from - reported >= REPORT_BYTES) {
			log_notice("flash: %llu GiB to preallocate", (unsigned long long)((to - from) >> 30));
			reported = from;
		}
	}
	return 0;
}

/* Fills the holes of the present file, reserved ones included, so that no later write can fail for want of space.
   A file system without holes reports none. */
static int fill_holes(int fd, const struct seg_config *config, const void *zeros, uint64_t size)
{
	off_t at = 0;

	while ((uint64_t)at < size) {
		off_t hole = lseek(fd, at, SEEK_HOLE);
		off_t data;
		int error;

		if (hole < 0 || (uint64_t)hole >= size)
			return 0;
		data = lseek(fd, hole, SEEK_DATA);
		if (data < 0 || (uint64_t)data > size)
			data = (off_t)size;
		/* Whole pages only, for direct writes and for the sake of data beside a hole within a page. */
		error = write_zeros(fd, config, zeros, ((uint64_t)hole + SEG_PAGE - 1) & ~(uint64_t)(SEG_PAGE - 1),
				    (uint64_t)data & ~(uint64_t)(SEG_PAGE - 1));
		if (error != 0)
			return error;
		at = data;
	}
	return 0;
}

int file_preallocate(int fd, const struct seg_config *config)
{
	uint64_t bytes = config->flash_bytes;
	void *zeros = mem_aligned(SEG_PAGE, ZERO_BYTES);
	uint64_t size, whole;
	struct stat st;
	int error;

	if (!zeros)
		return -ENOMEM;
	memset(zeros, 0, ZERO_BYTES);
	error = fstat(fd, &st) == 0 ? 0 : -errno;
	if (error != 0)
		goto out;
	size = (uint64_t)st.st_size;
	whole = size & ~(uint64_t)(SEG_PAGE - 1);
	error = reserve_blocks(fd, bytes);
	if (error == 0)
		error = fill_holes(fd, config, zeros, whole < bytes ? whole : bytes & ~(uint64_t)(SEG_PAGE - 1));
	if (error == 0 && size < bytes)
		error = write_zeros(fd, config, zeros, whole, bytes);
	if (error == 0 && fsync(fd) != 0)
		error = -errno;
	if (error != 0 && ftruncate(fd, (off_t)size) != 0)
		log_warn("flash: the file could not be cut back to its old size: %s", strerror(errno));
out:
	mem_free(zeros);
	return error;
}
