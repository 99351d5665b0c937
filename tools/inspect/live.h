/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many of a segment's records can still be live. The file alone tells upper bounds only: which
 * records are current stands in the daemon's memory, where an overwrite, a delete, a flush_all or an
 * eviction leaves no trace on flash. What the file does tell, youngest segment first:
 *
 *   superseded  a younger segment holds a record of the same key
 *   expired     its time is over; needs the daemon's uptime, and none of the two above
 *   live        the rest: at most these
 *
 * A segment of an earlier start than the last is not served: nothing in it is live.
 *
 * Threads: the main thread; starts those of scan.h.
 */
#ifndef FS_TOOLS_INSPECT_LIVE_H
#define FS_TOOLS_INSPECT_LIVE_H

#include "tools/inspect/flash.h"
#include "tools/inspect/options.h"
#include "tools/inspect/segment.h"

struct live_count {
	bool known; /* false: of an earlier start, not complete, or overwritten meanwhile */
	uint64_t live, superseded, expired;
	uint64_t expiring; /* of the live ones, those that have an expiry */
	uint64_t failures; /* of the walk: records that could not be counted, or worse */
};

/*
 * Reads all records of the last start's segments and counts; says on standard error beforehand what
 * that takes, unless quiet. An array of super.segments, freed with mem_free.
 */
struct live_count *live_counts(const struct inspect_options *options, const struct flash *flash,
			       const struct segment *segments, uint64_t newest);

#endif
