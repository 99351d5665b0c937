/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of the region's area, behind its fixed part: each takes the lowest gap that is large enough. There are few. */
#include <string.h>

#include "flashindex/frugal/frugal_internal.h"

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* Where the blocks begin. */
static uint64_t blocks_from(const struct frugal *frugal)
{
	return round_up(frugal->fixed_bytes, region_unit(frugal->region));
}

/* Puts a block into the list at this number. */
static void list_insert(struct frugal *frugal, unsigned at, const struct block *block)
{
	must(frugal->used_count < BLOCKS_MOST && at <= frugal->used_count);
	memmove(&frugal->used[at + 1], &frugal->used[at], (frugal->used_count - at) * sizeof(*block));
	frugal->used[at] = *block;
	frugal->used_count++;
}

int block_take(struct frugal *frugal, uint64_t bytes, struct block *out)
{
	uint64_t from = blocks_from(frugal), most = region_most(frugal->region, REGION_FRUGAL);
	unsigned at = 0;

	*out = (struct block){ .bytes = round_up(bytes, region_unit(frugal->region)) };
	if (bytes == 0 || bytes > most || frugal->used_count == BLOCKS_MOST)
		return FS_ENOMEM;
	for (; at < frugal->used_count && frugal->used[at].offset - from < out->bytes; at++)
		from = frugal->used[at].offset + frugal->used[at].bytes;
	out->offset = from;
	if (region_commit_part(frugal->region, REGION_FRUGAL, from, out->bytes) != FS_OK) {
		out->bytes = 0;
		return FS_ENOMEM;
	}
	list_insert(frugal, at, out);
	atomic_fetch_add_explicit(&frugal->memory, out->bytes, memory_order_relaxed);
	return FS_OK;
}

void block_give(struct frugal *frugal, struct block *block)
{
	unsigned at = 0;

	if (block->bytes == 0)
		return;
	while (at < frugal->used_count && frugal->used[at].offset != block->offset)
		at++;
	must(at < frugal->used_count && frugal->used[at].bytes == block->bytes);
	region_decommit_part(frugal->region, REGION_FRUGAL, block->offset, block->bytes);
	atomic_fetch_sub_explicit(&frugal->memory, block->bytes, memory_order_relaxed);
	frugal->used_count--;
	memmove(&frugal->used[at], &frugal->used[at + 1], (frugal->used_count - at) * sizeof(*block));
	block->bytes = 0;
}

bool block_attach(struct frugal *frugal, const struct block *block)
{
	uint64_t unit = region_unit(frugal->region), most = region_most(frugal->region, REGION_FRUGAL);
	unsigned at = 0;

	if (block->bytes == 0 || block->bytes % unit || block->offset % unit || block->bytes > most ||
	    block->offset > most - block->bytes || block->offset < blocks_from(frugal) ||
	    frugal->used_count == BLOCKS_MOST)
		return false;
	while (at < frugal->used_count && frugal->used[at].offset < block->offset)
		at++;
	if (at > 0 && frugal->used[at - 1].offset + frugal->used[at - 1].bytes > block->offset)
		return false;
	if (at < frugal->used_count && block->offset + block->bytes > frugal->used[at].offset)
		return false;
	if (region_commit_part(frugal->region, REGION_FRUGAL, block->offset, block->bytes) != FS_OK)
		return false;
	list_insert(frugal, at, block);
	atomic_fetch_add_explicit(&frugal->memory, block->bytes, memory_order_relaxed);
	return true;
}

void blocks_tidy(struct frugal *frugal)
{
	uint64_t from = blocks_from(frugal);

	for (unsigned i = 0; i < frugal->used_count; i++) {
		region_drop_part(frugal->region, REGION_FRUGAL, from, frugal->used[i].offset - from);
		from = frugal->used[i].offset + frugal->used[i].bytes;
	}
	region_drop_part(frugal->region, REGION_FRUGAL, from, region_most(frugal->region, REGION_FRUGAL) - from);
}
