/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of a server, hottest first: objects that were read since they were stored come before the others, and within
 * each group a later access before an earlier one. They come from the rows of "lru_crawler metadump all".
 *
 * A key takes its bytes, 5 and 16 bytes, up to twice as memory grows by doubling. With a limit no more than twice as
 * many keys are kept, and LISTING_SLACK.
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_DUMP_LISTING_H
#define FS_TOOLS_DUMP_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LISTING_SLACK 4096u

struct listed {
	const char *key;
	uint32_t bytes; /* of the object, as the server counts them */
	uint8_t key_bytes; /* 1 to 250 */
};

struct listing {
	uint64_t limit;
	size_t count, room; /* entries */
	struct listing_entry {
		uint64_t heat; /* the top bit: it was read; below: wall seconds of the last access */
		uint64_t at; /* in texts */
	} * entries;
	char *texts;
	size_t used, texts_room;
};

/* init with the most keys that are kept; fini frees. */
void listing_init(struct listing *listing, uint64_t limit);
void listing_fini(struct listing *listing);

/* Adds a row, which is cut in place and ends with a zero. FS_OK; FS_EINVAL: it is none. Ends the program when memory is
   out. */
FS_MUST_CHECK int listing_add(struct listing *listing, char *row);
/* Puts the hottest first, and drops what is beyond the limit. */
void listing_sort(struct listing *listing);
/* Returns a key by its place, which is below count. */
struct listed listing_get(const struct listing *listing, size_t place);

#endif
