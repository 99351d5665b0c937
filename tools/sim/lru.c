/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/policies.h"
#include "tools/sim/single.h"

static void hit(struct single *single, uint32_t object)
{
	list_renew(&single->list, single->objects, object);
}

static uint32_t victim(struct single *single)
{
	return single->list.tail;
}

static int create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	static const struct single_rule rule = { hit, victim };

	(void)reason;
	return single_create(out, config, &rule, 0);
}

const struct sim_policy_ops sim_lru = {
	.name = "lru", .help = "all of it DRAM; evicts what was used longest ago", .create = create, SINGLE_OPS
};
