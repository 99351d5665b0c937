/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a segment, judged by its first and its last page.
 *
 *   header page     tail              state
 *   whole           of this header    COMPLETE
 *   whole           anything older    UNFINISHED: being written (WRITING), or cut off (TORN)
 *   zeros           none              EMPTY
 *   none of ours    none of ours      STRANGE: left from before the flash was laid out
 *   all else                          BROKEN, with a reason
 *
 * A daemon writes the header first and the tail last, one segment at a time. A segment that was cut off
 * (the power failed, or a write did) is no damage, because nobody reads it. So UNFINISHED means WRITING
 * when a daemon has the flash in use and there is no younger segment, and TORN otherwise.
 *
 * Threads: any; nothing is shared.
 */
#ifndef FS_TOOLS_INSPECT_SEGMENT_H
#define FS_TOOLS_INSPECT_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/inspect/flash.h"
#include "tools/inspect/format.h"

enum segment_state {
	SEGMENT_EMPTY,
	SEGMENT_COMPLETE,
	SEGMENT_WRITING,
	SEGMENT_TORN,
	SEGMENT_STRANGE,
	SEGMENT_BROKEN,
	SEGMENT_MISSING, /* the file ends before it does */
	SEGMENT_STATES,
};

#define SEGMENT_WHY_BYTES 128

struct segment {
	uint32_t number;
	enum segment_state state;
	bool header_good; /* the header belongs to this flash, and its fields are valid */
	char why[SEGMENT_WHY_BYTES]; /* of all states but EMPTY and COMPLETE */
	struct format_header header;
	struct format_tail tail;
};

/* Returns static text. */
const char *segment_state_text(enum segment_state state);

/* Returns whether the state is a failed check. */
static inline bool segment_failed(const struct segment *segment)
{
	return segment->state == SEGMENT_BROKEN || segment->state == SEGMENT_MISSING;
}

/* Judges by the two pages, each FORMAT_PAGE bytes. An unfinished segment is TORN here. */
void segment_judge(const struct format_super *super, uint32_t number, bool block_device, const uint8_t *first_page,
		   const uint8_t *last_page, struct segment *out);

/*
 * Reads the two pages and judges. A write under way on a flash in use is not reported as damage: a
 * doubtful segment is judged again a moment later, with the superblock of that time. newest: the highest
 * known sequence number; only from there on may a segment be WRITING. Returns 0 or FS_ENOMEM.
 */
FS_MUST_CHECK int segment_look(const struct flash *flash, uint32_t number, uint64_t newest, struct segment *out);

/* Waits for a moment as segment_look does, and reads the superblock anew. *super stays when the layout has changed or
   no copy is whole. */
void segment_wait(const struct flash *flash, struct format_super *super);

/* Marks a complete segment that was overwritten while it was read. */
void segment_set_writing(struct segment *segment);

/* Stores in *changed whether the segment was overwritten since the look at it, so that reads since then prove nothing.
   Returns 0 or FS_ENOMEM. */
FS_MUST_CHECK int segment_changed(const struct flash *flash, const struct segment *segment, bool *changed);

/*
 * Looks at all segments. *out gets an array of super.segments, which the caller frees with mem_free;
 * *newest gets the highest sequence number of all headers. Returns 0 or FS_ENOMEM.
 */
FS_MUST_CHECK int segment_look_at_all(const struct flash *flash, struct segment **out, uint64_t *newest);

/* Returns whether the last start may serve the segment: it wrote it, or it was warm, and so were all starts since the
   one that wrote it. */
static inline bool segment_may_be_served(const struct format_super *super, const struct segment *segment)
{
	return segment->header.attach_epoch >= super->first_epoch;
}

/* Returns the share of the extents and data area that records take, computed like the daemon's statistics. */
double segment_fill(const struct segment *segment);

#endif
