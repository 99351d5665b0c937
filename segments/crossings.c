/* SPDX-License-Identifier: BSD-3-Clause */
#include "segments/crossings_internal.h"

#include "segments/segments.h"

#define EIGHTH (SEG_PAGE / 8)
#define FIRST_FAR 9u
#define UNKNOWN 15u

/* Pages beyond the one in which a record begins, by code from FIRST_FAR on. */
static const uint8_t far_pages[UNKNOWN - FIRST_FAR] = { 2, 3, 4, 6, 8, 12 };

uint64_t crossings_bytes(uint64_t segment_bytes)
{
	return (segment_bytes / SEG_PAGE + 15) / 16 * 8;
}

static void fill(crossing_pair *map, uint64_t bytes, uint8_t pair)
{
	for (uint64_t i = 0; i < bytes; i++)
		atomic_store_explicit(&map[i], pair, memory_order_relaxed);
}

void crossings_clear(crossing_pair *map, uint64_t bytes)
{
	fill(map, bytes, 0);
}

void crossings_forget(crossing_pair *map, uint64_t bytes)
{
	fill(map, bytes, UNKNOWN << 4 | UNKNOWN);
}

static unsigned code_of(uint64_t offset, uint64_t length)
{
	uint64_t pages = (offset % SEG_PAGE + length - 1) / SEG_PAGE;
	unsigned code = FIRST_FAR;

	if (pages == 0)
		return 0;
	if (pages == 1)
		return 1 + (unsigned)(offset % SEG_PAGE / EIGHTH);
	while (code < UNKNOWN && far_pages[code - FIRST_FAR] < pages)
		code++;
	return code;
}

void crossings_note(crossing_pair *map, uint64_t offset, uint64_t length)
{
	uint64_t page = offset / SEG_PAGE;
	unsigned shift = page % 2 ? 4 : 0;
	unsigned pair = atomic_load_explicit(&map[page / 2], memory_order_relaxed);

	pair = (pair & ~(UNKNOWN << shift)) | code_of(offset, length) << shift;
	atomic_store_explicit(&map[page / 2], (uint8_t)pair, memory_order_relaxed);
}

uint64_t crossings_read_length(const crossing_pair *map, uint64_t offset, uint64_t length)
{
	uint64_t page = offset / SEG_PAGE, rest = SEG_PAGE - offset % SEG_PAGE;
	unsigned pair = atomic_load_explicit(&map[page / 2], memory_order_relaxed);
	unsigned code = page % 2 ? pair >> 4 : pair & UNKNOWN;

	if (code == UNKNOWN)
		return length;
	if (code >= FIRST_FAR)
		rest += (uint64_t)far_pages[code - FIRST_FAR] * SEG_PAGE;
	else if (code > 0 && offset % SEG_PAGE / EIGHTH >= code - 1)
		rest += SEG_PAGE;
	return rest < length ? rest : length;
}
