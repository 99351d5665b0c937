/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As memcached's extstore: DRAM in the order of use; what leaves it is written if its value is large enough, and leaves a
 * header with the key in DRAM. The oldest page makes room. When headers fill most of DRAM, the oldest objects on flash go.
 *
 * Differences: no compaction of pages, and no copy back into DRAM after a hit (one in 2000 there).
 */
#include "base/alloc.h"
#include "tools/sim/flash_log.h"
#include "tools/sim/policies.h"

#define LOCATION_BYTES 12 /* of an object on flash, in its header */
#define ITEMS_LEAST 0.2 /* of DRAM, which headers leave to items */

struct sim_policy {
	struct sim_space space;
	struct object *objects;
	uint32_t *header_bytes; /* by object, in DRAM while it is on flash */
	uint16_t *key_bytes;
	struct object_list items;
	struct flash_log log;
	uint64_t headers; /* bytes of all */
	uint64_t least_value_bytes, hits;
};

static uint64_t header_of(const struct sim_policy *policy, uint32_t number)
{
	if (policy->space.value_bytes_only || policy->space.objects_only)
		return 0;
	return (uint64_t)policy->key_bytes[number] + policy->space.dram_charge + LOCATION_BYTES;
}

/* An object has left flash. */
static void lose_header(struct sim_policy *policy, uint32_t number)
{
	policy->headers -= policy->header_bytes[number];
	policy->header_bytes[number] = 0;
}

static bool keep(void *context, uint32_t number)
{
	lose_header(context, number);
	return false;
}

static void drop(struct sim_policy *policy, uint32_t number)
{
	struct object *object = &policy->objects[number];

	if (object->state == OBJECT_IN_DRAM)
		list_take(&policy->items, policy->objects, number);
	if (object->state == OBJECT_ON_FLASH) {
		flash_remove(&policy->log, number);
		lose_header(policy, number);
	}
	object->state = OBJECT_OUT;
}

static uint64_t value_bytes_of(const struct sim_policy *policy, uint32_t number)
{
	uint64_t key = policy->space.value_bytes_only ? 0 : policy->key_bytes[number];

	if (policy->space.objects_only)
		return UINT64_MAX;
	return policy->objects[number].bytes - policy->space.dram_charge - key;
}

static void evict_item(struct sim_policy *policy)
{
	uint32_t number = policy->items.tail;
	struct object *object = &policy->objects[number];

	drop(policy, number);
	if (value_bytes_of(policy, number) < policy->least_value_bytes)
		return;
	object->bytes += policy->space.flash_charge;
	object->bytes -= policy->space.dram_charge;
	if (flash_append(&policy->log, number)) {
		policy->header_bytes[number] = (uint32_t)header_of(policy, number);
		policy->headers += policy->header_bytes[number];
	}
}

/* The oldest object on flash, of the oldest segment that has one. */
static uint32_t oldest_on_flash(const struct flash_log *log)
{
	for (uint32_t i = 0; i < log->count; i++) {
		const struct flash_segment *segment = &log->ring[(log->oldest + i) % log->ring_size];

		if (segment->live.count)
			return segment->live.tail;
	}
	return OBJECT_NONE;
}

static void make_room(struct sim_policy *policy)
{
	uint64_t headers_most = (uint64_t)((double)policy->space.dram_bytes * (1 - ITEMS_LEAST));

	while (policy->items.bytes + policy->headers > policy->space.dram_bytes) {
		uint32_t oldest = policy->headers > headers_most ? oldest_on_flash(&policy->log) : OBJECT_NONE;

		if (oldest != OBJECT_NONE)
			drop(policy, oldest);
		else
			evict_item(policy);
	}
}

static bool extstore_get(struct sim_policy *policy, const struct sim_access *access)
{
	struct object *object = &policy->objects[access->object];

	policy->log.now_us = access->time_us;
	if (object->state == OBJECT_IN_DRAM)
		list_renew(&policy->items, policy->objects, access->object);
	else if (object->state == OBJECT_ON_FLASH)
		policy->hits++;
	return object->state != OBJECT_OUT;
}

static void extstore_set(struct sim_policy *policy, const struct sim_access *access, bool filled)
{
	struct object *object = &policy->objects[access->object];

	(void)filled;
	drop(policy, access->object);
	policy->key_bytes[access->object] = (uint16_t)access->key_bytes;
	object->bytes = sim_object_bytes(&policy->space, access) + policy->space.dram_charge;
	if (object->bytes > policy->space.dram_bytes)
		return;
	object->state = OBJECT_IN_DRAM;
	list_push(&policy->items, policy->objects, access->object);
	make_room(policy);
}

static void extstore_remove(struct sim_policy *policy, const struct sim_access *access)
{
	drop(policy, access->object);
}

static void extstore_figures(const struct sim_policy *policy, struct sim_figures *out)
{
	*out = (struct sim_figures){ .flash_bytes_written = policy->log.written_bytes,
				     .flash_reads = policy->hits,
				     .flash_hits = policy->hits,
				     .dram_objects = policy->items.count,
				     .flash_objects = policy->log.live_objects,
				     .fixed_bytes = policy->headers };
}

static int extstore_create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	struct sim_policy *policy = mem_must_zalloc(sizeof(*policy));

	(void)reason;
	policy->space = config->space;
	policy->least_value_bytes = (uint64_t)config->parameter;
	policy->objects = mem_must_zalloc((config->objects + 1) * sizeof(*policy->objects));
	policy->header_bytes = mem_must_zalloc((config->objects + 1) * sizeof(*policy->header_bytes));
	policy->key_bytes = mem_must_zalloc((config->objects + 1) * sizeof(*policy->key_bytes));
	list_init(&policy->items);
	flash_init(&policy->log, policy->objects, config->space.flash_bytes, config->space.segment_bytes, keep, policy);
	*out = policy;
	return FS_OK;
}

static void extstore_destroy(struct sim_policy *policy)
{
	flash_fini(&policy->log);
	mem_free(policy->key_bytes);
	mem_free(policy->header_bytes);
	mem_free(policy->objects);
	mem_free(policy);
}

const struct sim_policy_ops sim_extstore = {
	.name = "extstore",
	.help = "LRU in DRAM; values from 512 B on go to flash, their headers stay",
	.parameter = "the smallest value that goes to flash, in bytes",
	.parameter_default = 512,
	.parameter_high = 1e9,
	.create = extstore_create,
	.get = extstore_get,
	.set = extstore_set,
	.remove = extstore_remove,
	.figures = extstore_figures,
	.destroy = extstore_destroy
};
