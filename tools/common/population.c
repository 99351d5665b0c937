/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of an application. Their order is core keys by popularity, then unread, then silent
 * ones. The trace does not show this order, because its ids follow first appearance.
 */
#include <math.h>

#include "tools/common/population.h"

/* Cuts a running sum of shares into whole numbers that add up to the total exactly. */
struct cutter {
	double sum, total_weight;
	uint64_t total, given;
};

static uint32_t cut(struct cutter *cutter, double weight)
{
	uint64_t upto;

	cutter->sum += weight;
	upto = (uint64_t)llround((double)cutter->total * fmin(cutter->sum / cutter->total_weight, 1));
	upto -= cutter->given;
	cutter->given += upto;
	return (uint32_t)upto;
}

static void deal_gets(struct life *lives, const struct plan *plan)
{
	struct cutter cutter = { .total = plan->known - plan->unread - 2 * plan->core };

	for (uint64_t i = 0; i < plan->core; i++)
		cutter.total_weight += pow((double)(i + 1), -plan->alpha);
	for (uint64_t i = 0; i < plan->core; i++)
		lives[i].gets = 2 + cut(&cutter, pow((double)(i + 1), -plan->alpha));
	for (uint64_t i = plan->core; i < plan->core + plan->unread; i++)
		lives[i].gets = 1;
	for (uint64_t i = plan->core + plan->unread; i < plan->keys; i++)
		lives[i].is_silent = true;
	/* Without core keys the first key gets the rest. */
	if (plan->core == 0 && plan->unread)
		lives[0].gets += (uint32_t)cutter.total;
}

/* Overwrites, refills and deletes follow the gets; the silent keys take a get's part of deletes. */
static void deal_the_rest(struct life *lives, const struct plan *plan)
{
	double weight = (double)(plan->known + plan->silent);
	struct cutter sets = { .total = plan->overwrites, .total_weight = (double)plan->known };
	struct cutter refills = { .total = plan->refills, .total_weight = (double)plan->known };
	struct cutter deletes = { .total = plan->deletes, .total_weight = weight };

	for (uint64_t i = 0; i < plan->keys; i++) {
		struct life *life = &lives[i];

		life->sets = cut(&sets, life->gets);
		life->refills = cut(&refills, life->gets);
		life->deletes = cut(&deletes, life->gets + life->is_silent);
	}
}

/* The normal quantile, by Winitzki's approximation of the inverse error function (2e-3). */
static double normal_quantile(double u)
{
	double x = 2 * u - 1, a = 0.147, l = log(1 - x * x), b = 2 / (M_PI * a) + l / 2;

	return copysign(sqrt(2) * sqrt(sqrt(b * b - l / a) - b), x);
}

static double rows_of(const struct life *life)
{
	return (double)life->gets + life->sets + life->refills + life->starts_with_set;
}

static uint32_t clamp_size(double size)
{
	return size < 1 ? 1 : size > MAX_VALUE_BYTES ? MAX_VALUE_BYTES : (uint32_t)lround(size);
}

/* Draws log-normal sizes, then scales them so that the mean over all rows is the published one. The quantiles are
   a golden-ratio sequence over the keys by popularity, so popular and unpopular keys alike get the whole spread of
   sizes. A random draw would leave the mean to the luck of a few keys. Because of the cap and the rounding the
   scaling takes several rounds. */
static void draw_sizes(struct life *lives, const struct plan *plan, struct rng *rng)
{
	double sigma = plan->app->size_sigma, offset = rng_real(rng), whole;

	for (uint64_t i = 0; i < plan->keys; i++) {
		double factor = i < plan->core ? 1 : plan->small_unread;
		double u = modf(offset + (double)i * 0.6180339887498949, &whole);

		lives[i].size =
			clamp_size(factor * plan->app->mean_value *
				   exp(sigma * normal_quantile(fmin(fmax(u, 1e-9), 1 - 1e-9)) - sigma * sigma / 2));
		lives[i].key_size =
			(uint8_t)(plan->app->key_low + rng_below(rng, plan->app->key_high - plan->app->key_low + 1));
	}
	for (int round = 0; round < 4; round++) {
		double rows = 0, bytes = 0;

		for (uint64_t i = 0; i < plan->keys; i++) {
			rows += rows_of(&lives[i]);
			bytes += rows_of(&lives[i]) * lives[i].size;
		}
		if (bytes <= 0)
			return;
		for (uint64_t i = 0; i < plan->keys; i++) {
			/* Chance rounds a fraction up or down; otherwise all small values would move alike. */
			double size = lives[i].size * plan->app->mean_value * rows / bytes;

			lives[i].size = clamp_size(floor(size + rng_real(rng)));
		}
	}
}

static void draw_times(struct life *life, const struct plan *plan, struct rng *rng, bool is_hot)
{
	double span = plan->span_s, hour = span / 168, day = span / 7, u = rng_real(rng);
	double shortest = life->gets > 1 ? hour : hour / 60, longest = life->gets > 1 ? span : 2 * day;
	bool is_late = !is_hot && rng_real(rng) < plan->late;

	/* The trace meets the keys of the start early, most of them in the first hours. */
	life->birth = (float)(is_late ? day + u * (span - day) : u * u * day);
	life->length = (float)(shortest * pow(longest / shortest, rng_real(rng)));
	life->length *= (float)plan->pace;
	if (is_hot || life->birth + life->length > span)
		life->length = (float)span - life->birth;
}

void population_make(struct life *lives, const struct plan *plan, struct rng *rng)
{
	struct cutter births = { .total = plan->birth_sets, .total_weight = (double)plan->keys };

	deal_gets(lives, plan);
	deal_the_rest(lives, plan);
	for (uint64_t i = 0; i < plan->keys; i++)
		lives[i].starts_with_set = cut(&births, 1) > 0;
	draw_sizes(lives, plan, rng);
	for (uint64_t i = 0; i < plan->keys; i++)
		lives[i].first_size = lives[i].size;
	/* A key with more than a hundredth of the gets must not live for an hour only: that would be a storm. */
	for (uint64_t i = 0; i < plan->keys; i++)
		draw_times(&lives[i], plan, rng, lives[i].gets > 2 && lives[i].gets > plan->known / 100);
}
