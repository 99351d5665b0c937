/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/placement_objects.h"

#include <math.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "tools/common/app_plan.h"
#include "tools/common/population.h"

const char *const placement_names[PLACEMENT_SIZES] = {
	[PLACEMENT_EQUAL] = "equal", [PLACEMENT_NARROW] = "log 0.5", [PLACEMENT_WIDE] = "log 1.25",
	[PLACEMENT_MIX] = "mix",     [PLACEMENT_LARGE] = "large",
};

static void append(struct placement_objects *objects, uint64_t *room, uint32_t length, struct rng *rng)
{
	if (objects->count == *room) {
		*room = *room ? *room + *room / 2 : 1u << 16;
		objects->all = mem_realloc(objects->all, *room * sizeof(*objects->all));
		must(objects->all);
	}
	objects->all[objects->count++] = (struct seg_candidate){
		.place = rng_next(rng),
		.length = length,
		.extent = length > PLACEMENT_EXTENT_BYTES,
	};
	objects->bytes += length;
}

/* Box and Muller. */
static double draw_normal(struct rng *rng)
{
	double u = 1 - rng_real(rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * rng_real(rng));
}

static uint32_t draw_value(double mean, double sigma, struct rng *rng)
{
	double value;

	if (sigma == 0)
		return (uint32_t)mean;
	value = mean * exp(sigma * draw_normal(rng) - sigma * sigma / 2);
	return value < 1 ? 1 : value > MAX_VALUE_BYTES ? MAX_VALUE_BYTES : (uint32_t)lround(value);
}

static void draw_log_normal(struct placement_objects *objects, double mean, double sigma, uint64_t bytes,
			    struct rng *rng)
{
	uint64_t room = bytes / seg_record_length(PLACEMENT_KEY_BYTES, (uint64_t)mean) + 1;

	objects->all = mem_must_zalloc(room * sizeof(*objects->all));
	while (objects->bytes < bytes)
		append(objects, &room, (uint32_t)seg_record_length(PLACEMENT_KEY_BYTES, draw_value(mean, sigma, rng)),
		       rng);
}

static void draw_app(struct placement_objects *objects, uint64_t *room, const struct plan *plan, struct rng *rng)
{
	struct life *lives = mem_must_zalloc(plan->keys * sizeof(*lives));

	population_make(lives, plan, rng);
	for (uint64_t i = 0; i < plan->keys; i++)
		if (!lives[i].is_silent)
			append(objects, room, (uint32_t)seg_record_length(lives[i].key_size, lives[i].size), rng);
	mem_free(lives);
}

static void shuffle(struct placement_objects *objects, struct rng *rng)
{
	for (uint32_t i = objects->count; i > 1; i--) {
		uint32_t other = (uint32_t)rng_below(rng, i);
		struct seg_candidate taken = objects->all[other];

		objects->all[other] = objects->all[i - 1];
		objects->all[i - 1] = taken;
	}
}

/* Each application with its published share of the keys, as many of all as have that many bytes. */
static void draw_mix(struct placement_objects *objects, uint64_t bytes, struct rng *rng)
{
	double record_bytes = SEG_RECORD_HEADER + PUBLISHED_OBJECT_BYTES;
	struct plan_shares shares;
	double scale;

	plan_shares(&shares);
	scale = 1.05 * (double)bytes / record_bytes / (PUBLISHED_KEYS * (1 - shares.silent));
	while (objects->bytes < bytes) {
		uint64_t room = 0;

		placement_objects_free(objects);
		for (int i = 0; i < APP_COUNT; i++) {
			struct plan plan;

			plan_make(&plan, &app_table[i], &shares, scale, PUBLISHED_SPAN_S);
			draw_app(objects, &room, &plan, rng);
		}
		scale *= 1.1;
	}
	shuffle(objects, rng);
}

/* Drops the objects that were drawn beyond `bytes`. */
static void trim(struct placement_objects *objects, uint64_t bytes)
{
	objects->count = placement_objects_for(objects, 0, bytes);
	objects->bytes = 0;
	for (uint32_t i = 0; i < objects->count; i++)
		objects->bytes += objects->all[i].length;
}

void placement_objects_make(struct placement_objects *objects, enum placement_sizes sizes, uint64_t bytes,
			    uint64_t seed)
{
	static const double sigma[PLACEMENT_SIZES] = {
		[PLACEMENT_NARROW] = 0.5, [PLACEMENT_WIDE] = 1.25, [PLACEMENT_LARGE] = 1.5
	};
	struct rng rng;

	*objects = (struct placement_objects){ 0 };
	rng_init(&rng, seed);
	if (sizes == PLACEMENT_MIX)
		draw_mix(objects, bytes, &rng);
	else
		draw_log_normal(objects, sizes == PLACEMENT_LARGE ? PLACEMENT_LARGE_BYTES : PLACEMENT_VALUE_BYTES,
				sigma[sizes], bytes, &rng);
	trim(objects, bytes);
}

void placement_objects_free(struct placement_objects *objects)
{
	mem_free(objects->all);
	*objects = (struct placement_objects){ 0 };
}

uint32_t placement_objects_for(const struct placement_objects *objects, uint32_t first, uint64_t bytes)
{
	uint64_t sum = 0;
	uint32_t count = 0;

	while (sum < bytes && first + count < objects->count)
		sum += objects->all[first + count++].length;
	return count;
}
