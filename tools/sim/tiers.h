/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cache in DRAM before a log on flash (flash_log.h), with a rule that decides what is written.
 *
 *   set, miss -> [ DRAM, LRU ] -- evicted: admit? --> [ flash, FIFO of segments ] -- reclaimed: keep? --> written again
 *                                     \                                                \
 *                                      +----------> [ history of evicted objects ] <----+
 *
 * A hit on flash leaves the object there. A set writes DRAM and leaves the bytes on flash dead. An object that DRAM is
 * too small for is judged at once. The history holds as many bytes of objects as the flash.
 *
 * Threads: one. Memory: aborts when it is out.
 */
#ifndef FS_TOOLS_SIM_TIERS_H
#define FS_TOOLS_SIM_TIERS_H

#include "tools/sim/flash_log.h"
#include "tools/sim/sim.h"

struct tiers;

/* What a policy decides. object->bytes are those on flash when it is asked. */
struct tiers_rule {
	/* At every request of the trace, before it is played. NULL: not called. */
	void (*note)(struct tiers *tiers, const struct sim_access *access);
	/* The application wrote so many bytes. NULL: not called. */
	void (*written)(struct tiers *tiers, uint64_t bytes);
	/* DRAM evicts the object: is it written to flash? */
	bool (*admit)(struct tiers *tiers, uint32_t object);
	/* Its segment is reclaimed: is it written again? */
	bool (*keep)(struct tiers *tiers, uint32_t object);
	void (*destroy)(struct tiers *tiers); /* frees state; NULL: nothing is there */
	bool keeps_reads; /* an object that is kept keeps its reads; else it has none */
	bool fifo; /* DRAM evicts in the order of insertion */
	bool seen_to_flash; /* an object that the history holds goes to flash when it is inserted */
};

struct tiers {
	struct sim_config config;
	const struct tiers_rule *rule;
	void *state; /* the rule's */
	struct object *objects;
	struct object_list dram, history;
	struct flash_log log;
	uint64_t flash_hits;
};

struct sim_policy {
	struct tiers tiers;
};

/* The functions of struct sim_policy_ops. create's rule is constant; state is freed by rule->destroy. */
int tiers_create(struct sim_policy **out, const struct sim_config *config, const struct tiers_rule *rule, void *state);
bool tiers_get(struct sim_policy *policy, const struct sim_access *access);
void tiers_set(struct sim_policy *policy, const struct sim_access *access, bool filled);
void tiers_remove(struct sim_policy *policy, const struct sim_access *access);
void tiers_figures(const struct sim_policy *policy, struct sim_figures *out);
void tiers_destroy(struct sim_policy *policy);

/* For rules: object->reads of an object on flash counts the reads since it was written, and keep with NAME:reinsert is
   whether there was one. */
bool tiers_keep_read(struct tiers *tiers, uint32_t object);

#define TIERS_OPS \
	.get = tiers_get, .set = tiers_set, .remove = tiers_remove, .figures = tiers_figures, .destroy = tiers_destroy

#endif
