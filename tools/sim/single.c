/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/single.h"

#include "base/alloc.h"

struct sim_policy {
	struct single single;
};

int single_create(struct sim_policy **out, const struct sim_config *config, const struct single_rule *rule,
		  uint8_t most)
{
	struct single *single;

	*out = mem_must_zalloc(sizeof(**out));
	single = &(*out)->single;
	single->space = config->space;
	single->rule = rule;
	single->most = most;
	single->capacity_bytes = config->space.dram_bytes + config->space.flash_bytes;
	single->objects = mem_must_zalloc((config->objects + 1) * sizeof(*single->objects));
	list_init(&single->list);
	return FS_OK;
}

static uint64_t bytes_of(const struct single *single, const struct sim_access *access)
{
	return sim_object_bytes(&single->space, access) + single->space.dram_charge;
}

static void drop(struct single *single, uint32_t number)
{
	list_take(&single->list, single->objects, number);
	single->objects[number].state = OBJECT_OUT;
}

static void make_room(struct single *single, uint64_t bytes)
{
	while (single->list.count && single->list.bytes + bytes > single->capacity_bytes)
		drop(single, single->rule->victim(single));
}

static void resize(struct single *single, uint32_t number, uint64_t bytes)
{
	struct object *object = &single->objects[number];

	if (object->bytes == bytes)
		return;
	single->list.bytes += bytes - object->bytes;
	object->bytes = bytes;
	make_room(single, 0);
}

bool single_get(struct sim_policy *policy, const struct sim_access *access)
{
	struct single *single = &policy->single;

	if (single->objects[access->object].state != OBJECT_IN_DRAM)
		return false;
	single->rule->hit(single, access->object);
	if (single->space.sizes == SIM_SIZES_OF_ACCESSES)
		resize(single, access->object, bytes_of(single, access));
	return true;
}

void single_set(struct sim_policy *policy, const struct sim_access *access, bool filled)
{
	struct single *single = &policy->single;
	struct object *object = &single->objects[access->object];
	uint64_t bytes = bytes_of(single, access);

	(void)filled;
	if (object->state == OBJECT_IN_DRAM && bytes <= single->capacity_bytes) {
		single->rule->hit(single, access->object);
		resize(single, access->object, bytes);
		return;
	}
	if (object->state == OBJECT_IN_DRAM)
		drop(single, access->object);
	if (bytes > single->capacity_bytes)
		return;
	make_room(single, bytes);
	object->state = OBJECT_IN_DRAM;
	object->bytes = bytes;
	object->reads = 0;
	list_push(&single->list, single->objects, access->object);
}

void single_remove(struct sim_policy *policy, const struct sim_access *access)
{
	if (policy->single.objects[access->object].state == OBJECT_IN_DRAM)
		drop(&policy->single, access->object);
}

void single_figures(const struct sim_policy *policy, struct sim_figures *out)
{
	*out = (struct sim_figures){ .dram_objects = policy->single.list.count };
}

void single_destroy(struct sim_policy *policy)
{
	mem_free(policy->single.objects);
	mem_free(policy);
}
