/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/tiers.h"

#include "base/alloc.h"

#define READS_MOST 255

/* ---- leaving --------------------------------------------------------------------------------- */

/* Puts an object that is nowhere into the history. */
static void remember(struct tiers *tiers, uint32_t number)
{
	struct object *objects = tiers->objects;

	objects[number].state = OBJECT_REMEMBERED;
	list_push(&tiers->history, objects, number);
	while (tiers->history.bytes > tiers->config.space.flash_bytes) {
		uint32_t oldest = tiers->history.tail;

		list_take(&tiers->history, objects, oldest);
		objects[oldest].state = OBJECT_OUT;
		objects[oldest].seen = 0;
	}
}

static bool keep(void *context, uint32_t number)
{
	struct tiers *tiers = context;

	if (tiers->rule->keep(tiers, number)) {
		if (!tiers->rule->keeps_reads)
			tiers->objects[number].reads = 0;
		return true;
	}
	remember(tiers, number);
	return false;
}

/* Writes an object that is nowhere to flash. */
static void append(struct tiers *tiers, uint32_t number)
{
	tiers->objects[number].reads = 0;
	if (!flash_append(&tiers->log, number))
		remember(tiers, number);
}

/* DRAM has no room for an object, which is nowhere; its bytes are those in DRAM. */
static void leave_dram(struct tiers *tiers, uint32_t number)
{
	struct object *object = &tiers->objects[number];

	object->state = OBJECT_OUT;
	object->bytes += tiers->config.space.flash_charge;
	object->bytes -= tiers->config.space.dram_charge;
	if (tiers->config.space.flash_bytes && tiers->rule->admit(tiers, number))
		append(tiers, number);
	else
		remember(tiers, number);
}

static void make_room(struct tiers *tiers)
{
	while (tiers->dram.bytes > tiers->config.space.dram_bytes) {
		uint32_t oldest = tiers->dram.tail;

		list_take(&tiers->dram, tiers->objects, oldest);
		leave_dram(tiers, oldest);
	}
}

/* Takes an object out of wherever it is. */
static void forget(struct tiers *tiers, uint32_t number)
{
	struct object *object = &tiers->objects[number];

	if (object->state == OBJECT_IN_DRAM)
		list_take(&tiers->dram, tiers->objects, number);
	else if (object->state == OBJECT_ON_FLASH)
		flash_remove(&tiers->log, number);
	else if (object->state == OBJECT_REMEMBERED)
		list_take(&tiers->history, tiers->objects, number);
	object->state = OBJECT_OUT;
}

/* ---- the policy ------------------------------------------------------------------------------ */

static void note(struct tiers *tiers, const struct sim_access *access)
{
	tiers->log.now_us = access->time_us;
	tiers->log.now_number = access->number;
	if (tiers->rule->note)
		tiers->rule->note(tiers, access);
}

bool tiers_get(struct sim_policy *policy, const struct sim_access *access)
{
	struct tiers *tiers = &policy->tiers;
	struct object *object = &tiers->objects[access->object];

	note(tiers, access);
	if (object->state != OBJECT_IN_DRAM && object->state != OBJECT_ON_FLASH)
		return false;
	object_read(object, READS_MOST);
	if (object->state == OBJECT_ON_FLASH)
		tiers->flash_hits++;
	else if (!tiers->rule->fifo)
		list_renew(&tiers->dram, tiers->objects, access->object);
	return true;
}

void tiers_set(struct sim_policy *policy, const struct sim_access *access, bool filled)
{
	struct tiers *tiers = &policy->tiers;
	const struct sim_space *space = &tiers->config.space;
	struct object *object = &tiers->objects[access->object];
	uint64_t bytes = sim_object_bytes(space, access);

	if (!filled)
		note(tiers, access);
	if (tiers->rule->written)
		tiers->rule->written(tiers, bytes);
	if (object->state == OBJECT_REMEMBERED)
		object->seen = 1;
	forget(tiers, access->object);
	object->reads = 0;
	if (object->seen && tiers->rule->seen_to_flash && space->flash_bytes) {
		object->seen = 0;
		object->bytes = bytes + space->flash_charge;
		append(tiers, access->object);
		return;
	}
	object->bytes = bytes + space->dram_charge;
	if (object->bytes > space->dram_bytes) {
		leave_dram(tiers, access->object);
		return;
	}
	object->state = OBJECT_IN_DRAM;
	list_push(&tiers->dram, tiers->objects, access->object);
	make_room(tiers);
}

void tiers_remove(struct sim_policy *policy, const struct sim_access *access)
{
	note(&policy->tiers, access);
	forget(&policy->tiers, access->object);
	policy->tiers.objects[access->object].seen = 0;
}

bool tiers_keep_read(struct tiers *tiers, uint32_t object)
{
	return tiers->config.reinsert && tiers->objects[object].reads;
}

/* ---- life ------------------------------------------------------------------------------------ */

int tiers_create(struct sim_policy **out, const struct sim_config *config, const struct tiers_rule *rule, void *state)
{
	const struct sim_space *space = &config->space;
	struct tiers *tiers;

	*out = mem_must_zalloc(sizeof(**out));
	tiers = &(*out)->tiers;
	tiers->config = *config;
	tiers->rule = rule;
	tiers->state = state;
	tiers->objects = mem_must_zalloc((config->objects + 1) * sizeof(*tiers->objects));
	list_init(&tiers->dram);
	list_init(&tiers->history);
	flash_init(&tiers->log, tiers->objects, space->flash_bytes, space->segment_bytes, keep, tiers);
	return FS_OK;
}

void tiers_figures(const struct sim_policy *policy, struct sim_figures *out)
{
	const struct tiers *tiers = &policy->tiers;

	*out = (struct sim_figures){
		.flash_bytes_written = tiers->log.written_bytes,
		.flash_reads = tiers->flash_hits,
		.flash_hits = tiers->flash_hits,
		.dram_objects = tiers->dram.count,
		.flash_objects = tiers->log.live_objects,
	};
}

void tiers_destroy(struct sim_policy *policy)
{
	struct tiers *tiers = &policy->tiers;

	if (tiers->rule->destroy)
		tiers->rule->destroy(tiers);
	flash_fini(&tiers->log);
	mem_free(tiers->objects);
	mem_free(policy);
}
