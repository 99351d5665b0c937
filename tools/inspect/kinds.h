/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kind of a segment asks of its records, beyond each record's own bytes: in a segment of bins, that a key lies in
 * its bin, that records follow each other without a gap, and that the last one of a bin is marked; in a segment of
 * a chain, that keys and values are those of a chain; elsewhere, that no record is marked.
 *
 * Threads: any; nothing is shared. Written from segments/FORMAT.md alone.
 */
#ifndef FS_TOOLS_INSPECT_KINDS_H
#define FS_TOOLS_INSPECT_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/inspect/format.h"

struct kinds_check {
	const struct format_super *super;
	const struct format_header *header;
	uint32_t records; /* so far */
	bool before_known; /* the record before is good */
	uint64_t before, before_end; /* it lies there */
	bool before_marked;
	uint32_t least_partition; /* that the next record of a chain may have */
};

/* Begins with the first record. What is pointed to outlives *check. */
void kinds_begin(struct kinds_check *check, const struct format_super *super, const struct format_header *header);
/* Takes the next good record, of `length` bytes in all. Returns what is wrong with it as static text, or NULL. If the fault is
   the one of the record before, *offset is that record's. */
const char *kinds_take(struct kinds_check *check, const struct format_record *record, uint64_t length,
		       uint64_t *offset);
/* Takes a broken record in place of a good one. */
void kinds_take_broken(struct kinds_check *check);
/* Ends after the last record. Returns and sets what kinds_take does. */
const char *kinds_end(const struct kinds_check *check, uint64_t *offset);

#endif
