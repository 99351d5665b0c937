/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mappable region: index, segment table and what else must outlive the process, in one piece
 * of address space without pointers and without locks (offsets only), so that a later process can attach
 * to it. Today it is anonymous memory.
 *
 *   +--------+---------------+---------+---------+---------+-----------+-----------+
 *   | header | segment table | table 0 | table 1 | table 2 | extents 0 | extents 1 |
 *   +--------+---------------+---------+---------+---------+-----------+-----------+
 *
 * An area has an address for life and a size that changes: address space is taken for the most that it may ever
 * have, memory for what it has. An area that has lost its memory can still be read, and holds zeros, so that a reader
 * without a lock that comes late does no harm.
 *
 * Use: fill an array with the most that each area may have, create, commit what is needed, take each area's address.
 * Threads: creation, destruction, commit and decommit by one thread at a time, region_bytes by any; the areas are their
 * modules'.
 */
#ifndef FS_BASE_REGION_H
#define FS_BASE_REGION_H

#include <stddef.h>
#include <stdint.h>

enum region_area {
	REGION_STORE,
	REGION_SEGMENTS,
	REGION_TABLE_0, /* of the index: three of them */
	REGION_TABLE_1,
	REGION_TABLE_2,
	REGION_EXTENTS_0, /* of large objects: one is in use, the other one while it grows or shrinks */
	REGION_EXTENTS_1,
	REGION_AREAS
};

struct region;

/* most[a]: bytes that the area may have, or 0. FS_OK or FS_ENOMEM. No area has memory yet. */
int region_create(struct region **out, const uint64_t most[REGION_AREAS]);
void region_destroy(struct region *region); /* NULL is nothing */
/* Page-aligned, constant; NULL for an area that may have nothing. */
void *region_area(const struct region *region, enum region_area area);
/* Memory for the first bytes of the area: what it had stays, the rest is zeros. FS_ENOMEM; FS_ERANGE: more than most. */
int region_commit(struct region *region, enum region_area area, uint64_t bytes);
/* Gives all memory of the area back. */
void region_decommit(struct region *region, enum region_area area);
uint64_t region_most(const struct region *region, enum region_area area);
uint64_t region_bytes(const struct region *region); /* memory of all areas */
uint64_t region_untouched(
	const struct region *region); /* of it, what is not resident yet. Asks for each page. Any thread */

#endif
