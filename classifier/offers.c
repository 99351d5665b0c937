/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threshold of worth that a budget of bytes makes. Each object that might go to flash, or stay there, is an offer:
 * its record's bytes count in the bin of its worth. The threshold lies where the offers above it, lately, had as many
 * bytes as may be admitted. So it follows from what is offered, without swinging. Two things refine it:
 *
 *   yield       the bytes written for each byte admitted. Padding raises it, and objects that change before they are
 *               written lower it.
 *   correction  what is admitted is compared with the allowance, of a short time. Offers change while old ones still
 *               have their weight. An admission is known at once and a write much later, so this can be quick.
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
#define RECENT_SHARE 0.0625 /* of the window: the short time in which admissions are to keep to the allowance */
#define ALLOWED_MOST 4.0 /* times what applications write */
#define CORRECTION_SPEED 0.5 /* per short time and unit of error */
#define CORRECTION_LEAST 0.1
#define CORRECTION_MOST 10.0
#define YIELD_LEAST 0.25
#define YIELD_MOST 4.0
#define YIELD_TRUST \
	0.5 /* of the window: the weight of the first yield, 1. What is admitted first waits for a segment */
#define TIE_OCTAVES 0.5
#define AMOUNT_MOST 0x1p60 /* bytes or milliseconds that are believed of a file */

static void offers_restart(struct offers *offers)
{
	memset(offers->bytes, 0, sizeof(offers->bytes));
	offers->offered_app_bytes = 0;
	offers->recent_allowed = offers->recent_admitted = offers->recent_app_bytes = 0;
	offers->admitted = offers->written = offers->window_bytes * YIELD_TRUST;
	offers->correction = 1;
	offers->begun = false;
}

void offers_init(struct offers *offers, uint64_t flash_bytes)
{
	lock_init(&offers->lock, LOCK_LEAF);
	offers->window_bytes = fmax((double)flash_bytes * WINDOW_SHARE, 1);
	offers_restart(offers);
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

bool offers_all_pass(const struct offers *offers)
{
	return offers_threshold(offers) <= (float)BIN_LEAST;
}

bool offers_add(struct offers *offers, float worth, uint32_t record_bytes)
{
	double bin = (worth - BIN_LEAST) * BINS_PER_OCTAVE;
	unsigned at = bin < 0 ? 0 : bin >= OFFERS_BINS ? OFFERS_BINS - 1 : (unsigned)bin;
	bool admitted = worth >= offers_threshold(offers) || offers_all_pass(offers);

	atomic_fetch_add_explicit(&offers->new_bytes[at], record_bytes, memory_order_relaxed);
	if (admitted)
		atomic_fetch_add_explicit(&offers->new_admitted, record_bytes, memory_order_relaxed);
	return admitted;
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
	double kept_recent = exp2(-app_bytes / (offers->window_bytes * RECENT_SHARE));

	for (unsigned i = 0; i < OFFERS_BINS; i++)
		offers->bytes[i] = offers->bytes[i] * kept +
				   (double)atomic_exchange_explicit(&offers->new_bytes[i], 0, memory_order_relaxed);
	offers->app_bytes = offers->app_bytes * kept + app_bytes;
	offers->ms = offers->ms * kept + ms;
	offers->offered_app_bytes = offers->offered_app_bytes * kept + app_bytes;
	if (offers->app_bytes > 0)
		atomic_store_explicit(&offers->turn_ms,
				      offers->ms / offers->app_bytes * offers->window_bytes / WINDOW_SHARE,
				      memory_order_relaxed);
	offers->admitted *= kept;
	offers->written *= kept;
	offers->recent_app_bytes = offers->recent_app_bytes * kept_recent + app_bytes;
	offers->recent_allowed *= kept_recent;
	offers->recent_admitted *= kept_recent;
}

static double offers_yield(const struct offers *offers)
{
	double yield = offers->admitted > 0 ? offers->written / offers->admitted : 1;

	return fmin(fmax(yield, YIELD_LEAST), YIELD_MOST);
}

/* Where everything passes already, allowing more would only be paid for later. */
static void offers_correct(struct offers *offers, double app_bytes)
{
	double error = 1 - offers->recent_admitted / offers->recent_allowed;
	double part = fmin(app_bytes / (offers->window_bytes * RECENT_SHARE), 1);
	double turn = CORRECTION_SPEED * fmax(error, -1) * part;

	if (turn > 0 && offers_all_pass(offers))
		return;
	offers->correction = fmin(fmax(offers->correction * exp(turn), CORRECTION_LEAST), CORRECTION_MOST);
}

void offers_budget(struct offers *offers, const struct offers_spent *spent)
{
	double threshold = BIN_LEAST, admitted, yield, allowed, taken, wanted;

	lock_acquire(&offers->lock);
	offers_forget(offers, spent->ms, spent->app_bytes);
	admitted = (double)atomic_exchange_explicit(&offers->new_admitted, 0, memory_order_relaxed);
	if (spent->allowed_bytes >= 0) {
		if (offers->begun) {
			/* What a cap holds back waits, and is not lost. */
			offers->admitted += admitted;
			offers->written += spent->held_up ? fmax(spent->written_bytes, admitted) : spent->written_bytes;
		}
		yield = offers_yield(offers);
		allowed = fmin(spent->allowed_bytes, ALLOWED_MOST * spent->app_bytes); /* an idle time allows nothing */
		taken = admitted * yield;
		offers->recent_allowed += allowed;
		offers->recent_admitted += offers->begun ? taken : fmin(taken, allowed); /* no threshold held it back */
		offers->begun = true;
		if (offers->recent_allowed > 0)
			offers_correct(offers, spent->app_bytes);
		if (offers->recent_app_bytes > 0) {
			wanted = offers->recent_allowed / offers->recent_app_bytes * offers->offered_app_bytes / yield;
			threshold = threshold_for(offers, wanted * offers->correction);
		}
	} else { /* a limit that is set later begins with the offers from then on */
		offers_restart(offers);
	}
	if (spent->free) {
		threshold = BIN_LEAST;
		offers->begun = false; /* what is admitted now is paid by nobody */
	}
	must(threshold >= BIN_LEAST);
	atomic_store_explicit(&offers->threshold, (float)threshold, memory_order_relaxed);
	lock_release(&offers->lock);
}

void offers_save(struct offers *offers, struct offers_saved *out)
{
	lock_acquire(&offers->lock);
	*out = (struct offers_saved){ .threshold = (double)offers_threshold(offers),
				      .turn_ms = atomic_load(&offers->turn_ms),
				      .offered_app_bytes = offers->offered_app_bytes,
				      .app_bytes = offers->app_bytes,
				      .ms = offers->ms,
				      .admitted = offers->admitted,
				      .written = offers->written,
				      .recent_app_bytes = offers->recent_app_bytes,
				      .recent_allowed = offers->recent_allowed,
				      .recent_admitted = offers->recent_admitted,
				      .correction = offers->correction,
				      .window_bytes = offers->window_bytes,
				      .begun = offers->begun };
	memcpy(out->bytes, offers->bytes, sizeof(out->bytes));
	lock_release(&offers->lock);
}

static bool is_amount(double amount)
{
	return amount >= 0 && amount <= AMOUNT_MOST;
}

bool offers_are_sound(const struct offers_saved *saved)
{
	const double amounts[] = { saved->turn_ms,          saved->offered_app_bytes,
				   saved->app_bytes,        saved->ms,
				   saved->admitted,         saved->written,
				   saved->recent_app_bytes, saved->recent_allowed,
				   saved->recent_admitted };

	for (unsigned i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++)
		if (!is_amount(amounts[i]))
			return false;
	for (unsigned i = 0; i < OFFERS_BINS; i++)
		if (!is_amount(saved->bytes[i]))
			return false;
	return saved->threshold >= BIN_LEAST && saved->threshold <= BIN_LEAST + OFFERS_BINS / BINS_PER_OCTAVE &&
	       saved->correction >= CORRECTION_LEAST && saved->correction <= CORRECTION_MOST;
}

void offers_load(struct offers *offers, const struct offers_saved *saved)
{
	lock_acquire(&offers->lock);
	atomic_store(&offers->threshold, (float)saved->threshold);
	atomic_store(&offers->turn_ms, saved->turn_ms);
	memcpy(offers->bytes, saved->bytes, sizeof(offers->bytes));
	offers->offered_app_bytes = saved->offered_app_bytes;
	offers->app_bytes = saved->app_bytes;
	offers->ms = saved->ms;
	offers->admitted = saved->admitted;
	offers->written = saved->written;
	offers->recent_app_bytes = saved->recent_app_bytes;
	offers->recent_allowed = saved->recent_allowed;
	offers->recent_admitted = saved->recent_admitted;
	offers->correction = saved->correction;
	offers->begun = saved->begun != 0;
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
