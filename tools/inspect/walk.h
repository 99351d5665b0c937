/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pass over a complete segment that checks every byte: the footer's list and filter against their
 * sums, each record of the list against its keyed check, and all bytes between records for zeros. After a
 * broken record the list leads on to the next one. Without a list no record is found (the header says how
 * many are missed). kinds.h adds what the segment's kind asks for.
 *
 * The walk can't check whether a record lies where its key's slot leads: that takes the number of buckets
 * of the daemon's index, which is not on flash.
 *
 * Threads: any, each with its own window. Errors: FS_ENOMEM; faults of the bytes are events.
 */
#ifndef FS_TOOLS_INSPECT_WALK_H
#define FS_TOOLS_INSPECT_WALK_H

#include "tools/inspect/segment.h"
#include "tools/inspect/window.h"

struct walk_events {
	/* Gets each record of the list with possible lengths, in order of offset. good: its check holds. The record points
	   into memory that is gone after the call. */
	void (*record)(void *context, const struct format_record *record, bool good);
	/* Gets a failed check and its offset in the segment; text is gone after the call. */
	void (*failure)(void *context, uint64_t offset, const char *text);
};

struct walk_totals {
	uint64_t records; /* good ones */
	uint64_t bytes; /* of the good records */
	uint64_t failures;
	uint64_t largest_gap, largest_gap_offset; /* zeros between records, and to the areas' ends */
	bool overtaken; /* the footer no longer belongs to `segment`, which is being rewritten */
};

/* Walks over a COMPLETE segment. super is the superblock whose reserves count. FS_OK or FS_ENOMEM. */
FS_MUST_CHECK int walk_segment(const struct format_super *super, const struct segment *segment, struct window *window,
			       const struct walk_events *events, void *context, struct walk_totals *totals);

#endif
