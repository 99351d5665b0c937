/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pass over a complete segment that checks every byte of it: the footer's list and filter against
 * their sums, each record that the list names against its keyed check, and that all bytes between are
 * zeros. Where one record is broken, the list leads on to the next; without a list no record is found
 * (the header says how many are missed).
 *
 * What can't be checked: that a record lies where its key's slot would look for it. That takes the
 * number of buckets of the daemon's index, which is not on flash.
 *
 * Threads: any, a window each. Errors: FS_ENOMEM; whatever is wrong with the bytes is an event.
 */
#ifndef FS_TOOLS_INSPECT_WALK_H
#define FS_TOOLS_INSPECT_WALK_H

#include "tools/inspect/segment.h"
#include "tools/inspect/window.h"

struct walk_events {
	/* A record that the list names and whose lengths can be; good: its check holds. It points into
	   memory that is gone after the call. In order of offset. */
	void (*record)(void *context, const struct format_record *record, bool good);
	/* Something fails at this offset of the segment; text is gone after the call. */
	void (*failure)(void *context, uint64_t offset, const char *text);
};

struct walk_totals {
	uint64_t records; /* that are good */
	uint64_t bytes; /* of those */
	uint64_t failures;
	uint64_t largest_gap, largest_gap_offset; /* zeros between records, and to the areas' ends */
	bool overtaken; /* the footer is no longer the one of `segment`: it is being rewritten */
};

/* segment: COMPLETE. super: the superblock whose reserves count. */
FS_MUST_CHECK int walk_segment(const struct format_super *super, const struct segment *segment, struct window *window,
			       const struct walk_events *events, void *context, struct walk_totals *totals);

#endif
