/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves the flash to another file or device while clients are served. A further header of the store's interface.
 *
 * The cleaner copies the segments and then switches (segments/move.h). Until then the old flash goes on as before, and
 * whatever ends the move, a failure of the new device, a cancel, a stop or a kill, leaves it valid. From the switch on the
 * objects are in the new one alone: the next start must name it by --flash-path, with its size. Nothing is warm in the old
 * one. A larger flash is used in full from the next start on.
 */
#ifndef FS_STORE_MOVE_H
#define FS_STORE_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct store;
struct dev;

#define STORE_MOVE_PATH_BYTES 4096
#define STORE_MOVE_REASON_BYTES 512

enum store_move_state {
	STORE_MOVE_NONE, /* there was none since the start */
	STORE_MOVE_ASKED, /* for the cleaner to begin */
	STORE_MOVE_COPYING,
	STORE_MOVE_EMPTYING, /* segments that have no room on a smaller flash are reclaimed */
	STORE_MOVE_LEAVING, /* the new flash is in use; reads from the old one are still under way */
	STORE_MOVE_DONE,
	STORE_MOVE_CANCELLED,
	STORE_MOVE_FAILED
};

struct store_move {
	const char *path; /* absolute; of a file, made when missing, or a block device. Copied */
	struct dev *device; /* used in place of the file, in tests; the store's from then on. NULL: none */
	uint64_t flash_bytes; /* of the new flash; 0: as large as the present file, or as the old flash */
	uint64_t rate; /* bytes per second; 0: no limit. What is written anew meanwhile is copied at once */
};
/* Asks for a move. FS_OK: the cleaner begins it soon. Else reason says why not, and *move is the caller's: FS_EINVAL,
   without flash, or with a path that is not absolute or too long; FS_EBUSY, one is under way. Any
   thread; doesn't wait. */
FS_MUST_CHECK int store_move_begin(struct store *store, const struct store_move *move, char reason[256]);
/* Asks for its end. FS_OK: the cleaner ends it soon; FS_ENOTFOUND: none is under way, or it has switched. Any thread. */
FS_MUST_CHECK int store_move_cancel(struct store *store);

/* The last move. */
struct store_move_status {
	enum store_move_state state;
	uint32_t segments, segments_copied; /* that are to be copied; that are there in their present state */
	uint64_t bytes; /* written to the new flash */
	uint64_t unreadable_pages; /* of the old flash: their records are lost */
	char path[STORE_MOVE_PATH_BYTES]; /* "": none */
	char reason[STORE_MOVE_REASON_BYTES]; /* why it has failed; else "" */
};
/* Fills out. Any thread; takes a leaf lock. */
void store_move_get_status(struct store *store, struct store_move_status *out);
static inline bool store_move_is_under_way(const struct store_move_status *move)
{
	return move->state >= STORE_MOVE_ASKED && move->state <= STORE_MOVE_LEAVING;
}
/* Returns a state in a word, for reports. Static storage. */
const char *store_move_word(enum store_move_state state);

#endif
