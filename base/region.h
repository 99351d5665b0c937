/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The region: index, segment table and all else that is meant to outlive the process, in one piece of address space. It
 * holds offsets, but no pointers and no locks, so that a later process could attach to it. It is anonymous memory.
 *
 *   +--------+---------------+---------+---------+---------+-----------+-----------+
 *   | header | segment table | table 0 | table 1 | table 2 | extents 0 | extents 1 |
 *   +--------+---------------+---------+---------+---------+-----------+-----------+
 *
 * An area's address is fixed, and its size changes: address space is reserved for the most bytes that it may ever have,
 * and memory is taken for the bytes that it has. An area that has given its memory back can still be read, and holds
 * zeros, so that a late reader without a lock does no harm.
 *
 * Use: fill an array with the most bytes of each area, create the region, commit the bytes that are needed, and take
 * each area's address. Threads: one at a time creates, destroys, commits and gives back; any may call the others. The
 * module that an area belongs to covers what lies in it. Errors: codes of base/error.h. Nothing here does I/O.
 */
#ifndef FS_BASE_REGION_H
#define FS_BASE_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum region_area {
	REGION_STORE,
	REGION_SEGMENTS,
	REGION_TABLE_0, /* the three tables of the index */
	REGION_TABLE_1,
	REGION_TABLE_2,
	REGION_EXTENTS_0, /* extents: one of the two is in use; both are while they grow or shrink */
	REGION_EXTENTS_1,
	REGION_AREAS
};

struct region;

/* Reserves address space: most[a] is the most bytes that area a may have, or 0. No area has memory yet. FS_OK;
   FS_ENOMEM, and *out is NULL. */
FS_MUST_CHECK int region_create(struct region **out, const uint64_t most[REGION_AREAS]);
/* Gives memory and address space back. NULL is allowed. */
void region_destroy(struct region *region);
/* Returns the area's address: page-aligned and constant; NULL for an area that may have nothing. */
void *region_area(const struct region *region, enum region_area area);
/* Takes memory for the first bytes of the area. Bytes that it has already stay, others are zero. FS_ENOMEM; FS_ERANGE
   for more bytes than the area may have. */
FS_MUST_CHECK int region_commit(struct region *region, enum region_area area, uint64_t bytes);
/* Gives all memory of the area back. */
void region_decommit(struct region *region, enum region_area area);
/* Returns the most bytes that the area may have, in whole pages. */
uint64_t region_most(const struct region *region, enum region_area area);
/* Returns the memory of all areas in bytes. */
uint64_t region_bytes(const struct region *region);
/* Returns the part of region_bytes that was never touched and so is not resident. Asks the kernel about each page. */
uint64_t region_untouched(const struct region *region);

#endif
