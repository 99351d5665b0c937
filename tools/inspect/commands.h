/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands. Each prints its report and returns the exit status: 0, EXIT_WRONG when a check
 * failed, or EXIT_TROUBLE after a line on standard error.
 *
 * Threads: the main thread. Commands that read many segments start threads of their own (scan.h).
 */
#ifndef FS_TOOLS_INSPECT_COMMANDS_H
#define FS_TOOLS_INSPECT_COMMANDS_H

#include <jansson.h>

#include "base/error.h"
#include "tools/inspect/flash.h"
#include "tools/inspect/options.h"
#include "tools/inspect/segment.h"

/* These functions execute a command each; flash is open. */
FS_MUST_CHECK int command_list(const struct inspect_options *options, const struct flash *flash);
FS_MUST_CHECK int command_verify(const struct inspect_options *options, const struct flash *flash);
FS_MUST_CHECK int command_find(const struct inspect_options *options, const struct flash *flash);
FS_MUST_CHECK int command_dump(const struct inspect_options *options, const struct flash *flash);
FS_MUST_CHECK int command_segment(const struct inspect_options *options, const struct flash *flash);

/* problem: what flash_open has to say, as a start goes on where it can't; "": nothing. */
FS_MUST_CHECK int command_state(const struct inspect_options *options, const struct flash *flash, const char *problem);

/* ---- shared by commands ---------------------------------------------------------------------- */

/* Looks at all segments of the flash; the caller frees them with mem_free. Ends the program when memory is out. */
struct segment *command_segments(const struct flash *flash, uint64_t *newest);

/*
 * Returns the numbers of the complete segments, youngest first: those that may be served only, or with all_starts
 * all. The caller frees them with mem_free.
 */
uint32_t *command_youngest_first(const struct flash *flash, const struct segment *segments, bool all_starts,
				 uint32_t *count);

/* Print the superblock's part of list as text, and make it as JSON, which the caller owns. */
void superblock_print(const struct inspect_options *options, const struct flash *flash, bool in_use);
json_t *superblock_json(const struct flash *flash, bool in_use);

/* Returns the JSON form of a segment in all commands: state, reason, and the header's fields if it has one. The caller
   owns it. */
json_t *segment_json(const struct segment *segment);

/* Returns a remark about one copy of the superblock, or NULL. *failure says that a check failed; otherwise it is a
   note. */
const char *superblock_copy_remark(const struct flash_copy copies[FORMAT_COPIES], unsigned copy, bool *failure);

/* The location of a key's youngest record: find.c looks for it, dump.c shows it. */
struct find_location {
	uint32_t segment;
	uint64_t offset;
};
/* Returns false if no record of options->key was found. Reads all segments. */
FS_MUST_CHECK bool find_youngest(const struct inspect_options *options, const struct flash *flash,
				 struct find_location *location);

#endif
