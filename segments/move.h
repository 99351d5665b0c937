/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves the flash to another device while it serves: a further part of segments.h.
 *
 * A slot names a segment by its number, and a table leads from the number to its home, a device and an offset (sLSM-Tree:
 * what moves is named once). So a move changes that table alone, and no slot.
 *
 *   COPYING   live segments are copied in pieces; one that is written anew meanwhile is copied again. The rest of a new
 *             file is allocated
 *   EMPTYING  the new device is smaller: segments without room there are reclaimed by the caller
 *   READY     the new device has a durable copy of each live segment: the caller calls seg_move_switch
 *   LEAVING   all homes are on the new device; the old one is kept open for reads that have begun there
 *
 * Until the switch, the old device is used and written as before, so that an end in any way leaves it as it would be
 * without a move. The new one has no superblock. The switch is one write of the superblock there. Its attach epoch is
 * SEG_MOVE_EPOCHS later, so that starts with the old device by mistake don't reach it, and the old superblock is erased
 * then.
 *
 * On a smaller device the numbers stay as many as they were, for slots have room for them: those without a home there are
 * never written. The superblock tells how many there are, so that the next start makes an index and a region of the same
 * shape (seg_read_shape).
 *
 * Why a read is right at any time: a segment that is pinned doesn't change, so that both homes have the same bytes. Before
 * a segment is written again its pins are gone, and a later pin sees the new home. The old device is closed when nobody
 * reads from it any more (homes_internal.h).
 *
 * Threads: the cleaner. Errors: codes of base/error.h.
 */
#ifndef FS_SEGMENTS_MOVE_H
#define FS_SEGMENTS_MOVE_H

#include "segments/segments.h"

#define SEG_MOVE_EPOCHS (1u << 20)

enum seg_move_phase { SEG_MOVE_NONE, SEG_MOVE_COPYING, SEG_MOVE_EMPTYING, SEG_MOVE_READY, SEG_MOVE_LEAVING };

struct seg_move_config {
	const char *path; /* of a file (made when missing) or a block device */
	struct dev
		*device; /* used instead of path; it is of the old one's kind, and belongs to seg. NULL: path is used */
	uint64_t flash_bytes; /* as in seg_config; 0: those of the present file, or as many as the old device has */
};

/* Opens the device, erases a superblock there, and begins to move the flash to it. No move is under way. FS_OK. Else reason
   has a text for operators, and nothing has changed; codes of seg_open, with FS_ERANGE for a size without room for two
   segments. Waits for the device. */
FS_MUST_CHECK int seg_move_begin(struct segments *seg, const struct seg_move_config *config, char reason[256]);

struct seg_moved {
	enum seg_move_phase phase;
	uint64_t bytes; /* written to the new device by this step */
	uint32_t copied, live; /* of the segments that have room there */
	uint32_t segment; /* EMPTYING: the one to be reclaimed next */
	uint64_t unreadable; /* pages that couldn't be read, whose records are lost, so far */
};

/* Goes on by about a MiB. paced: only with what must not wait, segments that were written anew. FS_OK, with *out. FS_EIO with
   errno: the new device has failed, and the caller calls seg_move_cancel. Waits for the devices. */
FS_MUST_CHECK int seg_move_step(struct segments *seg, bool paced, struct seg_moved *out);
/* Returns the attach epoch that seg_move_switch will write. */
uint64_t seg_move_epoch(const struct segments *seg);
/* READY, and nothing was written since that step: makes the new device the flash, with the region of that id (0: none). FS_OK:
   the superblock is durable, and all segments are there. FS_EIO with errno, FS_ENOMEM: the flash is the old one, and the
   caller calls seg_move_cancel. */
FS_MUST_CHECK int seg_move_switch(struct segments *seg, uint64_t region_id);
/* Gives up a move before its switch. A file that it has made is removed. */
void seg_move_cancel(struct segments *seg);
/* Returns the bytes of the device that the flash is moved to, or was last. A move is under way. */
uint64_t seg_move_bytes(const struct segments *seg);

/* ---- the start after a move to a smaller device ------------------------------------------------ */

/* The shape of a flash, by its superblock. */
struct seg_shape {
	uint32_t segments, functions;
	uint64_t segment_bytes;
	uint32_t
		index_segments; /* that its index was made for, before it was moved to a smaller device; 0: as many as segments */
	uint64_t index_flash_bytes; /* with index_segments: the size of the flash then */
	uint64_t flash_bytes;
	uint64_t asked_bytes; /* of which flash_bytes are all or what had room; 0: not known */
	bool clean; /* its last run ended cleanly */
};
/* Reads the shape of the flash at config->path, or of config->device, which stays open; changes and locks nothing. False: there
   is none that could be used. Any thread; reads the superblock. */
FS_MUST_CHECK bool seg_read_shape(const struct seg_config *config, struct seg_shape *out);

#endif
