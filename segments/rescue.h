/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves a failing segment to another home on the same device: a further part of segments.h.
 *
 * A drive may lose pages of a segment and keep the others. A read that fails makes its segment a failing one. It is copied
 * to the home of a FREE segment, page by page where a read fails; pages that can't be read become zeros, which no reader
 * takes for a record. One write of the superblock then changes both homes at once (sLSM-Tree: what moves is named once), and
 * no slot:
 *
 *               segment 7      segment 9 (FREE)                segment 7      segment 9
 *   before      home 7         home 9               after      home 9         home 7, bad: RETIRED for the life of the flash
 *
 * A segment of which all pages can be read stays where it is: its errors were passing ones.
 *
 * Why a read is right at any time: nothing is ever written to a bad home, so that a read which has begun there still gets
 * that segment's bytes, or an error. The other home held nothing that may be read, since its segment was FREE. A kill or a
 * power cut leaves either superblock; with the old one the copy is not named by anything.
 *
 * The superblock has room for the homes of some 256 bad ones; one segment in RESCUE_SHARE may lose its home. Beyond that a
 * failing segment stays, and its objects are dropped as they fail.
 *
 * Threads: the cleaner, which calls these between its writes. Errors: codes of base/error.h.
 */
#ifndef FS_SEGMENTS_RESCUE_H
#define FS_SEGMENTS_RESCUE_H

#include "segments/segments.h"

#define SEG_RESCUE_SHARE 8u
#define SEG_RESCUE_PAUSE_MS 60000u /* after a rescue that was not needed, or not possible */

/* Finds a LIVE segment that is failing. FS_OK, with *segment. FS_ENOTFOUND: there is none, or it isn't the time, because the
   device is offline, not allocated in full, or being moved, or the pause is not over. Looks at all segments after a read
   has failed; else costs nothing. */
FS_MUST_CHECK int seg_rescue_find(struct segments *seg, uint32_t *segment);
/* Begins the rescue of that segment. FS_OK; FS_EFULL: no segment is FREE; FS_ERANGE: too many homes are bad; FS_ENOMEM. */
FS_MUST_CHECK int seg_rescue_begin(struct segments *seg, uint32_t segment);
/* The segment counts as failing no more, until another read of it fails, and nothing is found until the pause is over. */
void seg_rescue_decline(struct segments *seg, uint32_t segment);

enum seg_rescue_end {
	SEG_RESCUE_NONE, /* none is under way */
	SEG_RESCUE_COPYING,
	SEG_RESCUE_DONE,
	SEG_RESCUE_NEEDLESS, /* all pages could be read */
	SEG_RESCUE_OVER, /* the segment was reclaimed, or the device went offline */
	SEG_RESCUE_FAILED /* the copy or the superblock could not be written */
};

struct seg_rescued {
	enum seg_rescue_end end;
	uint32_t segment, bad; /* bad: the segment that stays RETIRED from now on; DONE */
	uint32_t unreadable; /* pages so far */
	uint64_t bytes; /* written by this step */
	int error; /* FAILED: errno */
};

/* Copies about a MiB, or ends the rescue that is under way. Waits for the device. */
void seg_rescue_step(struct segments *seg, struct seg_rescued *out);

#endif
