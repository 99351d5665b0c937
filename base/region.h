/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mappable region: index, segment table and what else must outlive the process, in one piece
 * of memory without pointers and without locks (offsets only), so that a later process can attach
 * to it. Today it is anonymous memory.
 *
 *   +--------+---------------+-------------+---------+----
 *   | header | segment table | index slots | extents | ...     each area 64-byte aligned
 *   +--------+---------------+-------------+---------+----
 *
 * Use: fill an array of areas with their sizes, create, take each area's address.
 * Threads: creation and destruction by one thread; the areas are their modules'.
 */
#ifndef FS_BASE_REGION_H
#define FS_BASE_REGION_H

#include <stddef.h>
#include <stdint.h>

enum region_area { REGION_STORE, REGION_SEGMENTS, REGION_INDEX, REGION_EXTENTS, REGION_AREAS };

struct region;

/* bytes[a] may be 0. 0 or FS_ENOMEM. Zeroed. */
int region_create(struct region **out, const uint64_t bytes[REGION_AREAS]);
void region_destroy(struct region *region);
void *region_area(struct region *region, enum region_area area); /* NULL for an empty area */
uint64_t region_bytes(const struct region *region);

#endif
