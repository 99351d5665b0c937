/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flash file or block device, opened to be read and nothing else: O_RDONLY, no lock taken, so that a
 * daemon neither notices nor waits. Reads bypass the page cache (O_DIRECT) where the file system can;
 * elsewhere cached pages are dropped before each read, because a daemon's direct writes need not
 * reach them.
 *
 * Errors: what opening finds out is told in words and as the program's exit status (tools/common/args.h);
 * what can't be read later becomes zeros and is counted, so that one bad sector hides nothing else.
 *
 * Threads: opened and closed by one; everything else from any, as nothing changes in between.
 */
#ifndef FS_TOOLS_INSPECT_FLASH_H
#define FS_TOOLS_INSPECT_FLASH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/inspect/format.h"

#define FLASH_PROBLEM_BYTES 512

/* One of the two copies of the superblock. */
struct flash_copy {
	enum format_verdict verdict;
	bool unreadable;
	struct format_super super; /* set when the verdict is FORMAT_GOOD or FORMAT_UNKNOWN */
};

struct flash {
	int fd;
	bool direct;
	bool block_device;
	uint64_t bytes; /* of the file or device */
	struct flash_copy copies[FORMAT_COPIES];
	struct format_super super; /* the copy that counts, as it was at the opening */
};

/* Pages that could not be read. */
struct flash_unread {
	uint64_t pages;
	uint64_t first; /* offset on the device of the first one, if there are any */
	int error; /* errno of it; 0: it lies beyond the end */
};

/*
 * 0; or EXIT_TROUBLE (no such file, not a flash, another version) or EXIT_WRONG (a flash whose
 * superblock is broken), and then a sentence without the path in problem. *flash is to be closed in
 * each case.
 */
FS_MUST_CHECK int flash_open(struct flash *flash, const char *path, char problem[FLASH_PROBLEM_BYTES]);
void flash_close(struct flash *flash);

/*
 * Reads bytes from offset on; both and the buffer are multiples of a page. What can't be read is zero
 * in the buffer and added to *unread (which the caller has set up).
 */
void flash_read(const struct flash *flash, void *buffer, uint64_t bytes, uint64_t offset, struct flash_unread *unread);

/*
 * Reads both copies anew: false when none is good. Reading them again while a daemon is at it is
 * part of this: what differs for a moment is not told.
 */
bool flash_read_super(const struct flash *flash, struct flash_copy copies[FORMAT_COPIES], struct format_super *super);

/* Is there a daemon that holds its lock on the file now? Asks only: takes no lock. */
bool flash_in_use(const struct flash *flash);

#endif
