/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number of a segment's records that can still be live. The file alone gives upper bounds only: the daemon's memory
 * knows the current records, and an overwrite, a delete, a flush_all or an eviction leaves no trace on flash. The file
 * tells, youngest segment first:
 *
 *   superseded  a younger segment holds a record of the same key
 *   expired     its time is over, and it is not superseded; this needs the daemon's uptime
 *   live        the rest: at most these
 *
 * Nothing is live in a segment that the last start may not serve (segment_may_be_served).
 *
 * Threads: the main thread, which starts those of scan.h.
 */
#ifndef FS_TOOLS_INSPECT_LIVE_H
#define FS_TOOLS_INSPECT_LIVE_H

#include "tools/inspect/flash.h"
#include "tools/inspect/options.h"
#include "tools/inspect/segment.h"

struct live_count {
	bool known; /* false: the segment may not be served, is not complete, or overwritten meanwhile */
	uint64_t live, superseded, expired;
	uint64_t expiring; /* of the live ones, those that have an expiry */
	uint64_t failures; /* of the walk: the figures may lack records */
};

/*
 * Reads all records of segments that may be served and counts. Before a long read, standard error says how
 * much is read, unless options are quiet. Returns an array of super.segments; the caller frees it with mem_free.
 */
struct live_count *live_counts(const struct inspect_options *options, const struct flash *flash,
			       const struct segment *segments, uint64_t newest);

#endif
