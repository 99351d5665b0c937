/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/rng.h"
#include "tools/sim/policies.h"
#include "tools/sim/tiers.h"

static bool admit(struct tiers *tiers, uint32_t object)
{
	(void)object;
	return rng_real(tiers->state) < tiers->config.parameter;
}

static void destroy(struct tiers *tiers)
{
	mem_free(tiers->state);
}

static int create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	static const struct tiers_rule rule = { .admit = admit, .keep = tiers_keep_read, .destroy = destroy };
	struct rng *rng = mem_must_zalloc(sizeof(*rng));

	(void)reason;
	rng_init(rng, config->seed);
	return tiers_create(out, config, &rule, rng);
}

const struct sim_policy_ops sim_random_p = {
	.name = "random-p",
	.help = "writes what DRAM evicts with the probability given, as random-p:0.3",
	.reinserts = true,
	.parameter = "the probability",
	.parameter_default = 0.5,
	.parameter_high = 1,
	.create = create,
	TIERS_OPS
};
