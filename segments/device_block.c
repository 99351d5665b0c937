/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The unit of direct reads. A file or device that is opened O_DIRECT takes reads that begin and end at its logical blocks,
 * which are often smaller than a page. Only the kernel's word counts: a file system that can't do such a read may do it
 * through the page cache, without an error, and a trial would not show that.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "segments/device_internal.h"

static bool is_unit(uint64_t bytes)
{
	return bytes >= DEV_READ_LEAST && bytes <= SEG_PAGE && (bytes & (bytes - 1)) == 0;
}

static uint32_t of_block_device(int fd)
{
	int bytes = 0;

	return ioctl(fd, BLKSSZGET, &bytes) == 0 && bytes > 0 && is_unit((uint64_t)bytes) ? (uint32_t)bytes : SEG_PAGE;
}

/* Kernels before 6.1, and file systems that don't tell, leave it at a page. */
static uint32_t of_file(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx found;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &found) == 0 && (found.stx_mask & STATX_DIOALIGN) &&
	    is_unit(found.stx_dio_offset_align) && found.stx_dio_mem_align <= found.stx_dio_offset_align)
		return found.stx_dio_offset_align;
#endif
	return SEG_PAGE;
}

uint32_t file_read_block(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return SEG_PAGE;
	return S_ISBLK(st.st_mode) ? of_block_device(fd) : of_file(fd);
}
