/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills: writes of empty segments that a budget doesn't hold back. */
#ifndef FS_SEGMENTS_FILL_H
#define FS_SEGMENTS_FILL_H

#include "segments/segments.h"

/*
 * A fill is one write of all segments beyond the budget of writes, as a flash that holds nothing is worth nothing. One may
 * begin a day, by the wall clock, whatever the number of starts: the superblock keeps when the last one began and what is
 * left of it. wall_s: seconds since 1970. While the clock is behind the last beginning, none begins.
 */

/* May another segment be written as a part of a fill? Any thread, no lock. */
bool seg_fill_allows(const struct segments *seg, int64_t wall_s);
/* Takes a segment out of the fill. Once in a sixteenth of the flash it writes the superblock, and begins a new fill if one
   may begin: what is left of the last one lapses. FS_OK; FS_EBUSY: nothing is left, and none may begin yet; FS_EIO,
   FS_ENOMEM: nothing is taken. The cleaner; waits for the device. */
FS_MUST_CHECK int seg_fill_take(struct segments *seg, int64_t wall_s);

#endif
