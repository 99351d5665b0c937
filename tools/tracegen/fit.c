/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tracegen/fit.h"

#include <math.h>

#include "tools/tracegen/tally.h"

#define FIT_REQUESTS 200000.0
#define ROUNDS 10
#define HALVINGS 7
#define LATEST (6.0 / 7)
#define SHORTEST_PACE 1e-4
#define FIRST_PART \
	0.6 /* of the misses may be first requests, the rest is left to evictions and updates \
			*/

/* The hit ratio with an exponent, in percent of the gets after the first day. */
struct outcome {
	double hits;
	double firsts;
};

static struct outcome outcome_at(struct plan plan, double alpha, uint64_t seed)
{
	struct source *source;
	struct tally tally;
	struct event event;
	struct outcome outcome;

	plan.alpha = alpha;
	source = source_create(&plan, seed);
	tally_init(&tally, &plan);
	while (source_next(source, &event))
		tally_event(&tally, &event);
	outcome.hits = tally_hit_percent(&tally);
	outcome.firsts = tally.lru_gets ? 100.0 * (double)tally.lru_firsts / (double)tally.lru_gets : 0;
	tally_fini(&tally);
	source_destroy(source);
	return outcome;
}

/* With few keys the hit ratio may fall with the exponent, so the two ends decide the direction. */
static double bisect_alpha(const struct plan *plan, bool is_rising, uint64_t seed)
{
	double low = FIT_ALPHA_LOW, high = FIT_ALPHA_HIGH;

	for (int i = 0; i < HALVINGS; i++) {
		double alpha = (low + high) / 2;
		bool is_below = outcome_at(*plan, alpha, seed).hits < plan->app->hit;

		*(is_below == is_rising ? &low : &high) = alpha;
	}
	return (low + high) / 2;
}

/* All exponents miss the target: moves the other two towards it. False where they can't be. */
static bool move_others(struct plan *part, const struct outcome *best, bool is_below)
{
	double misses = 100 - part->app->hit;

	if (is_below && best->firsts > FIRST_PART * misses) {
		part->late *= fmax(0.3, FIRST_PART * misses / best->firsts);
	} else if (is_below) {
		part->pace *= 0.4;
	} else if (part->late < LATEST) {
		part->late = fmin(LATEST, part->late * fmin(3, fmax(1.1, misses / (100 - best->hits))) + 1e-4);
	} else {
		return false;
	}
	return part->pace > SHORTEST_PACE;
}

static void fit_part(struct plan *part, uint64_t seed)
{
	double target = part->app->hit;

	for (int round = 0; round < ROUNDS; round++) {
		struct outcome low = outcome_at(*part, FIT_ALPHA_LOW, seed);
		struct outcome high = outcome_at(*part, FIT_ALPHA_HIGH, seed);
		bool is_below = fmax(low.hits, high.hits) < target;

		if (!is_below && fmin(low.hits, high.hits) <= target) {
			part->alpha = bisect_alpha(part, high.hits > low.hits, seed);
			return;
		}
		/* Until then the better end is used. */
		part->alpha = (high.hits > low.hits) == is_below ? FIT_ALPHA_HIGH : FIT_ALPHA_LOW;
		if (!move_others(part, part->alpha > 1 ? &high : &low, is_below))
			return;
	}
}

void fit_plan(struct plan *plan, const struct plan_shares *shares, uint64_t seed)
{
	double requests = plan->app->requests_m * 1e6 * plan->scale;
	struct plan part = *plan;

	if (!tally_hit_counts(plan))
		return;
	if (requests > FIT_REQUESTS) {
		plan_make(&part, plan->app, shares, plan->scale * FIT_REQUESTS / requests, plan->span_s);
		if (!tally_hit_counts(&part))
			part = *plan;
	}
	fit_part(&part, seed);
	plan->alpha = part.alpha;
	plan->late = part.late;
	plan->pace = part.pace;
}
