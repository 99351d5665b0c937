/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RIPQ (Tang et al., FAST 2015): a queue in eight sections over blocks on flash, each written as a whole.
 *
 *   DRAM: [ new objects, FIFO ] -> open block of the section by the object's reads, at most the highest
 *   flash: section 7 [newest ... oldest] -> section 6 -> ... -> section 0 [newest ... oldest] -> evicted
 *
 * A hit takes an object one section up: into that section's open block if its own is still open, else by a mark, a virtual
 * block there. A section beyond its eighth of the flash hands its oldest block down. When the oldest block of all is
 * evicted, its objects with a mark elsewhere are written again in the section of their mark; the others are gone.
 *
 * Half of DRAM is for open blocks, the rest for new objects.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "tools/sim/objects.h"
#include "tools/sim/policies.h"

#define SECTIONS 8
#define NO_BLOCK UINT32_MAX

struct block {
	struct object_list live; /* objects that lie in it; a virtual block has none */
	uint64_t bytes; /* written, dead ones too; of a virtual block: all marks ever made */
	uint64_t weight; /* of the objects whose mark it is: their own block is the first one */
	uint32_t newer; /* in the section's queue, or in the list of free blocks */
	uint8_t section;
	bool virtual, sealed;
};

struct section {
	uint32_t oldest, newest; /* sealed blocks */
	uint32_t open, open_virtual; /* NO_BLOCK until there is one */
	uint64_t weight;
};

struct sim_policy {
	struct sim_space space;
	struct object *objects; /* segment: the block in which it lies */
	uint32_t *marks; /* by object on flash: its block in the queue */
	struct object_list fresh;
	struct section sections[SECTIONS];
	struct block *blocks;
	uint32_t free_block, blocks_made, blocks_room;
	uint64_t block_bytes, fresh_bytes;
	uint64_t used_bytes, written_bytes, hits, flash_objects;
};

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint32_t make_block(struct sim_policy *policy, unsigned section, bool virtual)
{
	uint32_t number = policy->free_block;

	if (number != NO_BLOCK) {
		policy->free_block = policy->blocks[number].newer;
	} else {
		if (policy->blocks_made == policy->blocks_room) {
			policy->blocks_room = policy->blocks_room * 2 + 64;
			policy->blocks = mem_realloc(policy->blocks, policy->blocks_room * sizeof(*policy->blocks));
			must(policy->blocks);
		}
		number = policy->blocks_made++;
	}
	policy->blocks[number] = (struct block){ .newer = NO_BLOCK, .section = (uint8_t)section, .virtual = virtual };
	list_init(&policy->blocks[number].live);
	return number;
}

static void free_block(struct sim_policy *policy, uint32_t number)
{
	policy->blocks[number].newer = policy->free_block;
	policy->free_block = number;
}

/* Puts a sealed block to the newest end of a section. Weights are the caller's. */
static void enqueue(struct sim_policy *policy, unsigned section, uint32_t number)
{
	struct section *to = &policy->sections[section];

	policy->blocks[number].section = (uint8_t)section;
	policy->blocks[number].newer = NO_BLOCK;
	if (to->newest == NO_BLOCK)
		to->oldest = number;
	else
		policy->blocks[to->newest].newer = number;
	to->newest = number;
}

static uint32_t dequeue(struct sim_policy *policy, unsigned section)
{
	struct section *from = &policy->sections[section];
	uint32_t number = from->oldest;

	from->oldest = policy->blocks[number].newer;
	if (from->oldest == NO_BLOCK)
		from->newest = NO_BLOCK;
	return number;
}

static void seal_if_full(struct sim_policy *policy, uint32_t *open)
{
	struct block *block = &policy->blocks[*open];

	if (block->bytes < policy->block_bytes)
		return;
	block->sealed = true;
	if (!block->virtual) {
		policy->used_bytes += block->bytes;
		policy->written_bytes += block->bytes;
	}
	enqueue(policy, block->section, *open);
	*open = NO_BLOCK;
}

/* ---- objects on flash ------------------------------------------------------------------------ */

static void unmark(struct sim_policy *policy, uint32_t number)
{
	struct block *block = &policy->blocks[policy->marks[number]];

	block->weight -= policy->objects[number].bytes;
	policy->sections[block->section].weight -= policy->objects[number].bytes;
}

static void mark(struct sim_policy *policy, uint32_t number, uint32_t to)
{
	struct block *block = &policy->blocks[to];

	policy->marks[number] = to;
	block->weight += policy->objects[number].bytes;
	policy->sections[block->section].weight += policy->objects[number].bytes;
}

/* Puts an object that lies nowhere and has no mark into a section's open block. */
static void put(struct sim_policy *policy, unsigned section, uint32_t number)
{
	struct section *to = &policy->sections[section];
	struct block *block;

	if (to->open == NO_BLOCK)
		to->open = make_block(policy, section, false);
	block = &policy->blocks[to->open];
	policy->objects[number].segment = to->open;
	policy->objects[number].state = OBJECT_ON_FLASH;
	policy->flash_objects++;
	list_push(&block->live, policy->objects, number);
	block->bytes += policy->objects[number].bytes;
	mark(policy, number, to->open);
	seal_if_full(policy, &to->open);
}

/* Takes an object out of its block, and its mark away. */
static void take(struct sim_policy *policy, uint32_t number)
{
	struct block *block = &policy->blocks[policy->objects[number].segment];

	unmark(policy, number);
	list_take(&block->live, policy->objects, number);
	if (!block->sealed)
		block->bytes -= policy->objects[number].bytes;
	policy->objects[number].state = OBJECT_OUT;
	policy->flash_objects--;
}

static void evict_block(struct sim_policy *policy, uint32_t evicted)
{
	/* Blocks may move in memory while objects are put. */
	policy->used_bytes -= policy->blocks[evicted].bytes;
	while (policy->blocks[evicted].live.count) {
		uint32_t number = policy->blocks[evicted].live.tail, to = policy->marks[number];
		unsigned section = policy->blocks[to].section;

		take(policy, number);
		if (to != evicted)
			put(policy, section, number);
	}
}

static void hand_down(struct sim_policy *policy)
{
	for (unsigned section = SECTIONS - 1; section > 0; section--) {
		struct section *from = &policy->sections[section];

		while (from->weight > policy->space.flash_bytes / SECTIONS && from->oldest != NO_BLOCK) {
			uint32_t number = dequeue(policy, section);

			from->weight -= policy->blocks[number].weight;
			policy->sections[section - 1].weight += policy->blocks[number].weight;
			enqueue(policy, section - 1, number);
		}
	}
}

/* Hands blocks down, and evicts as long as the flash is too full. */
static void settle(struct sim_policy *policy)
{
	hand_down(policy);
	while (policy->used_bytes > policy->space.flash_bytes) {
		unsigned section = 0;
		uint32_t number;

		while (policy->sections[section].oldest == NO_BLOCK)
			section++;
		number = dequeue(policy, section);
		if (policy->blocks[number].virtual)
			must(policy->blocks[number].weight == 0); /* its objects lay in older blocks */
		else
			evict_block(policy, number);
		free_block(policy, number);
		hand_down(policy);
	}
}

static void promote(struct sim_policy *policy, uint32_t number)
{
	unsigned section = policy->blocks[policy->marks[number]].section, up = section + 1;
	struct section *to;

	if (up == SECTIONS)
		up = section;
	to = &policy->sections[up];
	if (!policy->blocks[policy->objects[number].segment].sealed) {
		if (up == section)
			return;
		take(policy, number);
		put(policy, up, number);
	} else {
		if (to->open_virtual == NO_BLOCK)
			to->open_virtual = make_block(policy, up, true);
		if (policy->marks[number] == to->open_virtual)
			return;
		unmark(policy, number);
		mark(policy, number, to->open_virtual);
		policy->blocks[to->open_virtual].bytes += policy->objects[number].bytes;
		seal_if_full(policy, &to->open_virtual);
	}
	settle(policy);
}

/* ---- the policy ------------------------------------------------------------------------------ */

static void leave_dram(struct sim_policy *policy, uint32_t number)
{
	struct object *object = &policy->objects[number];

	object->state = OBJECT_OUT;
	object->bytes += policy->space.flash_charge;
	object->bytes -= policy->space.dram_charge;
	if (object->bytes > policy->space.flash_bytes / SECTIONS)
		return;
	put(policy, object->reads, number);
	settle(policy);
}

static void drop(struct sim_policy *policy, uint32_t number)
{
	struct object *object = &policy->objects[number];

	if (object->state == OBJECT_IN_DRAM)
		list_take(&policy->fresh, policy->objects, number);
	else if (object->state == OBJECT_ON_FLASH)
		take(policy, number);
	object->state = OBJECT_OUT;
}

static bool ripq_get(struct sim_policy *policy, const struct sim_access *access)
{
	struct object *object = &policy->objects[access->object];

	if (object->state == OBJECT_IN_DRAM) {
		object_read(object, SECTIONS - 1);
	} else if (object->state == OBJECT_ON_FLASH) {
		policy->hits += policy->blocks[object->segment].sealed;
		promote(policy, access->object);
		return true;
	}
	return object->state == OBJECT_IN_DRAM;
}

static void ripq_set(struct sim_policy *policy, const struct sim_access *access, bool filled)
{
	struct object *object = &policy->objects[access->object];

	(void)filled;
	drop(policy, access->object);
	object->bytes = sim_object_bytes(&policy->space, access) + policy->space.dram_charge;
	object->reads = 0;
	if (object->bytes > policy->fresh_bytes) {
		leave_dram(policy, access->object);
		return;
	}
	object->state = OBJECT_IN_DRAM;
	list_push(&policy->fresh, policy->objects, access->object);
	while (policy->fresh.bytes > policy->fresh_bytes) {
		uint32_t oldest = policy->fresh.tail;

		list_take(&policy->fresh, policy->objects, oldest);
		leave_dram(policy, oldest);
	}
}

static void ripq_remove(struct sim_policy *policy, const struct sim_access *access)
{
	drop(policy, access->object);
}

static void ripq_figures(const struct sim_policy *policy, struct sim_figures *out)
{
	*out = (struct sim_figures){ .flash_bytes_written = policy->written_bytes,
				     .flash_reads = policy->hits,
				     .flash_hits = policy->hits,
				     .dram_objects = policy->fresh.count,
				     .flash_objects = policy->flash_objects };
}

static int ripq_create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	struct sim_policy *policy = mem_must_zalloc(sizeof(*policy));
	uint64_t most = config->space.dram_bytes / (2 * SECTIONS);

	(void)reason;
	policy->space = config->space;
	policy->block_bytes = config->space.segment_bytes && config->space.segment_bytes < most
				      ? config->space.segment_bytes
				      : most + !most;
	policy->fresh_bytes = config->space.dram_bytes - SECTIONS * (most ? policy->block_bytes : 0);
	policy->objects = mem_must_zalloc((config->objects + 1) * sizeof(*policy->objects));
	policy->marks = mem_must_zalloc((config->objects + 1) * sizeof(*policy->marks));
	policy->free_block = NO_BLOCK;
	for (unsigned i = 0; i < SECTIONS; i++)
		policy->sections[i] = (struct section){ NO_BLOCK, NO_BLOCK, NO_BLOCK, NO_BLOCK, 0 };
	list_init(&policy->fresh);
	*out = policy;
	return FS_OK;
}

static void ripq_destroy(struct sim_policy *policy)
{
	mem_free(policy->blocks);
	mem_free(policy->marks);
	mem_free(policy->objects);
	mem_free(policy);
}

const struct sim_policy_ops sim_ripq = { .name = "ripq",
					 .help = "RIPQ with eight sections: a priority queue over blocks on flash",
					 .create = ripq_create,
					 .get = ripq_get,
					 .set = ripq_set,
					 .remove = ripq_remove,
					 .figures = ripq_figures,
					 .destroy = ripq_destroy };
