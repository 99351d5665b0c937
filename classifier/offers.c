/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threshold of worth that a budget of bytes makes. Each object that might go to flash, or stay there, is an offer:
 * its record's bytes count in the bin of its worth. The threshold lies where the offers above it, lately, had as many
 * bytes as may be written. So it follows from what is offered, without swinging. A slow correction makes up for what
 * the offers don't show: padding, objects that change before they are written, and offers that come in bursts.
 *
 * "Lately" is counted in bytes that applications write: old offers lose half of their weight with each half of the
 * flash's size.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "classifier/classifier_internal.h"

#define BIN_LEAST (-64.0) /* worth, the lower end of the first bin: the largest record, at a size exponent of 2 */
#define BINS_PER_OCTAVE 4.0
#define WINDOW_SHARE 0.5 /* of the flash's size */
#define ALLOWED_MOST 4.0 /* times what applications write */
#define CORRECTION_SPEED 0.5 /* per window and unit of error */
#define CORRECTION_LEAST 0.01
#define CORRECTION_MOST 10.0
#define TIE_OCTAVES 0.5

void offers_init(struct offers *offers, uint64_t flash_bytes)
{
	lock_init(&offers->lock, LOCK_LEAF);
	offers->window_bytes = fmax((double)flash_bytes * WINDOW_SHARE, 1);
	offers->correction = 1;
	atomic_init(&offers->threshold, (float)BIN_LEAST);
}

void offers_fini(struct offers *offers)
{
	lock_fini(&offers->lock);
}

/* Many objects are equal in count and size. Their keys tell them apart, so that the threshold can let a part of them
   pass, always the same ones. */
float offers_tie(uint64_t key)
{
	return (float)((double)(mix64(key) >> 40) * 0x1.0p-24 * TIE_OCTAVES);
}

bool offers_add(struct offers *offers, float worth, uint32_t record_bytes)
{
	double bin = (worth - BIN_LEAST) * BINS_PER_OCTAVE;
	unsigned at = bin < 0 ? 0 : bin >= OFFERS_BINS ? OFFERS_BINS - 1 : (unsigned)bin;

	atomic_fetch_add_explicit(&offers->new_bytes[at], record_bytes, memory_order_relaxed);
	return worth >= offers_threshold(offers) || offers_threshold(offers) <= (float)BIN_LEAST;
}

/* The worth above which so many bytes were offered; within a bin they are taken as spread evenly. */
static double threshold_for(const struct offers *offers, double bytes)
{
	for (unsigned i = OFFERS_BINS; i-- > 0;) {
		if (offers->bytes[i] > bytes)
			return BIN_LEAST + (i + 1 - bytes / offers->bytes[i]) / BINS_PER_OCTAVE;
		bytes -= offers->bytes[i];
	}
	return BIN_LEAST;
}

static void offers_forget(struct offers *offers, double ms, double app_bytes)
{
	double kept = exp2(-app_bytes / offers->window_bytes);

	for (unsigned i = 0; i < OFFERS_BINS; i++)
		offers->bytes[i] = offers->bytes[i] * kept +
				   (double)atomic_exchange_explicit(&offers->new_bytes[i], 0, memory_order_relaxed);
	offers->app_bytes = offers->app_bytes * kept + app_bytes;
	offers->ms = offers->ms * kept + ms;
	if (offers->app_bytes > 0)
		atomic_store_explicit(&offers->turn_ms,
				      offers->ms / offers->app_bytes * offers->window_bytes / WINDOW_SHARE,
				      memory_order_relaxed);
	offers->allowed *= kept;
	offers->written *= kept;
}

/* Where everything passes already, allowing more would only be paid for later. */
static void offers_correct(struct offers *offers, double app_bytes)
{
	double error = (offers->allowed - offers->written) / offers->allowed;
	double turn = CORRECTION_SPEED * fmin(fmax(error, -1), 1) * fmin(app_bytes / offers->window_bytes, 1);

	if (turn > 0 && (double)offers_threshold(offers) <= BIN_LEAST)
		return;
	offers->correction = fmin(fmax(offers->correction * exp(turn), CORRECTION_LEAST), CORRECTION_MOST);
}

void offers_budget(struct offers *offers, double ms, double app_bytes, double written_bytes, double allowed_bytes)
{
	double threshold = BIN_LEAST;

	lock_acquire(&offers->lock);
	offers_forget(offers, ms, app_bytes);
	if (allowed_bytes >= 0) {
		offers->allowed += fmin(allowed_bytes, ALLOWED_MOST * app_bytes); /* an idle time is no allowance */
		offers->written += written_bytes;
		if (offers->allowed > 0)
			offers_correct(offers, app_bytes);
		threshold = threshold_for(offers, offers->allowed * offers->correction);
	} else { /* a limit that is set later begins with the offers from then on */
		memset(offers->bytes, 0, sizeof(offers->bytes));
		offers->allowed = offers->written = 0;
		offers->correction = 1;
	}
	must(threshold >= BIN_LEAST);
	atomic_store_explicit(&offers->threshold, (float)threshold, memory_order_relaxed);
	lock_release(&offers->lock);
}

double offers_share(struct offers *offers)
{
	double threshold = (double)offers_threshold(offers), all = 0, above = 0;

	lock_acquire(&offers->lock);
	for (unsigned i = 0; i < OFFERS_BINS; i++) {
		double part = i + 1 - (threshold - BIN_LEAST) * BINS_PER_OCTAVE; /* spread evenly, as above */

		all += offers->bytes[i];
		above += offers->bytes[i] * fmin(fmax(part, 0), 1);
	}
	lock_release(&offers->lock);
	return all > 0 ? above / all : 1;
}
