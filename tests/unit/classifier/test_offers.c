/* SPDX-License-Identifier: BSD-3-Clause */
/* The threshold of worth that a budget makes, on made-up streams of offers. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "classifier/classifier_internal.h"

#define FLASH_BYTES (64u << 20)
#define LEAST -64.0f /* the lowest threshold: everything passes */
#define OFFERS_EACH 1000 /* between two budgets */
#define RECORD_BYTES 200

#define TURN_MS 1000

static struct offers offers;
static struct rng rng;

static int setup(void **state)
{
	(void)state;
	memset(&offers, 0, sizeof(offers));
	offers_init(&offers, FLASH_BYTES);
	rng_init(&rng, 7);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	offers_fini(&offers);
	return 0;
}

/* What the applications wrote in a turn, all of which is offered in the end. */
#define APP_BYTES ((double)OFFERS_EACH * RECORD_BYTES)

static void budget(double app_bytes, double written_bytes, double allowed_bytes)
{
	offers_budget(&offers, &(struct offers_spent){ .ms = TURN_MS,
						       .app_bytes = app_bytes,
						       .written_bytes = written_bytes,
						       .allowed_bytes = allowed_bytes });
}

static float spread_evenly(void)
{
	return (float)(-12 + 10 * rng_real(&rng));
}

static float all_alike(void)
{
	return -8 + offers_tie(rng_next(&rng));
}

/*
 * Offers for so many turns; the budget allows a share of what applications write, and of what is admitted a part is
 * written. Returns the bytes written in the last quarter of the turns, as a share of what applications wrote.
 */
static double written_share(unsigned turns, float (*worth)(void), double allowed_share, double written_part)
{
	double written = 0;

	for (unsigned turn = 0; turn < turns; turn++) {
		double admitted = 0;

		for (unsigned i = 0; i < OFFERS_EACH; i++)
			if (offers_add(&offers, worth(), RECORD_BYTES))
				admitted += RECORD_BYTES;
		budget(APP_BYTES, admitted * written_part, APP_BYTES * allowed_share);
		assert_true(isfinite(offers_threshold(&offers)));
		if (turn >= turns / 4 * 3)
			written += admitted * written_part;
	}
	return written / APP_BYTES / (turns / 4.0);
}

static bool near(double got, double wanted, double off)
{
	return fabs(got - wanted) <= off;
}

/* ---- nothing, and no limit ---------------------------------------------------------------------- */

static void of_nothing_the_threshold_is_a_number(void **state)
{
	(void)state;
	static const double allowed[] = { -1, 0, 1e9 };

	for (unsigned i = 0; i < 3; i++) {
		budget(0, 0, allowed[i]);
		assert_true(offers_threshold(&offers) == LEAST);
		assert_true(offers_share(&offers) == 1);
	}
	budget(0, 1e9, 0); /* written, though nothing was allowed */
	assert_true(offers_threshold(&offers) == LEAST);
	(void)!offers_add(&offers, -8, 0); /* a record without a byte */
	budget(1e30, 1e30, 1e30); /* and all that was is forgotten */
	assert_true(offers_threshold(&offers) == LEAST);
	assert_true(offers_share(&offers) == 1);
}

static void a_flash_without_a_byte_gives_a_number_too(void **state)
{
	(void)state;
	offers_fini(&offers);
	memset(&offers, 0, sizeof(offers));
	offers_init(&offers, 0);
	(void)!offers_add(&offers, -8, 100);
	budget(1000, 50, 50);
	assert_true(isfinite(offers_threshold(&offers)));
}

static void without_a_limit_everything_passes(void **state)
{
	(void)state;
	(void)written_share(40, spread_evenly, 0.1, 1);
	assert_true(offers_threshold(&offers) > -8);
	budget(APP_BYTES, APP_BYTES, -1);
	assert_true(offers_threshold(&offers) == LEAST);
	assert_true(offers_add(&offers, -1000, 1));
	assert_true(offers_share(&offers) == 1);
	assert_true(written_share(40, spread_evenly, -1, 1) == 1);
}

/* Neither what was written without a limit counts against it, nor what was offered. */
static void a_limit_that_is_set_later_is_met_from_its_beginning(void **state)
{
	(void)state;
	(void)written_share(800, spread_evenly, -1, 1);
	assert_true(near(written_share(20, spread_evenly, 0.3, 1), 0.3, 0.1));
}

static void worth_beyond_the_scale_counts_at_its_ends(void **state)
{
	(void)state;
	assert_true(offers_add(&offers, -1e9f, 100));
	assert_true(offers_add(&offers, 1e9f, 100));
	budget(1, 0, 100);
	assert_true(offers_threshold(&offers) > LEAST);
	assert_false(offers_add(&offers, -1e9f, 100));
	assert_true(offers_add(&offers, 1e9f, 100));
}

/* ---- the budget ----------------------------------------------------------------------------------- */

static void the_threshold_lets_the_budgeted_share_pass(void **state)
{
	(void)state;
	static const double shares[] = { 0.05, 0.3, 0.8 };

	for (unsigned i = 0; i < 3; i++) {
		assert_true(near(written_share(4000, spread_evenly, shares[i], 1), shares[i], 0.02));
		/* Worth is spread over 10 octaves below -2: so far from there is the threshold. */
		assert_true(near((double)offers_threshold(&offers), -2 - 10 * shares[i], 0.5));
		assert_true(near(offers_share(&offers), shares[i], 0.05));
	}
}

/* Large and small records of equal worth: bytes count, not objects. */
static void bytes_count_and_not_objects(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 100; turn++) {
		(void)!offers_add(&offers, -3, 9000);
		for (unsigned i = 0; i < 10; i++)
			(void)!offers_add(&offers, -6, 100);
	}
	budget(100 * 9000, 0, 100 * 9000);
	assert_true(offers_threshold(&offers) <= -3 && offers_threshold(&offers) > -5.8f);
	assert_true(near(offers_share(&offers), 0.9, 0.01));
}

static void an_idle_time_is_no_allowance(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		budget(0, 0, 1e12);
	assert_true(near(written_share(400, spread_evenly, 0.3, 1), 0.3, 0.05));
}

/* As while the flash holds all data: later nothing has to be paid back. */
static void where_everything_passes_the_correction_does_not_rise(void **state)
{
	(void)state;
	(void)written_share(4000, spread_evenly, 1.5, 1);
	assert_true(offers_threshold(&offers) == LEAST);
	assert_true(offers.correction < 1.2);
}

static void ties_are_split(void **state)
{
	(void)state;
	assert_true(near(written_share(400, all_alike, 0.25, 1), 0.25, 0.05));
}

static void a_tie_is_a_keys_own_and_even_below_half_an_octave(void **state)
{
	(void)state;
	double sum = 0;

	for (uint64_t key = 0; key < 10000; key++) {
		float tie = offers_tie(mix64(key));

		assert_true(tie >= 0 && tie < 0.5f);
		assert_true(offers_tie(mix64(key)) == tie);
		sum += (double)tie;
	}
	assert_true(near(sum / 10000, 0.25, 0.01));
}

static void the_threshold_moves_with_the_budget(void **state)
{
	(void)state;
	assert_true(near(written_share(400, spread_evenly, 0.1, 1), 0.1, 0.02));
	float high = offers_threshold(&offers);
	assert_true(near(written_share(4000, spread_evenly, 0.5, 1), 0.5, 0.03));
	float low = offers_threshold(&offers);
	assert_true(low < high - 3);
	assert_true(near(written_share(4000, spread_evenly, 0.1, 1), 0.1, 0.03));
	assert_true(offers_threshold(&offers) > low + 3);
}

/* What the offers were a flash's size ago says nothing any more. */
static void old_offers_are_forgotten(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++)
		(void)!offers_add(&offers, 5, 100000);
	budget(APP_BYTES, 0, 1000);
	assert_true(offers_threshold(&offers) > 4);
	assert_true(near(written_share(4000, spread_evenly, 0.3, 1), 0.3, 0.03));
	assert_true(offers_threshold(&offers) < -2);
}

/* ---- the correction --------------------------------------------------------------------------------- */

static void what_is_written_is_what_is_allowed_although_half_of_the_admitted_never_is(void **state)
{
	(void)state;
	assert_true(near(written_share(4000, spread_evenly, 0.3, 0.5), 0.3, 0.02));
	assert_true(near(offers_share(&offers), 0.6, 0.05));
}

/* Padding, or objects that are written again. */
static void what_is_written_is_what_is_allowed_although_more_than_the_admitted_is(void **state)
{
	(void)state;
	assert_true(near(written_share(4000, spread_evenly, 0.3, 1.5), 0.3, 0.02));
	assert_true(near(offers_share(&offers), 0.2, 0.05));
}

/* As under --flash-write-limit while the load doubles and halves: as many bytes as before may be written. */
static void what_is_written_stays_although_the_load_changes(void **state)
{
	(void)state;
	static const double loads[] = { 1, 2, 1 };

	(void)written_share(4000, spread_evenly, 0.1, 1);
	for (unsigned change = 0; change < 3; change++) {
		for (unsigned part = 0; part < 20; part++) { /* in each a fortieth of the flash's size is written */
			double share = written_share(8, spread_evenly, 0.1 / loads[change], 1);

			assert_true(share * loads[change] > 0.03 && share * loads[change] < 0.22);
			if (part >= 10)
				assert_true(near(share * loads[change], 0.1, 0.04));
		}
	}
}

/* What a cap holds back waits: admitting more would only make it worse. */
static void what_is_held_up_lowers_no_yield(void **state)
{
	(void)state;
	(void)written_share(400, spread_evenly, 0.3, 1);
	for (unsigned turn = 0; turn < 4000; turn++) {
		for (unsigned i = 0; i < OFFERS_EACH; i++)
			(void)!offers_add(&offers, spread_evenly(), RECORD_BYTES);
		offers_budget(&offers, &(struct offers_spent){ .ms = TURN_MS,
							       .app_bytes = APP_BYTES,
							       .written_bytes = APP_BYTES / 100,
							       .allowed_bytes = APP_BYTES * 0.3,
							       .held_up = true });
	}
	assert_true(near(offers_share(&offers), 0.3, 0.03));
}

/* For long nothing can be written; the debt of that time doesn't make the threshold useless. */
static void the_correction_keeps_within_its_bounds(void **state)
{
	(void)state;
	(void)written_share(4000, spread_evenly, 0.3, 0);
	assert_true(offers.correction <= 10.0001);
	assert_true(near(written_share(4000, spread_evenly, 0.3, 1), 0.3, 0.03));
	(void)written_share(4000, spread_evenly, 0.01, 1000);
	assert_true(offers.correction >= 0.0999);
	assert_true(near(written_share(4000, spread_evenly, 0.3, 1), 0.3, 0.03));
}

/* ---- the share -------------------------------------------------------------------------------------- */

static void the_share_counts_a_part_of_the_bin_that_the_threshold_lies_in(void **state)
{
	(void)state;
	(void)!offers_add(&offers, -7.9f, 1000); /* all in one bin, as records of one size and count are */
	budget(250, 250, 250);
	assert_true(near(offers_share(&offers), 0.25, 0.01));
	assert_true(near((double)offers_threshold(&offers), -7.75 - 0.25 * 0.25, 0.01));
}

/* ---- threads ------------------------------------------------------------------------------------------ */

static void *offer_many(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 10000; i++)
		(void)!offers_add(&offers, -2 - (float)(i % 10), 10);
	return NULL;
}

static void offers_of_several_threads_all_count(void **state)
{
	(void)state;
	pthread_t thread[3];
	double bytes = 0;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, offer_many, NULL), 0);
	for (unsigned i = 0; i < 100; i++)
		budget(0, 0, 100); /* without application bytes nothing is forgotten */
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	budget(0, 0, 100);
	for (unsigned i = 0; i < OFFERS_BINS; i++)
		bytes += offers.bytes[i];
	assert_true(near(bytes, 300000, 0.001));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_nothing_the_threshold_is_a_number),
		TEST(a_flash_without_a_byte_gives_a_number_too),
		TEST(without_a_limit_everything_passes),
		TEST(a_limit_that_is_set_later_is_met_from_its_beginning),
		TEST(worth_beyond_the_scale_counts_at_its_ends),
		TEST(the_threshold_lets_the_budgeted_share_pass),
		TEST(bytes_count_and_not_objects),
		TEST(an_idle_time_is_no_allowance),
		TEST(where_everything_passes_the_correction_does_not_rise),
		TEST(ties_are_split),
		TEST(a_tie_is_a_keys_own_and_even_below_half_an_octave),
		TEST(the_threshold_moves_with_the_budget),
		TEST(old_offers_are_forgotten),
		TEST(what_is_written_is_what_is_allowed_although_half_of_the_admitted_never_is),
		TEST(what_is_written_is_what_is_allowed_although_more_than_the_admitted_is),
		TEST(what_is_written_stays_although_the_load_changes),
		TEST(what_is_held_up_lowers_no_yield),
		TEST(the_correction_keeps_within_its_bounds),
		TEST(the_share_counts_a_part_of_the_bin_that_the_threshold_lies_in),
		TEST(offers_of_several_threads_all_count),
	};

	return cmocka_run_group_tests_name("offers", tests, NULL, NULL);
}
