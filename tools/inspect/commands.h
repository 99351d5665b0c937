/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands: each prints what was asked for and returns the exit status, 0, EXIT_WRONG when
 * something failed its check, or EXIT_TROUBLE after a line on standard error.
 *
 * Threads: the main thread; what reads much starts its own (scan.h).
 */
#ifndef FS_TOOLS_INSPECT_COMMANDS_H
#define FS_TOOLS_INSPECT_COMMANDS_H

#include <jansson.h>

#include "tools/inspect/flash.h"
#include "tools/inspect/options.h"
#include "tools/inspect/segment.h"

int command_list(const struct inspect_options *options, const struct flash *flash);
int command_verify(const struct inspect_options *options, const struct flash *flash);
int command_find(const struct inspect_options *options, const struct flash *flash);
int command_dump(const struct inspect_options *options, const struct flash *flash);
int command_segment(const struct inspect_options *options, const struct flash *flash);

/* ---- what they share ------------------------------------------------------------------------- */

/* All segments of the flash; ends the program when memory is out. Freed with mem_free. */
struct segment *command_segments(const struct flash *flash, uint64_t *newest);

/*
 * The numbers of the complete segments, youngest first; of those of the last start, or of all. Freed
 * with mem_free.
 */
uint32_t *command_youngest_first(const struct flash *flash, const struct segment *segments, bool all_starts,
				 uint32_t *count);

/* The superblock's part of list, as text and as JSON. */
void superblock_print(const struct inspect_options *options, const struct flash *flash, bool in_use);
json_t *superblock_json(const struct flash *flash, bool in_use);

/* A segment as all commands give it to programs: state, why, and the header's fields if there is one. */
json_t *segment_json(const struct segment *segment);

/* What is to be said of one of its copies, or NULL. *failure: a failed check, else a note. */
const char *superblock_copy_remark(const struct flash_copy copies[FORMAT_COPIES], unsigned copy, bool *failure);

/* Where the youngest record of a key lies: find.c looks for it, dump.c shows it. */
struct find_place {
	uint32_t segment;
	uint64_t offset;
};
bool find_youngest(const struct inspect_options *options, const struct flash *flash, struct find_place *place);

#endif
