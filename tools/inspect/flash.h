/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flash file or block device, opened for reading only: O_RDONLY and without a lock, so that a daemon
 * neither notices nor waits. Reads bypass the page cache (O_DIRECT) if the file system can. Otherwise
 * cached pages are dropped before each read, because a daemon's direct writes need not reach them.
 *
 * Errors: opening reports a sentence and the program's exit status (tools/common/args.h). Later,
 * unreadable pages become zeros and are counted, so that one bad sector hides nothing else.
 *
 * Threads: one thread opens and closes; any thread may call the other functions in between, because
 * nothing changes.
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
	struct format_super super; /* the newest good copy, read at the opening */
};

/* Pages that could not be read. */
struct flash_unread {
	uint64_t pages;
	uint64_t first; /* offset on the device of the first one, if there are any */
	int error; /* errno of the first one; 0: it lies beyond the end */
};

/*
 * Returns 0, EXIT_TROUBLE (no such file, not a flash, another version) or EXIT_WRONG (a flash whose
 * superblock is broken). Unless it is 0, problem has a sentence without the path. The caller closes
 * *flash in each case.
 */
FS_MUST_CHECK int flash_open(struct flash *flash, const char *path, char problem[FLASH_PROBLEM_BYTES]);
void flash_close(struct flash *flash);

/*
 * Reads bytes from offset on; both and the buffer are multiples of a page. Unreadable pages are zeros
 * in the buffer and are added to *unread, which the caller has set up.
 */
void flash_read(const struct flash *flash, void *buffer, uint64_t bytes, uint64_t offset, struct flash_unread *unread);

/*
 * Reads both copies anew. Returns false when none is good. While a daemon uses the flash, copies that
 * differ are read again for a moment, so a write under way is not reported.
 */
FS_MUST_CHECK bool flash_read_super(const struct flash *flash, struct flash_copy copies[FORMAT_COPIES],
				    struct format_super *super);

/* Returns whether a daemon holds its lock on the file now. Takes no lock itself. */
bool flash_in_use(const struct flash *flash);

#endif
