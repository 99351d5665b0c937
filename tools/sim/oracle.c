/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "tools/sim/budget.h"
#include "tools/sim/policies.h"
#include "tools/sim/tiers.h"

#define WINDOWS 16

static void written(struct tiers *tiers, uint64_t bytes)
{
	budget_earn(tiers->state, bytes);
}

/* Is it read again before its segment would be reclaimed? The sooner, the better. */
static bool judge(struct tiers *tiers, uint32_t object)
{
	uint64_t next = tiers->config.next_get(tiers->config.context, object);
	uint64_t bytes = tiers->objects[object].bytes, residence = tiers->log.residence_requests;
	uint64_t distance = next - tiers->log.now_number;

	if (next == UINT64_MAX || (residence && distance > residence))
		return false;
	return budget_admit(tiers->state, 1 / ((double)bytes * (double)(distance + 1)), bytes);
}

static void destroy(struct tiers *tiers)
{
	mem_free(tiers->state);
}

static int create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	static const struct tiers_rule rule = { .written = written, .admit = judge, .keep = judge, .destroy = destroy };
	struct budget *budget = mem_must_zalloc(sizeof(*budget));

	(void)reason;
	budget_init(budget, config->clwa, (double)config->space.flash_bytes / WINDOWS + 1);
	return tiers_create(out, config, &rule, budget);
}

const struct sim_policy_ops sim_oracle = { .name = "oracle",
					   .help = "writes what is read again before its segment is reclaimed",
					   .needs_future = true,
					   .create = create,
					   TIERS_OPS };
