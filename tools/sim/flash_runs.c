/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/flash_runs.h"

#include <math.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#define BLOCK_NONE UINT32_MAX
#define TABLES 16u /* of level 0 */
#define BLOCKS 8u /* of each level below */
#define TABLES_OF_BLOCK 2u
#define FACTOR 4u /* a block over one of the level before */
#define LARGE_BYTES 8192u /* beyond, merges leave an object where it is */
#define ONE_LEVEL_TABLES 64u
#define PART_MOST 4u /* of the flash: the largest object */

/* The tables in all levels when each is full: 16, and four times as many at each further one. */
static uint64_t tables_of(uint32_t levels)
{
	uint64_t tables = TABLES, all = TABLES;

	for (uint32_t level = 1; level < levels; level++)
		all += tables *= FACTOR;
	return all;
}

static uint64_t block_bytes(const struct flash_runs *runs, uint32_t level)
{
	uint64_t bytes = runs->table_bytes;

	for (uint32_t i = 0; i < level; i++)
		bytes *= i == 0 ? TABLES_OF_BLOCK * FACTOR : FACTOR;
	return bytes;
}

void runs_init(struct flash_runs *runs, struct object *objects, uint64_t capacity_bytes, uint64_t table_bytes,
	       uint32_t levels, flash_dropped *dropped, void *context)
{
	must(levels >= 1 && levels <= RUNS_LEVELS_MOST);
	*runs = (struct flash_runs){ .objects = objects,
				     .dropped = dropped,
				     .context = context,
				     .capacity_bytes = capacity_bytes,
				     .levels = levels };
	runs->table_bytes =
		table_bytes ? table_bytes : capacity_bytes / (levels > 1 ? tables_of(levels) : ONE_LEVEL_TABLES);
	if (!runs->table_bytes)
		runs->table_bytes = 1;
	for (uint32_t i = 0; i < levels; i++)
		runs->level[i].newest = runs->level[i].oldest = BLOCK_NONE;
	runs->block_free = BLOCK_NONE;
}

void runs_fini(struct flash_runs *runs)
{
	mem_free(runs->blocks);
}

/* ---- blocks ------------------------------------------------------------------------------------ */

static void blocks_grow(struct flash_runs *runs)
{
	uint32_t most = runs->blocks_most ? 2 * runs->blocks_most : 64;
	struct flash_block *blocks = mem_must_zalloc(most * sizeof(*blocks));

	for (uint32_t i = 0; i < runs->blocks_most; i++)
		blocks[i] = runs->blocks[i];
	for (uint32_t i = runs->blocks_most; i < most; i++) {
		blocks[i].older = runs->block_free;
		runs->block_free = i;
	}
	mem_free(runs->blocks);
	runs->blocks = blocks;
	runs->blocks_most = most;
}

/* Makes an empty block, the newest of its level. */
static uint32_t block_new(struct flash_runs *runs, uint32_t level, uint64_t run)
{
	struct flash_level *to = &runs->level[level];
	struct flash_block *block;
	uint32_t number;

	if (runs->block_free == BLOCK_NONE)
		blocks_grow(runs);
	number = runs->block_free;
	block = &runs->blocks[number];
	runs->block_free = block->older;
	*block = (struct flash_block){
		.run = run, .newer = BLOCK_NONE, .older = to->newest, .level = (uint8_t)level, .used = true
	};
	list_init(&block->live);
	if (to->newest == BLOCK_NONE)
		to->oldest = number;
	else
		runs->blocks[to->newest].newer = number;
	to->newest = number;
	to->count++;
	return number;
}

/* Takes a block without live objects out of its level. */
static void block_free(struct flash_runs *runs, uint32_t number)
{
	struct flash_block *block = &runs->blocks[number];
	struct flash_level *of = &runs->level[block->level];

	must(block->used && block->live.count == 0);
	if (block->newer == BLOCK_NONE)
		of->newest = block->older;
	else
		runs->blocks[block->newer].older = block->older;
	if (block->older == BLOCK_NONE)
		of->oldest = block->newer;
	else
		runs->blocks[block->older].newer = block->newer;
	of->count--;
	of->bytes -= block->bytes;
	runs->used_bytes -= block->bytes;
	runs->index_objects -= block->objects;
	runs->index_key_bytes -= block->key_bytes;
	block->used = false;
	block->older = runs->block_free;
	runs->block_free = number;
}

/* Puts an object that is in no list into a block. */
static void block_put(struct flash_runs *runs, uint32_t number, uint32_t object, uint32_t key_bytes)
{
	struct flash_block *block = &runs->blocks[number];
	uint64_t bytes = runs->objects[object].bytes;

	runs->objects[object].segment = number;
	runs->objects[object].state = OBJECT_ON_FLASH;
	list_push(&block->live, runs->objects, object);
	block->bytes += bytes;
	block->objects++;
	block->key_bytes += key_bytes;
	runs->level[block->level].bytes += bytes;
	runs->used_bytes += bytes;
	runs->index_objects++;
	runs->index_key_bytes += key_bytes;
}

/* ---- room -------------------------------------------------------------------------------------- */

static uint32_t deepest(const struct flash_runs *runs)
{
	uint32_t level = runs->levels - 1;

	while (level > 0 && runs->level[level].count == 0)
		level--;
	return level;
}

bool runs_drop(struct flash_runs *runs)
{
	uint32_t number = runs->level[deepest(runs)].oldest;
	struct flash_block *block = &runs->blocks[number];

	if (number == BLOCK_NONE)
		return false;
	while (block->live.count) {
		uint32_t object = block->live.tail;

		list_take(&block->live, runs->objects, object);
		runs->objects[object].state = OBJECT_OUT;
		runs->live_objects--;
		runs->dropped(runs->context, object);
	}
	block_free(runs, number);
	return true;
}

static void make_room(struct flash_runs *runs, uint64_t bytes)
{
	while (runs->used_bytes + bytes > runs->capacity_bytes && runs_drop(runs))
		;
}

/* ---- merges ------------------------------------------------------------------------------------ */

static uint64_t live_bytes(const struct flash_runs *runs, uint32_t level)
{
	uint64_t bytes = 0;

	for (uint32_t n = runs->level[level].oldest; n != BLOCK_NONE; n = runs->blocks[n].newer)
		bytes += runs->blocks[n].live.bytes;
	return bytes;
}

static uint32_t blocks_for(const struct flash_runs *runs, uint32_t level, uint64_t bytes)
{
	uint64_t each = block_bytes(runs, level);

	return bytes ? (uint32_t)((bytes + each - 1) / each) : 0;
}

/* Moves the live objects of a block into the blocks of a sorted run: those of one range of keys into each. Large objects
   only change their run. */
static void merge_block(struct flash_runs *runs, uint32_t from, const uint32_t *to, uint32_t outputs)
{
	/* What is known of a block's keys is their mean length. */
	uint64_t objects = runs->blocks[from].objects, key_bytes = objects ? runs->blocks[from].key_bytes / objects : 0;

	while (runs->blocks[from].live.count) {
		uint32_t object = runs->blocks[from].live.tail;
		uint64_t bytes = runs->objects[object].bytes;

		list_take(&runs->blocks[from].live, runs->objects, object);
		block_put(runs, to[reduce64(mix64(object), outputs)], object, (uint32_t)key_bytes);
		if (bytes <= LARGE_BYTES) {
			runs->written_bytes += bytes;
			runs->merged_bytes += bytes;
		}
	}
}

static bool level_is_full(const struct flash_runs *runs, uint32_t level, uint32_t more)
{
	return level + 1 < runs->levels && runs->level[level].count + more > (level == 0 ? TABLES : BLOCKS);
}

/* Merges all of a level into the next one, which is merged before if it would be too full. */
static void merge_level(struct flash_runs *runs, uint32_t level)
{
	uint64_t bytes = live_bytes(runs, level), run;
	uint32_t outputs = blocks_for(runs, level + 1, bytes);
	uint32_t *to;

	must(level + 1 < runs->levels);
	if (level_is_full(runs, level + 1, outputs))
		merge_level(runs, level + 1);
	make_room(runs, bytes);
	/* Making room may have dropped blocks of this level, where no deeper one was left. */
	outputs = blocks_for(runs, level + 1, live_bytes(runs, level));
	to = mem_must_zalloc((outputs + 1) * sizeof(*to));
	run = ++runs->runs;
	for (uint32_t i = 0; i < outputs; i++)
		to[i] = block_new(runs, level + 1, run);
	while (runs->level[level].oldest != BLOCK_NONE) {
		uint32_t from = runs->level[level].oldest;

		merge_block(runs, from, to, outputs);
		block_free(runs, from);
	}
	mem_free(to);
}

bool runs_append(struct flash_runs *runs, uint32_t object, uint32_t key_bytes)
{
	uint64_t bytes = runs->objects[object].bytes;
	uint32_t table;

	if (bytes > runs->capacity_bytes / PART_MOST)
		return false;
	table = runs->level[0].newest;
	if (table == BLOCK_NONE || runs->blocks[table].bytes + bytes > runs->table_bytes) {
		if (level_is_full(runs, 0, 1))
			merge_level(runs, 0);
		make_room(runs, bytes);
		table = block_new(runs, 0, ++runs->runs);
	} else {
		make_room(runs, bytes);
		if (!runs->blocks[table].used || runs->blocks[table].level != 0)
			table = block_new(runs, 0, ++runs->runs);
	}
	block_put(runs, table, object, key_bytes);
	runs->written_bytes += bytes;
	runs->live_objects++;
	return true;
}

void runs_remove(struct flash_runs *runs, uint32_t object)
{
	list_take(&runs->blocks[runs->objects[object].segment].live, runs->objects, object);
	runs->objects[object].state = OBJECT_OUT;
	runs->live_objects--;
}

/* ---- lookups ----------------------------------------------------------------------------------- */

static bool passes(uint32_t object, uint64_t run, double false_positive)
{
	return (double)(mix64((uint64_t)object << 32 ^ mix64(run)) >> 11) * 0x1p-53 < false_positive;
}

uint32_t runs_reads(const struct flash_runs *runs, uint32_t object)
{
	double false_positive = pow(0.6185, RUNS_FILTER_BITS);
	bool found = runs->objects[object].state == OBJECT_ON_FLASH;
	uint64_t own = found ? runs->blocks[runs->objects[object].segment].run : 0, last = 0;
	uint32_t reads = 0;

	for (uint32_t level = 0; level < runs->levels; level++) {
		for (uint32_t n = runs->level[level].newest; n != BLOCK_NONE; n = runs->blocks[n].older) {
			uint64_t run = runs->blocks[n].run;

			if (found && run == own)
				return reads + 1;
			if (run != last && passes(object, run, false_positive))
				reads++;
			last = run;
		}
	}
	return reads;
}
