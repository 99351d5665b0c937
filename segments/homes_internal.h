/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where segments lie, and who may be reading there.
 *
 * A segment has a home: a device and an offset on it. Its number, which slots name, stays when the home changes (move.h,
 * rescue.h). The homes of a device are numbered like its segments, and each segment lies at the home of its number unless the
 * superblock tells another one. A
 * pinned segment doesn't change, so that its old home has the same bytes as the new one. But a device may be closed only when
 * nobody reads from it any more. Each reader, and each walk, counts its reads by device:
 *
 *   reader     adds to its count of the home's device; looks at the home again; reads if the device is the same
 *   cleaner    changes homes; looks at all counts; closes the device if they are zero
 *
 * Both orders are sequentially consistent, so that one of the two sees the other: a reader that a look has not seen finds
 * the new home. No pin has to go for it, which somebody might always hold.
 */
#ifndef FS_SEGMENTS_HOMES_INTERNAL_H
#define FS_SEGMENTS_HOMES_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"

struct segments;
struct dev;

#define SEG_DEVICES 2u /* that segments may lie on at a time: one, and while the flash is moved the next */

struct seg_home {
	struct dev *device;
	uint64_t offset; /* bytes */
	unsigned number; /* of the device in seg->devices */
};

/* The reads of one thread. next and previous are covered by seg->users_lock. */
struct home_user {
	_Atomic uint32_t reads[SEG_DEVICES]; /* under way, by the number of the device; written by that thread alone */
	struct home_user *next, **link;
};

/* Makes the thread's counts known, and takes them out again, when no read is under way. Any thread; takes a leaf lock. */
void home_user_init(struct segments *seg, struct home_user *user);
void home_user_fini(struct segments *seg, struct home_user *user);

/* Returns the home of a segment that the caller has pinned, or that is the cleaner's, for a read that is under way until
   home_leave. The user's thread. */
struct seg_home home_enter(const struct segments *seg, struct home_user *user, uint32_t segment);
static inline void home_leave(struct home_user *user, unsigned number)
{
	uint32_t reads = atomic_load_explicit(&user->reads[number], memory_order_relaxed);

	must(reads > 0);
	/* The device is done with what was read before. */
	atomic_store_explicit(&user->reads[number], reads - 1, memory_order_release);
}

/* May somebody be reading from the device of that number, which is no segment's home any more? The cleaner; takes a leaf
   lock. */
FS_MUST_CHECK bool homes_in_use(struct segments *seg, unsigned number);

#endif
