/* SPDX-License-Identifier: BSD-3-Clause */
/* From samples to rates, totals and sums; and the figures made of them. */
#include "tests/unit/tools/top/top_test.h"

#include "tools/top/figures.h"

static struct track track;
static struct sample sample;
static struct basis basis;
static double figures[FIG_COUNT];

static int fresh(void **state)
{
	(void)state;
	memset(&track, 0, sizeof(track));
	return 0;
}

/* A sample with these hits and misses, as the next one. */
static void next(double uptime, double hits, double misses)
{
	a_sample(&sample, uptime);
	sample.value[FIELD_get_hits] = hits;
	sample.value[FIELD_get_misses] = misses;
	track_add(&track, &sample);
	basis_of(&track, &basis);
	figures_of(&basis, figures);
}

static void without_a_sample_nothing_is_known(void **state)
{
	(void)state;
	basis_of(&track, &basis);
	figures_of(&basis, figures);
	for (int i = 0; i < FIG_COUNT; i++)
		assert_unknown(figures[i]);
}

static void the_first_sample_has_totals_and_no_rates(void **state)
{
	(void)state;
	next(10, 30, 10);
	assert_number(figures[FIG_hit_ratio], 0.75);
	assert_unknown(figures[FIG_hit_ratio_now]);
	assert_unknown(figures[FIG_gets_per_second]);
}

static void counters_that_go_back_give_no_rate_once(void **state)
{
	(void)state;
	next(10, 30, 10);
	next(12, 50, 10);
	next(13, 4, 1);
	assert_int_equal(track.event, TRACK_RESET);
	assert_unknown(figures[FIG_hit_ratio_now]);
	assert_unknown(figures[FIG_misses_per_second]);
	assert_number(figures[FIG_hit_ratio], 0.8);
	next(14, 8, 1);
	assert_int_equal(track.event, TRACK_STEADY);
	assert_number(figures[FIG_hit_ratio_now], 1);
	assert_number(figures[FIG_gets_per_second], 4);
}

static void another_process_gives_no_rate_even_if_it_counted_more(void **state)
{
	(void)state;
	next(10, 30, 10);
	a_sample(&sample, 11);
	sample.value[FIELD_pid] = 18;
	sample.value[FIELD_get_hits] = 900;
	sample.value[FIELD_get_misses] = 100;
	track_add(&track, &sample);
	basis_of(&track, &basis);
	assert_int_equal(track.event, TRACK_RESTARTED);
	assert_unknown(basis.rate[FIELD_get_hits]);
	next(5, 1000, 100); /* less uptime */
	assert_int_equal(track.event, TRACK_RESTARTED);
	assert_unknown(basis.rate[FIELD_get_hits]);
}

static void two_samples_at_one_time_give_no_rate(void **state)
{
	(void)state;
	next(10, 30, 10);
	next(10, 40, 10);
	assert_unknown(figures[FIG_gets_per_second]);
	assert_number(figures[FIG_hit_ratio], 0.8);
}

static void a_row_that_comes_and_goes_gives_no_rate(void **state)
{
	(void)state;
	next(10, 30, NAN);
	next(11, 40, 10);
	assert_unknown(basis.rate[FIELD_get_misses]);
	assert_number(basis.rate[FIELD_get_hits], 10);
	assert_unknown(figures[FIG_hit_ratio_now]);
}

static void rates_are_per_second(void **state)
{
	(void)state;
	next(10, 30, 10);
	next(14, 130, 30);
	assert_number(figures[FIG_gets_per_second], 30);
	assert_number(figures[FIG_misses_per_second], 5);
	assert_number(figures[FIG_hit_ratio_now], 100.0 / 120);
	assert_number(figures[FIG_hit_ratio], 130.0 / 160);
}

static void totals_count_from_the_base(void **state)
{
	(void)state;
	track_rebase(&track); /* before anything is known: changes nothing */
	next(10, 30, 10);
	assert_number(figures[FIG_hit_ratio], 0.75);
	track_rebase(&track);
	next(12, 31, 13);
	assert_number(figures[FIG_hit_ratio], 0.25);
	next(13, 1, 1); /* reset: the base is gone with it */
	assert_number(figures[FIG_hit_ratio], 0.5);
}

static void nothing_over_nothing_is_unknown(void **state)
{
	(void)state;
	next(10, 0, 0);
	next(11, 0, 0);
	assert_unknown(figures[FIG_hit_ratio_now]);
	assert_unknown(figures[FIG_hit_ratio]);
	assert_number(figures[FIG_gets_per_second], 0);
}

static void ratios_stay_within_one(void **state)
{
	(void)state;
	a_sample(&sample, 10);
	sample.value[FIELD_index_slots] = 10;
	sample.value[FIELD_index_slots_used] = 11;
	track_add(&track, &sample);
	basis_of(&track, &basis);
	figures_of(&basis, figures);
	assert_number(figures[FIG_index_load], 1);
}

static void means_of_now_come_from_counts_and_means(void **state)
{
	(void)state;
	a_sample(&sample, 10);
	sample.timing[TIMING_set][TIMING_COUNT] = 100;
	sample.timing[TIMING_set][TIMING_MEAN] = 10;
	track_add(&track, &sample);
	a_sample(&sample, 12);
	sample.timing[TIMING_set][TIMING_COUNT] = 200;
	sample.timing[TIMING_set][TIMING_MEAN] = 15;
	track_add(&track, &sample);
	basis_of(&track, &basis);
	assert_number(basis.timing_rate[TIMING_set], 50);
	assert_number(basis.timing_time[TIMING_set] / basis.timing_rate[TIMING_set], 20);
	assert_unknown(basis.timing_rate[TIMING_miss]);
}

static void several_servers_are_summed_and_the_worst_counts(void **state)
{
	struct basis sum;

	(void)state;
	basis_clear(&sum);
	for (int i = 1; i <= 2; i++) {
		fresh(NULL);
		a_sample(&sample, 10);
		sample.value[FIELD_curr_items] = 100 * i;
		sample.value[FIELD_precision] = 0.2 * i;
		sample.value[FIELD_clwa_5m] = 0.3 * i;
		sample.timing[TIMING_set][TIMING_COUNT] = 5 * i;
		sample.timing[TIMING_set][TIMING_P99] = 7 * i;
		give(&sample, REPORT_APPS, "both:get_count", i == 1 ? "3" : "4");
		give(&sample, REPORT_APPS, i == 1 ? "one:get_count" : "two:get_count", "9");
		track_add(&track, &sample);
		basis_of(&track, &basis);
		basis_add(&sum, &basis);
	}
	assert_number(sum.value[FIELD_curr_items], 300);
	assert_number(sum.value[FIELD_precision], 0.2);
	assert_number(sum.value[FIELD_clwa_5m], 0.6);
	assert_number(sum.timing[TIMING_set][TIMING_COUNT], 15);
	assert_number(sum.timing[TIMING_set][TIMING_P99], 14);
	assert_int_equal(sum.app_count, 3);
	assert_string_equal(sum.app_total[0].name, "both");
	assert_number(sum.app_total[0].count[APP_GETS], 7);
	assert_unknown(sum.value[FIELD_get_hits]);
}

static void an_application_that_appears_has_asked_for_nothing_before(void **state)
{
	(void)state;
	a_sample(&sample, 10);
	track_add(&track, &sample);
	a_sample(&sample, 12);
	give(&sample, REPORT_APPS, "new:get_count", "8");
	track_add(&track, &sample);
	basis_of(&track, &basis);
	assert_number(basis.app_rate[0].count[APP_GETS], 4);
	assert_number(basis.app_total[0].count[APP_GETS], 8);
}

static void figures_as_text(void **state)
{
	static const struct {
		enum unit unit;
		double value;
		const char *text;
	} cases[] = {
		{ UNIT_RATIO, NAN, "-" },           { UNIT_BYTES, 1e30, "?" },
		{ UNIT_RATIO, 0.9533, "95.3 %" },   { UNIT_RATIO, 0.0123, "1.23 %" },
		{ UNIT_RATIO, 1, "100.0 %" },       { UNIT_RATE, 52140, "52.1 k" },
		{ UNIT_SPEED, 2048, "2.00 KiB/s" }, { UNIT_COUNT, 0, "0" },
		{ UNIT_SECONDS, 90, "90.0 s" },     { UNIT_MICROSECONDS, 65, "65 us" },
		{ UNIT_FACTOR, 0.00012, "0.0001" }, { UNIT_FACTOR, 1, "1.000" },
		{ UNIT_RATIO, 1e9, "999900 %" },
	};
	char text[FIGURE_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(figure_text(cases[i].unit, cases[i].value, text), cases[i].text);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_sample_nothing_is_known),
		TEST(the_first_sample_has_totals_and_no_rates),
		TEST(counters_that_go_back_give_no_rate_once),
		TEST(another_process_gives_no_rate_even_if_it_counted_more),
		TEST(two_samples_at_one_time_give_no_rate),
		TEST(a_row_that_comes_and_goes_gives_no_rate),
		TEST(rates_are_per_second),
		TEST(totals_count_from_the_base),
		TEST(nothing_over_nothing_is_unknown),
		TEST(ratios_stay_within_one),
		TEST(means_of_now_come_from_counts_and_means),
		TEST(several_servers_are_summed_and_the_worst_counts),
		TEST(an_application_that_appears_has_asked_for_nothing_before),
		TEST(figures_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
