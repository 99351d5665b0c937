/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An exclusive cache of two levels, each in the order of use: DRAM writes all that it evicts to flash, and a hit on flash
 * moves the object back to DRAM. Objects are written one by one.
 */
#include "base/alloc.h"
#include "tools/sim/objects.h"
#include "tools/sim/policies.h"

struct sim_policy {
	struct sim_space space;
	struct object *objects;
	struct object_list dram, flash;
	uint64_t written_bytes, hits;
};

static void drop(struct sim_policy *policy, uint32_t number)
{
	struct object *object = &policy->objects[number];

	if (object->state != OBJECT_OUT)
		list_take(object->state == OBJECT_IN_DRAM ? &policy->dram : &policy->flash, policy->objects, number);
	object->state = OBJECT_OUT;
}

/* Writes an object that is nowhere; its bytes are those in DRAM. */
static void write_object(struct sim_policy *policy, uint32_t number)
{
	struct object *object = &policy->objects[number];

	object->bytes += policy->space.flash_charge;
	object->bytes -= policy->space.dram_charge;
	if (object->bytes > policy->space.flash_bytes)
		return;
	while (policy->flash.bytes + object->bytes > policy->space.flash_bytes)
		drop(policy, policy->flash.tail);
	object->state = OBJECT_ON_FLASH;
	list_push(&policy->flash, policy->objects, number);
	policy->written_bytes += object->bytes;
}

/* Puts an object that is nowhere into DRAM; its bytes are those in DRAM. */
static void insert(struct sim_policy *policy, uint32_t number)
{
	struct object *object = &policy->objects[number];

	if (object->bytes > policy->space.dram_bytes) {
		write_object(policy, number);
		return;
	}
	object->state = OBJECT_IN_DRAM;
	list_push(&policy->dram, policy->objects, number);
	while (policy->dram.bytes > policy->space.dram_bytes) {
		uint32_t oldest = policy->dram.tail;

		drop(policy, oldest);
		write_object(policy, oldest);
	}
}

static bool victim_get(struct sim_policy *policy, const struct sim_access *access)
{
	struct object *object = &policy->objects[access->object];

	if (object->state == OBJECT_OUT)
		return false;
	if (object->state == OBJECT_IN_DRAM) {
		list_renew(&policy->dram, policy->objects, access->object);
		return true;
	}
	policy->hits++;
	drop(policy, access->object);
	object->bytes += policy->space.dram_charge;
	object->bytes -= policy->space.flash_charge;
	insert(policy, access->object);
	return true;
}

static void victim_set(struct sim_policy *policy, const struct sim_access *access, bool filled)
{
	(void)filled;
	drop(policy, access->object);
	policy->objects[access->object].bytes = sim_object_bytes(&policy->space, access) + policy->space.dram_charge;
	insert(policy, access->object);
}

static void victim_remove(struct sim_policy *policy, const struct sim_access *access)
{
	drop(policy, access->object);
}

static void victim_figures(const struct sim_policy *policy, struct sim_figures *out)
{
	*out = (struct sim_figures){ .flash_bytes_written = policy->written_bytes,
				     .flash_reads = policy->hits,
				     .flash_hits = policy->hits,
				     .dram_objects = policy->dram.count,
				     .flash_objects = policy->flash.count };
}

static int victim_create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	struct sim_policy *policy = mem_must_zalloc(sizeof(*policy));

	(void)reason;
	policy->space = config->space;
	policy->objects = mem_must_zalloc((config->objects + 1) * sizeof(*policy->objects));
	list_init(&policy->dram);
	list_init(&policy->flash);
	*out = policy;
	return FS_OK;
}

static void victim_destroy(struct sim_policy *policy)
{
	mem_free(policy->objects);
	mem_free(policy);
}

const struct sim_policy_ops sim_victim = { .name = "victim",
					   .help = "LRU in DRAM, all that it evicts in an LRU on flash, hits move back",
					   .create = victim_create,
					   .get = victim_get,
					   .set = victim_set,
					   .remove = victim_remove,
					   .figures = victim_figures,
					   .destroy = victim_destroy };
