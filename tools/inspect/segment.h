/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a segment is, by its first and its last page.
 *
 *   header page     tail              state
 *   whole           of this header    COMPLETE
 *   whole           anything older    UNFINISHED: being written (WRITING), or cut off (TORN)
 *   zeros           none              EMPTY
 *   none of ours    none of ours      STRANGE: left from before the flash was laid out
 *   all else                          BROKEN, and why
 *
 * A daemon writes the header first and the tail after everything else, one segment at a time. What is
 * cut off (the power went, or a write failed) is no damage: nobody reads it. So UNFINISHED is WRITING
 * when a daemon has the flash in use and no younger segment is there, and TORN otherwise.
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
	bool header_good; /* a header of this flash: the fields can be relied on */
	char why[SEGMENT_WHY_BYTES]; /* of all states but EMPTY and COMPLETE */
	struct format_header header;
	struct format_tail tail;
};

const char *segment_state_text(enum segment_state state);

/* States that are a failed check. */
static inline bool segment_failed(const struct segment *segment)
{
	return segment->state == SEGMENT_BROKEN || segment->state == SEGMENT_MISSING;
}

/* By the two pages, each FORMAT_PAGE bytes. What is unfinished is TORN here. */
void segment_judge(const struct format_super *super, uint32_t number, bool block_device, const uint8_t *first_page,
		   const uint8_t *last_page, struct segment *out);

/*
 * Reads the two pages and judges. What is under way on a flash in use is not told as damage: it is
 * looked at again a moment later, with the superblock of then. newest: the highest sequence number
 * known; only from there on may a segment be WRITING.
 */
FS_MUST_CHECK int segment_look(const struct flash *flash, uint32_t number, uint64_t newest, struct segment *out);

/* What segment_look calls a moment: waits, and reads the superblock anew (*super is kept when the layout
   has changed or no copy is whole). */
void segment_wait(const struct flash *flash, struct format_super *super);

/* A complete segment that was overwritten under the reader. */
void segment_set_writing(struct segment *segment);

/* Has it been overwritten since, so that what was read in between proves nothing? */
FS_MUST_CHECK int segment_changed(const struct flash *flash, const struct segment *segment, bool *changed);

/*
 * Looks at all of a flash: an array of super.segments in *out, freed with mem_free. *newest: the
 * highest sequence number of all headers.
 */
FS_MUST_CHECK int segment_look_at_all(const struct flash *flash, struct segment **out, uint64_t *newest);

/* Is the start that wrote it the one that counts? A daemon serves no segment of an earlier start. */
static inline bool segment_of_last_start(const struct format_super *super, const struct segment *segment)
{
	return segment->header.attach_epoch == super->attach_epoch;
}

/* Share of the extents and data area that records take, as the daemon's statistics count it. */
double segment_fill(const struct segment *segment);

#endif
