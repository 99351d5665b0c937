/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sLSM-Tree as a cache: LRU in DRAM, and all that leaves it goes to runs on flash that are merged (flash_runs.h). DRAM pays for
 * the index, as for the headers of extstore. Two of them, over the same runs:
 *
 *   slsm       what an LSM tree keeps: a Bloom filter for each run, and fence pointers, the first key of each page (or of
 *              each object, where that is larger). A lookup makes one read in each run whose filter agrees.
 *   slsm-keys  the paper's Key Index Table (II.A, III): each key in full, in a skip list with a factor of 1/2, beside seven
 *              bytes of segmented index (block, table, position) and the filter. A lookup reads nothing in vain.
 *
 * The parameter is the number of levels. With one nothing is merged: a FIFO of runs.
 */
#include <math.h>

#include "base/alloc.h"
#include "tools/sim/flash_runs.h"
#include "tools/sim/policies.h"

#define PAGE_BYTES 4096.0
#define FENCE_BYTES 4.0 /* beside the key: the page's number */
#define SEGMENTED_INDEX_BYTES 7.0 /* block 1, trie index 2, hash index 4 */
#define SKIP_LIST_BYTES 16.0 /* two pointers, the mean at a factor of 1/2 */
#define ITEMS_LEAST 0.2 /* of DRAM, which the index leaves to items */

struct sim_policy {
	struct sim_space space;
	struct object *objects;
	uint32_t *key_bytes; /* by object */
	struct object_list items;
	struct flash_runs runs;
	bool has_keys;
	uint64_t reads, reads_missed, hits;
};

static double index_bytes(const struct sim_policy *policy)
{
	const struct flash_runs *runs = &policy->runs;
	double objects = (double)runs->index_objects, keys = (double)runs->index_key_bytes;
	double bytes = objects * RUNS_FILTER_BITS / 8;

	if (policy->space.value_bytes_only || policy->space.objects_only || objects <= 0)
		return 0;
	if (policy->has_keys)
		return bytes + keys + objects * (SEGMENTED_INDEX_BYTES + SKIP_LIST_BYTES);
	return bytes + fmin((double)runs->used_bytes / PAGE_BYTES, objects) * (keys / objects + FENCE_BYTES);
}

static void dropped(void *context, uint32_t object)
{
	(void)context;
	(void)object;
}

/* Takes an object out of wherever it is. */
static void forget(struct sim_policy *policy, uint32_t number)
{
	struct object *object = &policy->objects[number];

	if (object->state == OBJECT_IN_DRAM)
		list_take(&policy->items, policy->objects, number);
	else if (object->state == OBJECT_ON_FLASH)
		runs_remove(&policy->runs, number);
	object->state = OBJECT_OUT;
}

/* Writes an object that is nowhere, whose bytes are those in DRAM. */
static void leave_dram(struct sim_policy *policy, uint32_t number)
{
	policy->objects[number].bytes += policy->space.flash_charge;
	policy->objects[number].bytes -= policy->space.dram_charge;
	(void)runs_append(&policy->runs, number, policy->key_bytes[number]);
}

static void make_room(struct sim_policy *policy)
{
	double most = (double)policy->space.dram_bytes;

	while ((double)policy->items.bytes + index_bytes(policy) > most) {
		uint32_t oldest = policy->items.tail;

		if (index_bytes(policy) > most * (1 - ITEMS_LEAST) || oldest == OBJECT_NONE) {
			if (!runs_drop(&policy->runs))
				return;
			continue;
		}
		forget(policy, oldest);
		leave_dram(policy, oldest);
	}
}

static bool slsm_get(struct sim_policy *policy, const struct sim_access *access)
{
	struct object *object = &policy->objects[access->object];
	uint32_t reads;

	if (object->state == OBJECT_IN_DRAM) {
		list_renew(&policy->items, policy->objects, access->object);
		return true;
	}
	reads = policy->has_keys ? object->state == OBJECT_ON_FLASH : runs_reads(&policy->runs, access->object);
	policy->reads += reads;
	if (object->state == OBJECT_ON_FLASH)
		policy->hits++;
	else
		policy->reads_missed += reads;
	return object->state == OBJECT_ON_FLASH;
}

static void slsm_set(struct sim_policy *policy, const struct sim_access *access, bool filled)
{
	struct object *object = &policy->objects[access->object];

	(void)filled;
	forget(policy, access->object);
	policy->key_bytes[access->object] = access->key_bytes;
	object->bytes = sim_object_bytes(&policy->space, access) + policy->space.dram_charge;
	if (object->bytes > policy->space.dram_bytes) {
		leave_dram(policy, access->object);
	} else {
		object->state = OBJECT_IN_DRAM;
		list_push(&policy->items, policy->objects, access->object);
	}
	make_room(policy);
}

static void slsm_remove(struct sim_policy *policy, const struct sim_access *access)
{
	forget(policy, access->object);
}

static void slsm_figures(const struct sim_policy *policy, struct sim_figures *out)
{
	*out = (struct sim_figures){ .flash_bytes_written = policy->runs.written_bytes,
				     .flash_bytes_merged = policy->runs.merged_bytes,
				     .flash_reads = policy->reads,
				     .flash_reads_missed = policy->reads_missed,
				     .flash_hits = policy->hits,
				     .dram_objects = policy->items.count,
				     .flash_objects = policy->runs.live_objects,
				     .fixed_bytes = (uint64_t)index_bytes(policy) };
}

static int create(struct sim_policy **out, const struct sim_config *config, bool has_keys)
{
	struct sim_policy *policy = mem_must_zalloc(sizeof(*policy));

	policy->space = config->space;
	policy->has_keys = has_keys;
	policy->objects = mem_must_zalloc((config->objects + 1) * sizeof(*policy->objects));
	policy->key_bytes = mem_must_zalloc((config->objects + 1) * sizeof(*policy->key_bytes));
	list_init(&policy->items);
	runs_init(&policy->runs, policy->objects, config->space.flash_bytes, config->space.segment_bytes,
		  (uint32_t)config->parameter, dropped, policy);
	*out = policy;
	return FS_OK;
}

static int slsm_create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	(void)reason;
	return create(out, config, false);
}

static int slsm_create_keys(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	(void)reason;
	return create(out, config, true);
}

static void slsm_destroy(struct sim_policy *policy)
{
	runs_fini(&policy->runs);
	mem_free(policy->key_bytes);
	mem_free(policy->objects);
	mem_free(policy);
}

#define SLSM_OPS \
	.parameter = "the number of levels", .parameter_default = 4, .parameter_low = 1, \
	.parameter_high = RUNS_LEVELS_MOST, .get = slsm_get, .set = slsm_set, .remove = slsm_remove, \
	.figures = slsm_figures, .destroy = slsm_destroy

const struct sim_policy_ops sim_slsm = {
	.name = "slsm",
	.help = "LRU in DRAM; all of it goes to runs on flash with filters and fences, which are merged",
	.create = slsm_create,
	SLSM_OPS
};
const struct sim_policy_ops sim_slsm_keys = { .name = "slsm-keys",
					      .help = "the same, with each key in DRAM, as sLSM-Tree has them",
					      .create = slsm_create_keys,
					      SLSM_OPS };
