/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * S3-FIFO (Yang et al., SOSP 2023) with its small queue in DRAM and its main queue on flash: what was read often enough
 * in DRAM is written, what comes back while it is remembered is written at once, and what was read on flash is written
 * again, with one read less.
 */
#include "tools/sim/policies.h"
#include "tools/sim/tiers.h"

#define READS_COUNTED 3

static bool admit(struct tiers *tiers, uint32_t object)
{
	return tiers->objects[object].reads >= tiers->config.parameter;
}

static bool keep(struct tiers *tiers, uint32_t number)
{
	struct object *object = &tiers->objects[number];

	if (!object->reads)
		return false;
	if (object->reads > READS_COUNTED)
		object->reads = READS_COUNTED;
	object->reads--;
	return true;
}

static int create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	static const struct tiers_rule rule = {
		.admit = admit, .keep = keep, .keeps_reads = true, .fifo = true, .seen_to_flash = true
	};

	(void)reason;
	return tiers_create(out, config, &rule, NULL);
}

const struct sim_policy_ops sim_s3fifo = { .name = "s3fifo",
					   .help = "S3-FIFO, its small queue in DRAM and its main queue on flash",
					   .parameter = "reads in DRAM from which on an object is written",
					   .parameter_default = 2,
					   .parameter_low = 1,
					   .parameter_high = 100,
					   .create = create,
					   TIERS_OPS };
