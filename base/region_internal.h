/* SPDX-License-Identifier: BSD-3-Clause */
/* The struct behind a region, and the part of it that lies in a file (region_file.c). */
#ifndef FS_BASE_REGION_INTERNAL_H
#define FS_BASE_REGION_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/region.h"

#define REGION_HEADER_BYTES 4096u /* at least; a whole unit */

/* region.c. Returns the bytes of a page of the kernel: 4 KiB, and on arm64 16 or 64 KiB where the kernel was built so. */
uint64_t region_page_bytes(void);

struct area {
	uint64_t offset, most;
	/* Never shrinks, as late readers may be anywhere in it; of the one thread that commits. Of an area in parts: the end of
	   the last one so far, and there may be gaps. */
	uint64_t usable;
	_Atomic uint64_t top; /* of an area in parts the same, for any thread; else 0 */
	uint64_t mapped; /* the part of it that is memory of the file now; of the same thread, 0 without a file */
	_Atomic uint64_t bytes; /* committed and not given back; read by any thread */
};

/* Constant after creation, like every field without a comment. */
struct region {
	unsigned char *base;
	unsigned char *reserved_at; /* base or a little before it */
	uint64_t reserved;
	uint64_t unit; /* sizes and offsets are multiples: bytes of a page, or of a huge page on hugetlbfs */
	uint64_t end; /* of the last area; the size of the file */
	int fd; /* -1: the memory is anonymous */
	char *path; /* NULL: it is anonymous */
	bool copies; /* made by region_look: the file is only read; of the one thread that commits */
	bool attached; /* the file has the memory that an earlier process has taken; of the one thread that commits */
	bool discard; /* the file is emptied when the region is destroyed; of the one thread that commits */
	uint64_t wanted_bytes; /* by the last commit that found no room; of the same thread */
	struct area area[REGION_AREAS];
};

/* Lays out the areas and reserves address space: most as for region_create, unit a power of two. FS_OK; FS_ENOMEM. */
FS_MUST_CHECK int region_reserve(struct region **out, const uint64_t most[REGION_AREAS], uint64_t unit);

/* The file's parts of region_commit, region_decommit and region_destroy. file_commit makes the first `wanted` bytes of
   the area memory of the file, allocated for good: FS_OK, or FS_ENOMEM when there is no room. file_decommit gives them
   back; what was usable reads as zeros. */
FS_MUST_CHECK int region_file_commit(struct region *region, struct area *area, uint64_t wanted);
void region_file_decommit(struct region *region, struct area *area);
/* The same for a part of an area in parts, whose memory is not counted yet. */
FS_MUST_CHECK int region_file_commit_part(struct region *region, struct area *area, uint64_t offset, uint64_t bytes);
void region_file_decommit_part(struct region *region, const struct area *area, uint64_t offset, uint64_t bytes);
/* As region_file_commit for a region that copies: FS_ENOMEM also when the file can't be read. */
FS_MUST_CHECK int region_file_copy(struct region *region, struct area *area, uint64_t from, uint64_t wanted);
void region_file_close(struct region *region);

#endif
