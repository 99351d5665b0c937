/* SPDX-License-Identifier: BSD-3-Clause */
/* CLOCK of N bits: a hit adds one, the hand subtracts one and evicts at zero. A new object starts at zero. */
#include "tools/sim/policies.h"
#include "tools/sim/single.h"

static void hit(struct single *single, uint32_t object)
{
	object_read(&single->objects[object], single->most);
}

static uint32_t victim(struct single *single)
{
	while (single->objects[single->list.tail].reads) {
		single->objects[single->list.tail].reads--;
		list_renew(&single->list, single->objects, single->list.tail);
	}
	return single->list.tail;
}

static const struct single_rule rule = { hit, victim };

static int create1(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	(void)reason;
	return single_create(out, config, &rule, 1);
}

static int create2(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	(void)reason;
	return single_create(out, config, &rule, 3);
}

static int create3(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	(void)reason;
	return single_create(out, config, &rule, 7);
}

const struct sim_policy_ops sim_clock1 = {
	.name = "clock1", .help = "all of it DRAM; CLOCK with one bit", .create = create1, SINGLE_OPS
};
const struct sim_policy_ops sim_clock2 = {
	.name = "clock2", .help = "all of it DRAM; CLOCK with two bits, counting", .create = create2, SINGLE_OPS
};
const struct sim_policy_ops sim_clock3 = {
	.name = "clock3", .help = "all of it DRAM; CLOCK with three bits, counting", .create = create3, SINGLE_OPS
};
