/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocation of a flash file. First the space is reserved, so that a full file system shows at once. Then
 * zeros are written, because a block that is only reserved costs a change of metadata at its first write, and
 * refuses asynchronous reads until then. Zeros are written in order of offset: the file itself tells, by its holes and
 * its size, how far they reach, also after a kill.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/log.h"
#include "segments/device_internal.h"

#define ZERO_BYTES (4u << 20)

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes & ~(uint64_t)(SEG_PAGE - 1);
}

static int reserve_failed(int fd, uint64_t size, int error)
{
	/* Some file systems keep the part that they had room for. */
	if (ftruncate(fd, (off_t)size) != 0)
		log_warn("flash: the file could not be cut back to its old size: %s", strerror(errno));
	return -error;
}

int file_reserve(int fd, uint64_t bytes, uint64_t *size)
{
	struct rlimit limit;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	*size = (uint64_t)st.st_size;
	if (*size >= bytes)
		return 0;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
		return -EFBIG;
	if (fault_fires(FAULT_device_file_full))
		return -ENOSPC;
	/* Without growing the file. */
	if (fault_fires(FAULT_device_file_unreserved) || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0 ||
	    errno == EOPNOTSUPP || errno == ENOSYS)
		return 0;
	return reserve_failed(fd, *size, errno);
}

/* *to: where the zeros end. */
static int write_zeros(int fd, uint64_t from, uint64_t *to)
{
	void *zeros = mem_zaligned(SEG_PAGE, ZERO_BYTES);
	int error = zeros ? 0 : -ENOMEM;

	while (error == 0 && from < *to) {
		uint64_t bytes = *to - from < ZERO_BYTES ? *to - from : ZERO_BYTES;
		ssize_t n = fault_fires(FAULT_device_file_full) ? 0 : pwrite(fd, zeros, bytes, (off_t)from);

		if (n > 0)
			from += (uint64_t)n;
		else if (n == 0 || errno != EINTR)
			error = n < 0 ? -errno : -ENOSPC;
	}
	*to = from;
	mem_free(zeros);
	return error;
}

/* The next range at or behind *from, in whole pages, that lacks blocks. Reserved blocks count as lacking; a file system
   without holes reports none. False: there is none below `bytes`. */
static bool next_hole(int fd, uint64_t bytes, uint64_t size, uint64_t *from, uint64_t *to)
{
	uint64_t whole = whole_pages(size), at = *from;

	while (at < whole && at < bytes) {
		off_t hole = lseek(fd, (off_t)at, SEEK_HOLE), data;

		if (hole < 0 || (uint64_t)hole >= size)
			break;
		data = lseek(fd, hole, SEEK_DATA);
		at = data < 0 || (uint64_t)data > size ? size : (uint64_t)data;
		/* Whole pages only, for direct writes and for the sake of data beside a hole within a page. */
		*from = whole_pages((uint64_t)hole + SEG_PAGE - 1);
		*to = whole_pages(at < bytes ? at : bytes);
		if (*from < *to)
			return true;
	}
	*from = whole > *from ? whole : *from;
	*to = bytes;
	return *from < *to;
}

int file_allocate(int fd, uint64_t bytes, uint64_t most, uint64_t *allocated)
{
	uint64_t from = *allocated, to;
	struct stat st;
	int error;

	if (fstat(fd, &st) != 0)
		return -errno;
	while (next_hole(fd, bytes, (uint64_t)st.st_size, &from, &to)) {
		*allocated = from;
		if (most == 0)
			return 0;
		to = to - from < most ? to : from + most;
		error = write_zeros(fd, from, &to);
		most -= to - from;
		*allocated = from = to;
		if (error != 0)
			return error;
	}
	*allocated = bytes;
	return fsync(fd) == 0 ? 0 : -errno;
}
