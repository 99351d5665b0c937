/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/app_plan.h"

#include <math.h>

#define STEPS 40
#define FIRST_ALPHA 0.9

/* The counts of an application before rounding. */
struct shape {
	double keys, visible, known, unread, birth_sets, refills, overwrites, silent;
};

static struct shape shape_of(const struct app *app, const struct plan_shares *shares, double scale)
{
	struct shape shape = { .keys = app->keys * scale };
	double requests = app->requests_m * 1e6 * scale;
	double gets = requests * app->get / 100, sets = requests * app->set / 100;
	double unread = app->one_shots ? shares->unread : shares->unread_rest;

	shape.birth_sets = fmin(shape.keys, sets);
	shape.refills = (sets - shape.birth_sets) * app->refill;
	shape.overwrites = sets - shape.birth_sets - shape.refills;
	shape.silent = shape.keys * shares->silent;
	shape.visible = shape.keys - shape.silent;
	shape.known = gets - shape.birth_sets - shape.refills - shape.silent * (1 - shape.birth_sets / shape.keys);
	/* A core key has at least two gets, so few gets per key leave no choice. */
	unread = fmax(unread, 2 - shape.known / shape.visible);
	shape.unread = shape.visible * fmin(unread, 1);
	return shape;
}

static double write_share(const struct plan_shares *shares)
{
	double writes = 0, known = 0;

	for (int i = 0; i < APP_COUNT; i++) {
		struct shape shape = shape_of(&app_table[i], shares, 1);

		writes += shape.visible;
		known += shape.known;
	}
	return writes / known;
}

static double unread_share(const struct plan_shares *shares)
{
	double writes = 0, unread = 0;

	for (int i = 0; i < APP_COUNT; i++) {
		struct shape shape = shape_of(&app_table[i], shares, 1);

		writes += shape.visible;
		unread += shape.unread;
	}
	return unread / writes;
}

/* Changed sizes come with sets, so few sets allow few of them. Each is also a miss, so they may take only a
   part of the misses that a published hit ratio leaves. */
static double app_update_share(const struct app *app, const struct shape *shape, double wanted)
{
	double between_gets = 0.3 * (1 - shape->unread / shape->known);
	double share = fmin(wanted, between_gets * (shape->overwrites + shape->refills) / shape->known);

	return app->hit > 0 ? fmin(share, 0.25 * (1 - app->hit / 100)) : share;
}

static double update_share(const struct plan_shares *shares)
{
	double updates = 0, known = 0;

	for (int i = 0; i < APP_COUNT; i++) {
		struct shape shape = shape_of(&app_table[i], shares, 1);

		updates += shape.known * app_update_share(&app_table[i], &shape, shares->update);
		known += shape.known;
	}
	return updates / known;
}

/* The size of the mean object if unread keys have `small_unread` times the value of core keys,
   and the mean over all rows stays the published one. */
static double object_bytes(const struct plan_shares *shares)
{
	double bytes = 0, writes = 0;

	for (int i = 0; i < APP_COUNT; i++) {
		const struct app *app = &app_table[i];
		struct shape shape = shape_of(app, shares, 1);
		double births = shape.birth_sets / shape.keys, core = shape.visible - shape.unread;
		double one_row_keys = shape.silent * births + shape.unread * (1 + births);
		double rows = shape.known + shape.birth_sets + shape.refills + shape.overwrites;
		double core_value =
			app->mean_value * rows / (rows - one_row_keys + one_row_keys * shares->small_unread);

		bytes += core_value * (core + shape.unread * shares->small_unread) +
			 shape.visible * (app->key_low + app->key_high) / 2.0;
		writes += shape.visible;
	}
	return bytes / writes;
}

void plan_shares(struct plan_shares *shares)
{
	double low = 0, high = 0.6;

	*shares = (struct plan_shares){ .unread = 0.5, .unread_rest = 0.2, .small_unread = 1 };
	for (int i = 0; i < STEPS; i++) {
		shares->silent = (low + high) / 2;
		*(write_share(shares) > PUBLISHED_WRITE_SHARE ? &low : &high) = shares->silent;
	}
	low = 0;
	high = 1;
	for (int i = 0; i < STEPS; i++) {
		shares->unread = (low + high) / 2;
		*(unread_share(shares) < PUBLISHED_UNREAD_SHARE ? &low : &high) = shares->unread;
	}
	low = 0.1;
	high = 1;
	for (int i = 0; i < STEPS; i++) {
		shares->small_unread = (low + high) / 2;
		*(object_bytes(shares) < PUBLISHED_OBJECT_BYTES ? &low : &high) = shares->small_unread;
	}
	low = 0;
	high = 0.2;
	for (int i = 0; i < STEPS; i++) {
		shares->update = (low + high) / 2;
		*(update_share(shares) < PUBLISHED_UPDATE_SHARE ? &low : &high) = shares->update;
	}
}

static uint64_t whole(double value)
{
	return value > 0 ? (uint64_t)llround(value) : 0;
}

/* The share of births after the first day. Their misses must fit into those that the published hit ratio leaves,
   together with the misses of evicted keys. */
static double late_share(const struct app *app, const struct shape *shape)
{
	double misses = (1 - app->hit / 100) * shape->known * 6 / 7;

	if (app->hit <= 0)
		return app->late;
	return fmin(6.0 / 7, 0.65 * misses / shape->visible);
}

void plan_make(struct plan *plan, const struct app *app, const struct plan_shares *shares, double scale, double span_s)
{
	struct shape shape = shape_of(app, shares, scale);
	double requests = app->requests_m * 1e6 * scale;
	double rest = 100 - app->get - app->set - app->delete - app->add - app->incr;

	*plan = (struct plan){
		.app = app,
		.scale = scale,
		.span_s = span_s,
		.keys = whole(fmax(shape.keys, 1)),
		.birth_sets = whole(shape.birth_sets),
		.known = whole(fmax(shape.known, 1)),
		.refills = whole(shape.refills),
		.overwrites = whole(shape.overwrites),
		.deletes = whole(requests * app->delete / 100),
		.adds = whole(requests * app->add / 100),
		.incrs = whole(requests * app->incr / 100),
		.others = whole(requests * fmax(rest, 0) / 100),
		.allocation = whole(app->allocation * scale),
		.small_unread = shares->small_unread,
		.update = app_update_share(app, &shape, shares->update),
		.alpha = FIRST_ALPHA,
		.pace = 1,
		.late = late_share(app, &shape),
	};
	plan->silent = whole(shape.silent);
	if (plan->silent >= plan->keys)
		plan->silent = plan->keys - 1;
	plan->unread = whole(shape.unread);
	if (plan->unread > plan->keys - plan->silent)
		plan->unread = plan->keys - plan->silent;
	plan->core = plan->keys - plan->silent - plan->unread;
	if (plan->birth_sets > plan->keys)
		plan->birth_sets = plan->keys;
	/* Rounding may leave fewer gets than the keys need. */
	if (plan->known < plan->unread + 2 * plan->core)
		plan->known = plan->unread + 2 * plan->core;
}
