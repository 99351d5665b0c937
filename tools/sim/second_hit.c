/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * second-hit writes an object whose key has a history: it had left the cache, and not long ago, before this stay in DRAM
 * began. read-or-second-hit also writes what was read in DRAM. The engine has both rules (classifier/classifier.h).
 */
#include "tools/sim/policies.h"
#include "tools/sim/tiers.h"

static bool admit(struct tiers *tiers, uint32_t object)
{
	return tiers->objects[object].seen;
}

static bool admit_read_too(struct tiers *tiers, uint32_t object)
{
	return tiers->objects[object].seen || tiers->objects[object].reads;
}

static int create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	static const struct tiers_rule rule = { .admit = admit, .keep = tiers_keep_read };

	(void)reason;
	return tiers_create(out, config, &rule, NULL);
}

static int create_read_too(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	static const struct tiers_rule rule = { .admit = admit_read_too, .keep = tiers_keep_read };

	(void)reason;
	return tiers_create(out, config, &rule, NULL);
}

const struct sim_policy_ops sim_second_hit = { .name = "second-hit",
					       .help = "writes what DRAM evicts for the second time",
					       .reinserts = true,
					       .create = create,
					       TIERS_OPS };
const struct sim_policy_ops sim_read_or_second_hit = {
	.name = "read-or-second-hit",
	.help = "writes what was read in DRAM, or is evicted for the second time",
	.reinserts = true,
	.create = create_read_too,
	TIERS_OPS
};
