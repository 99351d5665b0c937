/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The expected hits per byte, by an exact count for each object: of all its accesses, misses and flash reads included, halved
 * each half residence of the flash. The same score and threshold decide at eviction from DRAM and at reclaim.
 */
#include <math.h>

#include "base/alloc.h"
#include "tools/sim/budget.h"
#include "tools/sim/policies.h"
#include "tools/sim/tiers.h"

#define WINDOWS 16 /* of the budget, per flash's bytes that applications write */

struct freq {
	struct budget budget;
	float *counts;
	uint32_t *epochs; /* in which the count was last brought up to date */
	uint64_t epoch_us; /* when the present one began */
	uint32_t epoch;
};

/* Ends epochs that are over: each lasts half a residence. Before the first reclaim nothing ages. */
static void move_epoch(struct freq *freq, const struct flash_log *log)
{
	uint64_t half_us = log->residence_us / 2, over;

	if (!half_us)
		freq->epoch_us = log->now_us;
	if (!half_us || log->now_us - freq->epoch_us < half_us)
		return;
	over = (log->now_us - freq->epoch_us) / half_us;
	freq->epoch_us += over * half_us;
	freq->epoch += over < 64 ? (uint32_t)over : 64;
}

static double count_of(struct freq *freq, uint32_t object)
{
	uint32_t age = freq->epoch - freq->epochs[object];

	if (age) {
		freq->counts[object] = age < 64 ? ldexpf(freq->counts[object], -(int)age) : 0;
		freq->epochs[object] = freq->epoch;
	}
	return freq->counts[object];
}

static void note(struct tiers *tiers, const struct sim_access *access)
{
	struct freq *freq = tiers->state;

	move_epoch(freq, &tiers->log);
	freq->counts[access->object] = (float)(count_of(freq, access->object) + 1);
}

static void written(struct tiers *tiers, uint64_t bytes)
{
	struct freq *freq = tiers->state;

	budget_earn(&freq->budget, bytes);
}

static bool judge(struct tiers *tiers, uint32_t object)
{
	struct freq *freq = tiers->state;
	uint64_t bytes = tiers->objects[object].bytes;

	return budget_admit(&freq->budget, count_of(freq, object) / (double)bytes, bytes);
}

static void destroy(struct tiers *tiers)
{
	struct freq *freq = tiers->state;

	mem_free(freq->counts);
	mem_free(freq->epochs);
	mem_free(freq);
}

static int create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	static const struct tiers_rule rule = {
		.note = note, .written = written, .admit = judge, .keep = judge, .destroy = destroy
	};
	struct freq *freq = mem_must_zalloc(sizeof(*freq));

	(void)reason;
	freq->counts = mem_must_zalloc((config->objects + 1) * sizeof(*freq->counts));
	freq->epochs = mem_must_zalloc((config->objects + 1) * sizeof(*freq->epochs));
	budget_init(&freq->budget, config->clwa, (double)config->space.flash_bytes / WINDOWS + 1);
	return tiers_create(out, config, &rule, freq);
}

const struct sim_policy_ops sim_freq = {
	.name = "freq",
	.help = "writes the most accesses per byte, aged, by a threshold that --clwa moves",
	.create = create,
	TIERS_OPS
};
