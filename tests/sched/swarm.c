/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/swarm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/sched/life.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define SECOND_NS 1000000000ull
#define SUPER_BYTES KIB(64) /* before segment 0 */

static bool one_in(struct rng *rng, uint64_t n)
{
	return rng_below(rng, n) == 0;
}

/* ---- the engine ------------------------------------------------------------------------------ */

/* What users run comes first: the default in a quarter of the seeds. In others most objects go to flash. */
static void choose_admission(struct store_config *config, struct rng *rng)
{
	if (!one_in(rng, 4))
		config->admission =
			one_in(rng, 3) ? (enum clf_admission)rng_below(rng, CLF_ADMIT_LAST + 1) : CLF_ADMIT_ALL;
	if (!one_in(rng, 4))
		config->flash_write_ratio = one_in(rng, 4) ? 3 : 0;
	if (one_in(rng, 4))
		config->label_mode = CLF_LABEL_PAPER;
	if (one_in(rng, 2))
		config->training_window_ms = 1000 + rng_below(rng, 20000);
	if (one_in(rng, 2))
		config->flashiness_horizon_ms = 1000 + rng_below(rng, 5000);
}

static void choose_index(struct store_config *config, struct rng *rng)
{
	if (rng_below(rng, 5) < 2) {
		config->index = STORE_INDEX_FRUGAL;
		config->frugal_memory = one_in(rng, 2) ? 100 : 13;
		config->flash_object_bytes = 100;
	}
	if (config->index == STORE_INDEX_FRUGAL && one_in(rng, 2)) /* a stripe has many keys: several holds gather it */
		config->tag_bits = 2 + (unsigned)rng_below(rng, 2);
	else if (one_in(rng, 3)) /* other keys' slots match */
		config->tag_bits = 2 + (unsigned)rng_below(rng, 6);
	if (one_in(rng, 3))
		config->functions = 2;
	if (one_in(rng, 3))
		config->filter_bits = (int)rng_below(rng, 9);
	if (one_in(rng, 4))
		config->filter = FIDX_FILTER_CUCKOO;
	else if (one_in(rng, 4))
		config->filter_units = 2 + (unsigned)rng_below(rng, 7);
	if (one_in(rng, 4))
		config->clock_mode = FIDX_CLOCK_MFU;
	if (one_in(rng, 6))
		config->placement = SEG_PLACE_PAPER;
}

/* What clients do: the objects take from a half to thrice of what DRAM and flash have room for. */
static void choose_clients(struct world *world, struct rng *rng)
{
	static const uint32_t lengths[] = { 100, 200, 300, 600 };
	const struct store_config *config = &world->config;
	uint64_t bytes = (config->item_bytes ? config->item_bytes : config->memory_bytes) + config->flash_bytes, keys;

	world->clients = 2 + (unsigned)rng_below(rng, 4);
	world->connections = 1 + (unsigned)rng_below(rng, 6);
	world->length = config->segment_bytes > MIB(1) ? 4000 : lengths[rng_below(rng, 4)];
	keys = bytes / (world->length + 100) * (1 + rng_below(rng, 6)) / 2;
	world->keys = keys > MODEL_KEYS ? MODEL_KEYS : keys < 100 ? 100 : (unsigned)keys;
	world->spurious = one_in(rng, 2) ? 0 : 20;
	world->think_ns = 100000ull << rng_below(rng, 9);
	world->gets = 20 + (unsigned)rng_below(rng, 40);
	world->deletes = 2 + (unsigned)rng_below(rng, 12);
	world->hot = one_in(rng, 3) ? 50 : (unsigned)rng_below(rng, 30);
	world->follows = one_in(rng, 3) ? 0 : (unsigned)rng_below(rng, 60);
	world->repeats = one_in(rng, 3) ? 0 : (unsigned)rng_below(rng, 40);
}

/* In most seeds DRAM has room for half of the objects at the most, and at least for the candidates of a segment. */
static void choose_memory(struct world *world, struct rng *rng)
{
	struct store_config *config = &world->config;
	uint64_t half = (uint64_t)world->keys * (world->length + 100) / 2, least = config->segment_bytes / 4 * 7;

	if (one_in(rng, 8) || (config->item_bytes && config->item_bytes <= half))
		return;
	config->item_bytes = half > least ? half : least;
}

static void choose_config(struct world *world, struct rng *rng)
{
	struct store_config *config = &world->config;
	uint64_t segments = one_in(rng, 2) ? 4 + rng_below(rng, 6) : 8 + rng_below(rng, 24);

	world->ages = one_in(rng, 6);
	if (world->ages) /* fewer have no home to spare */
		segments = 16 + rng_below(rng, 16);
	store_config_init(config);
	config->seed = 1 + rng_below(rng, 1u << 30);
	config->memory_bytes = MIB(1) + KIB(512) + KIB(256) * rng_below(rng, 4);
	if (!one_in(rng, 4)) /* most objects are on flash */
		config->item_bytes = KIB(112) + KIB(16) * rng_below(rng, 16);
	config->segment_bytes = one_in(rng, 4) ? KIB(128) : KIB(64);
	if (world->ages && !one_in(rng, 3)) { /* a rescue copies a MiB at a time */
		config->segment_bytes = MIB(1) + KIB(64) * (1 + rng_below(rng, 4));
		config->memory_bytes = 12 * config->segment_bytes;
		config->item_bytes = 3 * config->segment_bytes;
	}
	config->flash_bytes = SUPER_BYTES + segments * config->segment_bytes;
	config->flash_object_bytes = one_in(rng, 2) ? 400 : 100 + (uint32_t)rng_below(rng, 4000);
	config->max_item_bytes = 1 << 16;
	config->reinsertion = one_in(rng, 3) ? STORE_REINSERT_LIVE : STORE_REINSERT_READ;
	config->read_timeout_ms = one_in(rng, 4) ? 20 : 1000;
	choose_admission(config, rng);
	choose_index(config, rng);
	if (config->index == STORE_INDEX_FRUGAL && !world->ages && !one_in(rng, 4)) /* columns come and go */
		config->flash_bytes = SUPER_BYTES + (4 + rng_below(rng, 6)) * config->segment_bytes;
	if (config->index == STORE_INDEX_SLOTS && one_in(rng, 12))
		config->evict = false;
	if (one_in(rng, 3))
		config->promotion.rule = (enum store_promote)rng_below(rng, 4);
	world->state_dir = !one_in(rng, 4);
	world->region_dir = one_in(rng, 2) || (config->index == STORE_INDEX_FRUGAL && !one_in(rng, 4));
	config->journal = world->state_dir && config->index == STORE_INDEX_SLOTS && one_in(rng, 2);
	drive_make(&world->drive, config->flash_bytes, SUPER_BYTES);
	choose_clients(world, rng);
	choose_memory(world, rng);
}

/* ---- the scheduler and the drive ------------------------------------------------------------- */

static void choose_fibers(struct life_plan *plan, struct rng *rng)
{
	static const unsigned points[] = { 2, 6, 20, 60, 200, 1000 }, sites[] = { 0, 0, 8, 24, 64, 200 },
			      ticks[] = { 200, 2000, 2000, 8000 };

	plan->fibers = (struct fiber_options){ .seed = rng_next(rng),
					       .policy = (enum fiber_policy)rng_below(rng, FIBER_POLICIES),
					       .points = points[rng_below(rng, 6)],
					       .relaxed = one_in(rng, 4),
					       .tick_ns = 20 + (unsigned)rng_below(rng, ticks[rng_below(rng, 4)]),
					       .freeze = one_in(rng, 2) ? 0 : 1 + (unsigned)rng_below(rng, 300),
					       .sites = sites[rng_below(rng, 6)],
					       .windows = one_in(rng, 3) ? 0 : 1 + (unsigned)rng_below(rng, 80) };
}

static uint32_t up_to(struct rng *rng, uint64_t most)
{
	return (uint32_t)rng_below(rng, most);
}

static void choose_drive(struct world *world, struct rng *rng)
{
	struct drive_options *options = &world->drive.options;

	rng_init(&world->drive.rng, rng_next(rng));
	rng_init(&world->files.rng, rng_next(rng));
	world->files.latency_ns = 10000u << rng_below(rng, 9);
	world->files.fails = one_in(rng, 8) ? up_to(rng, 20000) : 0;
	options->latency_ns = 10000u << rng_below(rng, 8);
	options->tail = up_to(rng, 20000);
	options->again = one_in(rng, 2) ? 0 : up_to(rng, 100000);
	if (one_in(rng, 3))
		options->hang = up_to(rng, one_in(rng, 2) ? 300 : 5000);
	if (world->ages)
		options->write_bad = up_to(rng, 300000);
	if (world->ages || one_in(rng, 2))
		return;
	options->read_eio = up_to(rng, 3000);
	options->read_flip = up_to(rng, 3000);
	options->write_eio = up_to(rng, 5000);
	options->write_torn = up_to(rng, 20000);
	options->write_lost = up_to(rng, 20000);
	options->write_misdirected = up_to(rng, 20000);
	options->write_bad = up_to(rng, 10000);
	options->flush_eio = one_in(rng, 3) ? up_to(rng, 50000) : 0;
}

/* ---- lives ----------------------------------------------------------------------------------- */

struct instant {
	const char *name;
	unsigned most; /* calls until it kills */
	enum { ANY, SLOTS, FRUGAL, JOURNAL, AGES } with; /* the seeds that have it */
};

static bool has_instant(const struct world *world, const struct instant *instant)
{
	switch (instant->with) {
	case SLOTS:
		return world->config.index == STORE_INDEX_SLOTS;
	case FRUGAL:
		return world->config.index == STORE_INDEX_FRUGAL;
	case JOURNAL:
		return world->config.journal;
	case AGES:
		return world->ages;
	default:
		return true;
	}
}

static const struct instant *choose_instant(const struct world *world, struct rng *rng)
{
	static const struct instant kills[] = {
		{ "killed_at_slot_clear", 1000, ANY }, { "killed_in_commit", 500, SLOTS },
		{ "killed_in_reclaim", 100, ANY },     { "killed_in_close", 4, ANY },
		{ "killed_in_row", 10, ANY },          { "killed_in_relocation", 200, SLOTS },
		{ "killed_in_flush", 4, ANY },         { "killed_in_journal", 200, JOURNAL },
		{ "killed_in_rescue", 3, AGES },       { "killed_in_merge", 10, FRUGAL },
		{ "killed_in_take_over", 5, ANY },     { "killed_in_rebuild", 20, JOURNAL },
		{ "killed_in_save", 1, ANY },          { "killed_in_table", 2, ANY },
		{ "killed_in_close", 1, FRUGAL }, /* seen in its next life alone; most lives close few of such segments */
		{ "killed_in_close", 3, FRUGAL },      { "killed_in_close", 8, FRUGAL },
	};
	bool own = !one_in(rng, 3); /* one that not all seeds have */
	const struct instant *kill;

	do
		kill = &kills[rng_below(rng, sizeof(kills) / sizeof(kills[0]))];
	while (!has_instant(world, kill) || (own && kill->with == ANY));
	return kill;
}

static void choose_faults(const struct world *world, struct life_plan *plan, struct rng *rng)
{
	static const char *const others[] = { "store_revalidation_fails=every:7", "reclaim_walk_fails=every:2000",
					      "cleaner_pause_before_commit=every:3" };
	const struct instant *kill = choose_instant(world, rng);
	size_t at = 0;

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (one_in(rng, 4))
			at += (size_t)snprintf(plan->faults + at, sizeof(plan->faults) - at, "%s,", others[i]);
	if (one_in(rng, 2))
		at += (size_t)snprintf(plan->faults + at, sizeof(plan->faults) - at, "store_promote=every:%u,",
				       1 + (unsigned)rng_below(rng, 4));
	if (one_in(rng, 2))
		at += (size_t)snprintf(plan->faults + at, sizeof(plan->faults) - at, "index_force_relocation=every:%u,",
				       1 + (unsigned)rng_below(rng, 3));
	if (one_in(rng, 2))
		at += (size_t)snprintf(plan->faults + at, sizeof(plan->faults) - at, "store_reclaim_visit=every:%u,",
				       1 + (unsigned)rng_below(rng, 8));
	if (one_in(rng, 2))
		at += (size_t)snprintf(plan->faults + at, sizeof(plan->faults) - at, "stripe_resize=every:%u,",
				       1u << rng_below(rng, 6));
	if (one_in(rng, 2))
		at += (size_t)snprintf(plan->faults + at, sizeof(plan->faults) - at, "cleaner_step=every:%u,",
				       1u << rng_below(rng, 6));
	if (plan->end == LIFE_KILL && !one_in(rng, 6))
		(void)snprintf(plan->faults + at, sizeof(plan->faults) - at, "%s=after:%u", kill->name,
			       (unsigned)rng_below(rng, kill->most));
}

/* Most lives end so that something of the flash's contents is left. */
static enum life_end choose_end(const struct world *world, struct rng *rng)
{
	if (one_in(rng, 6))
		return (enum life_end)rng_below(rng, LIFE_ENDS);
	if (world->config.journal) /* of which a crash of the host needs all */
		return one_in(rng, 3) ? LIFE_KILL : LIFE_CUT;
	return world->region_dir && !one_in(rng, 3) ? LIFE_KILL : LIFE_STOP;
}

/* A life that ends in the midst of some work of the engine. */
static enum rules_moment choose_moment(const struct world *world, struct rng *rng)
{
	enum rules_moment moment = (enum rules_moment)rng_below(rng, MOMENTS);

	if (world->ages && one_in(rng, 2))
		return MOMENT_RESCUE;
	if (world->config.journal && one_in(rng, 2))
		return MOMENT_LOSSES;
	if (one_in(rng, 2))
		return MOMENT_NONE;
	if (world->config.index == STORE_INDEX_FRUGAL)
		return one_in(rng, 2) ? MOMENT_READERS : MOMENT_MERGE;
	return moment;
}

static void choose_lives(struct world *world, struct rng *rng)
{
	uint64_t commands = 4000 + rng_below(rng, 16000);

	world->lives = one_in(rng, 3) ? 1 : 2 + (unsigned)rng_below(rng, LIVES_MOST - 1);
	for (unsigned i = 0; i < world->lives; i++) {
		struct life_plan *plan = &world->plan[i];
		bool is_last = i + 1 == world->lives;

		plan->end = is_last ? LIFE_STOP : choose_end(world, rng);
		plan->end_point = ((uint64_t)1 << (12 + rng_below(rng, 9))) + rng_below(rng, 500000);
		plan->moment = is_last ? MOMENT_NONE : choose_moment(world, rng);
		plan->holds = !one_in(rng, 3);
		plan->reads_first = one_in(rng, 2);
		plan->commands = is_last ? commands : rng_below(rng, commands);
		plan->pause_ns = one_in(rng, 20) ? 100 * SECOND_NS : rng_below(rng, 3 * SECOND_NS);
		plan->saves = !one_in(rng, 4);
		choose_fibers(plan, rng);
		choose_faults(world, plan, rng);
		if (!is_last &&
		    (plan->moment != MOMENT_NONE || strstr(plan->faults, "killed"))) { /* it should come to that */
			plan->commands = commands;
			plan->end_point *= 16;
		}
	}
}

/* For a test of the tests: a fault of FLASHIELD_FAULTS is in each life. */
static void add_given_faults(struct world *world)
{
	const char *given = getenv("FLASHIELD_FAULTS");

	for (unsigned i = 0; given && i < world->lives; i++) {
		size_t at = strlen(world->plan[i].faults);

		snprintf(world->plan[i].faults + at, sizeof(world->plan[i].faults) - at, "%s%s",
			 at && world->plan[i].faults[at - 1] != ',' ? "," : "", given);
	}
}

static void describe(struct world *world)
{
	static const char *const ends[] = { "stop", "kill", "cut" };
	const struct store_config *config = &world->config;
	char lives[64] = "";

	for (unsigned i = 0; i < world->lives; i++)
		snprintf(lives + strlen(lives), sizeof(lives) - strlen(lives), "%s%s", i ? " " : "",
			 ends[world->plan[i].end]);
	snprintf(
		world->text, sizeof(world->text),
		"%s: %u clients, -m %.2f MiB, %llu segments of %llu KiB, admission %d, %s%s%s%s, %u tag bits, policy %d, points %u",
		lives, world->clients, (double)config->memory_bytes / MIB(1),
		(unsigned long long)((config->flash_bytes - SUPER_BYTES) / config->segment_bytes),
		(unsigned long long)(config->segment_bytes >> 10), (int)config->admission,
		config->index == STORE_INDEX_FRUGAL ? "frugal" : "slots", config->evict ? "" : ", -M",
		world->region_dir ? ", region" : "",
		config->journal    ? ", journal"
		: world->state_dir ? ", state"
				   : "",
		config->tag_bits, (int)world->plan[0].fibers.policy, world->plan[0].fibers.points);
}

void swarm_choose(struct world *world, uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	world->seed = seed;
	world->now_ns = 5000 * SECOND_NS;
	choose_config(world, &rng);
	choose_drive(world, &rng);
	choose_lives(world, &rng);
	add_given_faults(world);
	world->calm = true;
	describe(world);
}
