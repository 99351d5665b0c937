/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/track.h"

#include <math.h>
#include <string.h>

static enum track_event compare(const struct sample *before, const struct sample *now)
{
	if (now->value[FIELD_pid] != before->value[FIELD_pid] && !isnan(now->value[FIELD_pid]) &&
	    !isnan(before->value[FIELD_pid]))
		return TRACK_RESTARTED;
	if (now->value[FIELD_uptime] < before->value[FIELD_uptime])
		return TRACK_RESTARTED;
	for (enum field i = 0; i < FIELD_COUNT; i++)
		if (field_info(i)->kind == FIELD_COUNTER && now->value[i] < before->value[i])
			return TRACK_RESET;
	return TRACK_STEADY;
}

void track_add(struct track *track, const struct sample *sample)
{
	track->event = track->has_now ? compare(&track->now, sample) : TRACK_STEADY;
	track->has_before = track->has_now && track->event == TRACK_STEADY;
	if (track->has_before)
		track->before = track->now;
	if (track->event != TRACK_STEADY)
		track->has_base = false;
	track->now = *sample;
	track->has_now = true;
}

void track_rebase(struct track *track)
{
	track->has_base = track->has_now;
	if (track->has_now)
		track->base = track->now;
}

/* The growth of a counter; NAN if it fell. */
static double gained(double before, double now)
{
	return now >= before ? now - before : NAN;
}

static double base_of(const struct track *track, double value)
{
	return track->has_base ? value : 0;
}

static void timings_of(const struct track *track, double seconds, struct basis *basis)
{
	memcpy(basis->timing, track->now.timing, sizeof(basis->timing));
	for (int i = 0; i < TIMINGS; i++) {
		const double *now = track->now.timing[i], *before = track->before.timing[i];
		double was = before[TIMING_COUNT] > 0 ? before[TIMING_COUNT] * before[TIMING_MEAN] : 0;
		double is = now[TIMING_COUNT] > 0 ? now[TIMING_COUNT] * now[TIMING_MEAN] : 0;

		if (!track->has_before)
			continue;
		basis->timing_rate[i] = gained(before[TIMING_COUNT], now[TIMING_COUNT]) / seconds;
		/* Means are rounded, so their sums may seem to go back. */
		basis->timing_time[i] = basis->timing_rate[i] > 0 && is > was ? (is - was) / seconds : NAN;
	}
}

static void apps_of(const struct track *track, double seconds, struct basis *basis)
{
	basis->app_count = track->now.app_count;
	for (unsigned i = 0; i < basis->app_count; i++) {
		const struct app *now = &track->now.apps[i];
		const struct app *before = track->has_before ? sample_app(&track->before, now->name) : NULL;
		const struct app *base = track->has_base ? sample_app(&track->base, now->name) : NULL;

		basis->app_rate[i] = basis->app_total[i] = *now;
		for (int j = 0; j < APP_COUNTS; j++) {
			/* An application that wasn't there has asked for nothing yet. */
			double was = before ? before->count[j] : 0;

			basis->app_rate[i].count[j] = track->has_before ? gained(was, now->count[j]) / seconds : NAN;
			basis->app_total[i].count[j] = gained(base ? base->count[j] : 0, now->count[j]);
		}
	}
}

void basis_clear(struct basis *basis)
{
	memset(basis, 0, sizeof(*basis));
	for (int i = 0; i < FIELD_COUNT; i++)
		basis->value[i] = basis->rate[i] = basis->total[i] = NAN;
	for (int i = 0; i < TIMINGS; i++) {
		basis->timing_rate[i] = basis->timing_time[i] = NAN;
		for (int j = 0; j < TIMING_PARTS; j++)
			basis->timing[i][j] = NAN;
	}
}

void basis_of(const struct track *track, struct basis *basis)
{
	double seconds = (double)(track->now.at_us - track->before.at_us) / 1e6;

	basis_clear(basis);
	if (!track->has_now)
		return;
	if (track->has_before && !(seconds > 0))
		seconds = NAN;
	memcpy(basis->value, track->now.value, sizeof(basis->value));
	for (enum field i = 0; i < FIELD_COUNT; i++) {
		if (field_info(i)->kind != FIELD_COUNTER)
			continue;
		basis->total[i] = gained(base_of(track, track->base.value[i]), track->now.value[i]);
		if (track->has_before)
			basis->rate[i] = gained(track->before.value[i], track->now.value[i]) / seconds;
	}
	timings_of(track, seconds, basis);
	apps_of(track, seconds, basis);
}

/* ---- several servers --------------------------------------------------------------------------- */

static double aggregate(enum field_aggregate how, double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	return how == FIELD_SUM ? a + b : how == FIELD_MAX ? fmax(a, b) : fmin(a, b);
}

static void add_app(struct basis *sum, const struct app *rate, const struct app *total)
{
	unsigned i = 0;

	while (i < sum->app_count && strcmp(sum->app_rate[i].name, rate->name) != 0)
		i++;
	if (i == APPS_MAX)
		return;
	if (i == sum->app_count) {
		sum->app_rate[i] = *rate;
		sum->app_total[i] = *total;
		sum->app_count++;
		return;
	}
	for (int j = 0; j < APP_COUNTS; j++) {
		sum->app_rate[i].count[j] = aggregate(FIELD_SUM, sum->app_rate[i].count[j], rate->count[j]);
		sum->app_total[i].count[j] = aggregate(FIELD_SUM, sum->app_total[i].count[j], total->count[j]);
	}
}

void basis_add(struct basis *sum, const struct basis *one)
{
	for (enum field i = 0; i < FIELD_COUNT; i++) {
		sum->value[i] = aggregate(field_info(i)->aggregate, sum->value[i], one->value[i]);
		sum->rate[i] = aggregate(FIELD_SUM, sum->rate[i], one->rate[i]);
		sum->total[i] = aggregate(FIELD_SUM, sum->total[i], one->total[i]);
	}
	for (int i = 0; i < TIMINGS; i++) {
		for (int j = 0; j < TIMING_PARTS; j++)
			sum->timing[i][j] = aggregate(j == TIMING_COUNT ? FIELD_SUM : FIELD_MAX, sum->timing[i][j],
						      one->timing[i][j]);
		sum->timing_rate[i] = aggregate(FIELD_SUM, sum->timing_rate[i], one->timing_rate[i]);
		sum->timing_time[i] = aggregate(FIELD_SUM, sum->timing_time[i], one->timing_time[i]);
	}
	for (unsigned i = 0; i < one->app_count; i++)
		add_app(sum, &one->app_rate[i], &one->app_total[i]);
}
