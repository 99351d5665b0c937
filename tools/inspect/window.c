/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/window.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

static uint64_t page_down(uint64_t offset)
{
	return offset / FORMAT_PAGE * FORMAT_PAGE;
}

static uint64_t page_up(uint64_t offset)
{
	return page_down(offset + FORMAT_PAGE - 1);
}

void window_init(struct window *window, const struct flash *flash)
{
	*window = (struct window){ .flash = flash };
}

void window_fini(struct window *window)
{
	mem_free(window->buffer);
	window->buffer = NULL;
}

void window_open(struct window *window, uint32_t number)
{
	window->start = format_segment_offset(&window->flash->super, number);
	window->end = window->start + window->flash->super.segment_bytes;
	window->from = window->to = 0;
	window->unread = (struct flash_unread){ 0 };
}

/* Moves the bytes still needed, [from, window->to), to the front of a buffer of the given size. */
static bool move(struct window *window, uint64_t from, uint64_t bytes)
{
	uint64_t kept = from >= window->from && from < window->to ? window->to - from : 0;
	uint8_t *buffer = window->buffer;

	if (bytes > window->capacity) {
		buffer = mem_aligned(FORMAT_PAGE, bytes);
		if (!buffer)
			return false;
	}
	if (kept > 0)
		memmove(buffer, window->buffer + (from - window->from), kept);
	if (buffer != window->buffer) {
		mem_free(window->buffer);
		window->buffer = buffer;
		window->capacity = bytes;
	}
	window->from = from;
	window->to = from + kept;
	return true;
}

const uint8_t *window_at(struct window *window, uint64_t offset, uint64_t length)
{
	uint64_t segment_bytes = window->end - window->start;
	uint64_t from = page_down(offset), to = page_up(offset + length);

	must(length <= segment_bytes && offset <= segment_bytes - length);
	if (offset >= window->from && offset + length <= window->to)
		return window->buffer + (offset - window->from);
	if (to < from + WINDOW_PIECE_BYTES)
		to = from + WINDOW_PIECE_BYTES < segment_bytes ? from + WINDOW_PIECE_BYTES : segment_bytes;
	if (!move(window, from, to - from))
		return NULL;
	window->read_bytes += to - window->to;
	flash_read(window->flash, window->buffer + (window->to - window->from), to - window->to,
		   window->start + window->to, &window->unread);
	window->to = to;
	return window->buffer + (offset - window->from);
}
