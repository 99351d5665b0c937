/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One tier in DRAM for policies of textbooks: dram_bytes and flash_bytes are its capacity together, and nothing is written
 * to flash. A miss evicts until the object fits, then inserts it; an object larger than the capacity is not cached.
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_SIM_SINGLE_H
#define FS_TOOLS_SIM_SINGLE_H

#include "tools/sim/objects.h"
#include "tools/sim/sim.h"

struct single;

/* What a policy decides. */
struct single_rule {
	void (*hit)(struct single *single, uint32_t object);
	uint32_t (*victim)(struct single *single); /* of a list that isn't empty; it stays in the list */
};

struct single {
	struct sim_space space;
	const struct single_rule *rule;
	struct object *objects;
	struct object_list list;
	uint64_t capacity_bytes;
	uint8_t most; /* the highest CLOCK, of those with one */
};

/* The functions of struct sim_policy_ops; create's last arguments are the policy's. */
int single_create(struct sim_policy **out, const struct sim_config *config, const struct single_rule *rule,
		  uint8_t most);
bool single_get(struct sim_policy *policy, const struct sim_access *access);
void single_set(struct sim_policy *policy, const struct sim_access *access, bool filled);
void single_remove(struct sim_policy *policy, const struct sim_access *access);
void single_figures(const struct sim_policy *policy, struct sim_figures *out);
void single_destroy(struct sim_policy *policy);

#define SINGLE_OPS \
	.textbook = true, .get = single_get, .set = single_set, .remove = single_remove, .figures = single_figures, \
	.destroy = single_destroy

#endif
