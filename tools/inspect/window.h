/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A window that moves over a segment from its start to its end. Each byte is read once, in large pieces,
 * and a record of any length is whole in memory.
 *
 * Threads: one at a time. Ownership: the window keeps its memory until window_fini, also from one
 * segment to the next. Errors: only memory; unreadable pages are zeros and counted in unread.
 */
#ifndef FS_TOOLS_INSPECT_WINDOW_H
#define FS_TOOLS_INSPECT_WINDOW_H

#include <stdint.h>

#include "tools/inspect/flash.h"

#define WINDOW_PIECE_BYTES (4u << 20)

struct window {
	const struct flash *flash;
	uint64_t start, end; /* of the segment, on the device */
	uint8_t *buffer; /* [from, to) of the segment, multiples of a page */
	uint64_t capacity, from, to;
	struct flash_unread unread; /* of this segment */
	uint64_t read_bytes; /* of all segments */
};

/* init allocates nothing. The flash outlives the window. */
void window_init(struct window *window, const struct flash *flash);
void window_fini(struct window *window);

/* Moves to the start of a segment. */
void window_open(struct window *window, uint32_t number);

/*
 * Returns the length bytes at an offset of the segment; both ends lie in it. They are valid until the next call. Calls
 * with falling offsets work, but read again. NULL means that memory is out.
 */
const uint8_t *window_at(struct window *window, uint64_t offset, uint64_t length);

#endif
