/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes that follow from -m and the flash at the start: how much of the flash is used, the segments, and the first
   index. */
#ifndef FS_STORE_SIZING_H
#define FS_STORE_SIZING_H

#include "segments/move.h"
#include "segments/path.h"
#include "server/store/store.h"

#define INDEX_LOAD 0.95 /* share of used slots that a table of the index is sized for */
#define INDEX_LOAD_MOST 0.98 /* the greatest share: above it an insert seldom finds an empty slot */

struct sizing {
	uint64_t flash_given; /* bytes of the file or device */
	uint64_t flash_used; /* bytes of these that segments of at most a quarter of -m can serve */
	uint64_t flash_asked; /* flash_used, or what it would be if the file system had room for all of it */
	uint64_t segment_bytes, slot_record_bytes;
	uint64_t buckets, buckets_most; /* of the index's first table; of the largest that it may ever need */
	/* The least -m, in whole MiB, whose half is an index for all of the flash, by --flash-object-size. */
	uint64_t memory_for_all;
	uint32_t segments, extents_most;
	uint32_t partitions; /* of the frugal index */
	/* More than segments when the flash was moved to a smaller device: index and region go on as they were made for
	   index_flash_bytes. Else segments, and flash_used. */
	uint32_t index_segments;
	uint64_t index_flash_bytes;
	bool crossings; /* do the segments' crossing maps pay? */
};

/* Empties a file that memcached's extstore has left, where the configuration takes it over and more than a look is wanted. Before sizing_make.
   FS_OK, or a code of seg_empty_extstore with the reason. */
FS_MUST_CHECK int sizing_take_extstore(const struct store_config *config, char reason[256]);
/* Looks at the file or device and its file system (stat, superblock) and fills out. A file that has no room gets the size that
   seg_fit_bytes gives, or, where not even that is possible, the size that was asked for. A file that got a part of the same size
   before keeps its part, unless its run has ended cleanly and the larger flash keeps its objects. FS_OK; FS_ERANGE with an option and its accepted
   range in reason; a code of seg_flash_bytes. Any thread. */
FS_MUST_CHECK int sizing_make(const struct store_config *config, struct sizing *out, char reason[256]);
/* Can a start with these options find the flash's objects again? Any thread. */
bool sizing_may_be_warm(const struct store_config *config);
/* Takes over the sizes that the index of the last run had, when its flash had index_flash_bytes; out is as sizing_make has
   filled it. True: they fit this shape, and out has them; else it stays. Any thread. */
FS_MUST_CHECK bool sizing_take_shape(const struct store_config *config, const struct seg_shape *shape,
				     struct sizing *out);
/* Logs a warning if the flash is smaller than asked, with both sizes. Any thread. */
void sizing_tell_smaller(const char *flash_path, const struct sizing *sizing);
/* Writes into reason why a flash path isn't used: the text of the code, which a call of segments/path.h or seg_look has returned; of errno with
   FS_ESYS. Any thread. */
void sizing_path_refused(const char *flash_path, int code, char reason[256]);
/* Writes into reason that a flash file of so many bytes has no room, with the bytes that are free there and errno's text. errno
   stays. Any thread; asks the file system. */
void sizing_no_room(const char *flash_path, uint64_t bytes, char reason[256]);
/* Returns the longest record in bytes that gets a slot in segments of this size; longer ones are large objects and get
   an extent. */
static inline uint64_t slot_record_max(uint64_t segment_bytes)
{
	uint64_t part = segment_bytes / STORE_SLOT_RECORD_PART;

	return part < STORE_SLOT_RECORD_MOST ? part : STORE_SLOT_RECORD_MOST;
}

#endif
