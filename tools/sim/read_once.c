/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/policies.h"
#include "tools/sim/tiers.h"

static bool admit(struct tiers *tiers, uint32_t object)
{
	return tiers->objects[object].reads;
}

static int create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	static const struct tiers_rule rule = { .admit = admit, .keep = tiers_keep_read };

	(void)reason;
	return tiers_create(out, config, &rule, NULL);
}

const struct sim_policy_ops sim_read_once = { .name = "read-once",
					      .help = "writes what was read in DRAM before it is evicted",
					      .reinserts = true,
					      .create = create,
					      TIERS_OPS };
