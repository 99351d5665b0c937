/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The region: index, segment table and all else that is meant to outlive the process, in one piece of address space. It
 * holds offsets, but no pointers and no locks, so that a later process can attach to it. It is anonymous memory, or a
 * file on tmpfs or hugetlbfs with the same layout.
 *
 *   +--------+-------+---------------+-------+---------+---------+---------+-----------+-----------+--------+
 *   | header | store | segment table | index | table 0 | table 1 | table 2 | extents 0 | extents 1 | frugal |
 *   +--------+-------+---------------+-------+---------+---------+---------+-----------+-----------+--------+
 *
 * An area's address is fixed, and its size changes: address space is reserved for the most bytes that it may ever have,
 * and memory is taken for the bytes that it has. An area that has given its memory back can still be read, and holds
 * zeros, so that a late reader without a lock does no harm.
 *
 * What a killed process leaves: the kernel keeps each store of a thread up to some instruction, and none behind it. So a
 * sequence of release stores into the file is there up to some point, in the order of the program, and a thread that
 * saw another one's store left nothing that contradicts it. x86-64 and arm64 both give that: interrupts fall between two
 * instructions, and a store that one other processor sees is seen by all.
 *
 * A file: memory of an area is allocated in it when it is committed, unless an earlier process has done so, so that no
 * access ends in SIGBUS later; no page is touched. A file that
 * region_open has found to be of this layout (REGION_FOUND_SAME) keeps all its bytes until region_reset or until the
 * caller writes; region_commit then takes over what lies there. A file of any other kind is reset before the first
 * commit. Only its first page is judged here: what lies in the areas is the caller's.
 *
 * Use: fill an array with the most bytes of each area, create the region, commit the bytes that are needed, and take
 * each area's address. Threads: one at a time creates, destroys, commits and gives back; any may call the others. The
 * module that an area belongs to covers what lies in it. Errors: codes of base/error.h. Nothing here waits for a disk.
 */
#ifndef FS_BASE_REGION_H
#define FS_BASE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum region_area {
	REGION_STORE,
	REGION_SEGMENTS,
	REGION_INDEX, /* sizes of tables and extents, and the index's rows of segments */
	REGION_TABLE_0, /* the three tables of the index */
	REGION_TABLE_1,
	REGION_TABLE_2,
	REGION_EXTENTS_0, /* extents: one of the two is in use; both are while they grow or shrink */
	REGION_EXTENTS_1,
	REGION_FRUGAL, /* the frugal index, in parts */
	REGION_AREAS
};

struct region;

/* Reserves address space: most[a] is the most bytes that area a may have, or 0. No area has memory yet. FS_OK;
   FS_ENOMEM, and *out is NULL. */
FS_MUST_CHECK int region_create(struct region **out, const uint64_t most[REGION_AREAS]);

#define REGION_VERSION 3u /* of the file: another one for another layout of anything that lies in it */

/* What region_open has found. */
enum region_found {
	REGION_FOUND_NONE, /* no file, or an empty one */
	REGION_FOUND_SAME, /* a file of this layout */
	REGION_FOUND_VERSION, /* a file of another version */
	REGION_FOUND_LAYOUT, /* a file with areas of other sizes */
	REGION_FOUND_COPY, /* a copy of a file: what it was copied from may have changed since */
	REGION_FOUND_DAMAGED /* something else, or a file of another size than it was made with */
};

struct region_owner {
	uid_t user;
	gid_t group;
};

/*
 * As region_create, in a file, which is made when it is missing: with mode 0600, for owner (NULL: the process's own
 * user). Nothing in a present file is changed. The file is locked until region_destroy.
 *
 * FS_OK, with *found. FS_EBUSY: another process has it. FS_EINVAL: the folder is neither on tmpfs nor on hugetlbfs, or
 * the file is open to others. FS_ESYS, FS_ENOMEM. After any of these *out is NULL and reason has a text for operators.
 */
FS_MUST_CHECK int region_open(struct region **out, const uint64_t most[REGION_AREAS], const char *folder,
			      const char *name, const struct region_owner *owner, enum region_found *found,
			      char reason[256]);
/*
 * As region_open, for a look: the file is neither made nor changed nor locked, and may be any user's. region_commit
 * takes a copy of what lies there, and region_reset turns to memory of the region's own, as region_create has it. No
 * process writes to the file meanwhile. FS_OK also where there is none.
 */
FS_MUST_CHECK int region_look(struct region **out, const uint64_t most[REGION_AREAS], const char *folder,
			      const char *name, enum region_found *found, char reason[256]);
/* Empties the file and writes its first page; all areas are without memory again. Does nothing without a file. FS_OK;
   FS_ENOMEM: no room; FS_ESYS with errno. */
FS_MUST_CHECK int region_reset(struct region *region);
/* Has a process, this one included, the region in this file open? Then it isn't that of a run that has ended. False for no file. Any thread. */
FS_MUST_CHECK bool region_is_in_use(const char *path);
/* Gives the file another name in its folder, and stays its owner. FS_OK, also for the same name. FS_EBUSY: a file of that
   name is another process's; FS_ESYS: neither has changed, and reason has a text for operators. Not without a file. */
FS_MUST_CHECK int region_rename(struct region *region, const char *name, char reason[256]);
/* The file is emptied by region_destroy, to give its memory back. Without a file it does nothing. */
void region_discard(struct region *region);
/* Has a commit or a reset failed because the file system has too little room? Then reason says what is missing. */
FS_MUST_CHECK bool region_is_short(const struct region *region, char reason[256]);

/* Gives memory and address space back. NULL is allowed. A file stays, unless it is to be discarded. */
void region_destroy(struct region *region);
/* Returns the area's address: page-aligned and constant; NULL for an area that may have nothing. */
void *region_area(const struct region *region, enum region_area area);
/* Takes memory for the first bytes of the area. Bytes that it has already stay, others are zero, or what lies in a file
   of this layout. FS_ENOMEM; FS_ERANGE for more bytes than the area may have. */
FS_MUST_CHECK int region_commit(struct region *region, enum region_area area, uint64_t bytes);
/* Gives all memory of the area back. */
void region_decommit(struct region *region, enum region_area area);
/*
 * For an area that is used in parts, and never by region_commit: takes memory for so many bytes of it from an offset on, which
 * it has not got there. Both are multiples of region_unit. In a file of this layout the part has what lies there, until it is given
 * back for the first time; otherwise it holds zeros. FS_ENOMEM; FS_ERANGE: it would end behind the area.
 */
FS_MUST_CHECK int region_commit_part(struct region *region, enum region_area area, uint64_t offset, uint64_t bytes);
/* Gives a part back that was committed so. It must not be read any more. */
void region_decommit_part(struct region *region, enum region_area area, uint64_t offset, uint64_t bytes);
/* Gives back what an earlier process may have left in the file where this one has no part. */
void region_drop_part(struct region *region, enum region_area area, uint64_t offset, uint64_t bytes);
/* Returns the unit of parts: the bytes of a page, or of a huge page on hugetlbfs. */
uint64_t region_unit(const struct region *region);
/* Returns the most bytes that the area may have, in whole pages. */
uint64_t region_most(const struct region *region, enum region_area area);
/* Returns the memory of all areas in bytes. */
uint64_t region_bytes(const struct region *region);
/* Returns the part of region_bytes that was never touched and so is not resident. Asks the kernel about each page. */
uint64_t region_untouched(const struct region *region);
/* Returns the resident part of region_bytes that the kernel counts as a mapping of a file; 0 without a file. Asks the
   kernel about each page. */
uint64_t region_shared(const struct region *region);

#endif
