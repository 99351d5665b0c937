/* SPDX-License-Identifier: BSD-3-Clause */
/* Ages by ids: right to a few percent, over seconds and years, whatever the rate of writes. */
#include "server/store/state/id_times.h"
#include "tests/unit/server/store/harness.h"

#define DAY 86400u

static uint64_t now_ms(struct harness *h)
{
	return clk_now_ms(&h->clk);
}

static uint32_t age(struct harness *h, uint64_t id, bool *earlier)
{
	return id_age_seconds(h->store, id, now_ms(h), earlier);
}

/* Gives so many ids, and returns the first of them. */
static uint64_t give(struct harness *h, uint64_t count)
{
	return atomic_fetch_add(&h->store->cas_next, count);
}

static void ids_of_an_earlier_process(void **state)
{
	struct harness *h = *state;
	uint64_t first;
	bool earlier;

	harness_open(h);
	give(h, 500);
	id_times_begin(h->store);
	first = atomic_load(&h->store->cas_next);
	seconds_pass(h, 30);
	assert_int_equal(age(h, 1, &earlier), 30);
	assert_true(earlier);
	assert_int_equal(age(h, first - 1, &earlier), 30);
	assert_true(earlier);
	(void)age(h, first, &earlier);
	assert_false(earlier);
}

/* An id that is given now, and one that isn't given yet: what is read at the same time may be ahead. */
static void ids_of_this_moment(void **state)
{
	struct harness *h = *state;
	bool earlier;

	harness_open(h);
	id_times_begin(h->store);
	assert_int_equal(age(h, give(h, 1), &earlier), 0);
	assert_false(earlier);
	assert_int_equal(age(h, UINT64_MAX, &earlier), 0);
	assert_false(earlier);
}

/* Without writes there are no marks: an id given before a pause is as old as the pause. */
static void a_pause(void **state)
{
	struct harness *h = *state;
	uint64_t before, after;
	bool earlier;

	harness_open(h);
	id_times_begin(h->store);
	before = give(h, 10);
	clk_scripted_advance(&h->clk, 1000000);
	id_times_note(h->store);
	for (unsigned i = 0; i < 3600; i++) {
		clk_scripted_advance(&h->clk, 1000000);
		id_times_note(h->store);
	}
	after = give(h, 10);
	assert_in_range(age(h, before, &earlier), 3600, 3601);
	assert_in_range(age(h, after + 9, &earlier), 0,
			3600); /* no mark tells it from the ids of the pause's beginning */
	clk_scripted_advance(&h->clk, 1000000);
	id_times_note(h->store);
	give(h, 10);
	clk_scripted_advance(&h->clk, 1000000);
	id_times_note(h->store);
	assert_in_range(age(h, after + 10, &earlier), 0, 2);
}

/* Three years of a mark a second would be slow: the marks come less often, which makes them no better. */
static void ages_over_years(void **state)
{
	struct harness *h = *state;
	enum { STEPS = 40000 };
	static uint64_t ids[STEPS], given_ms[STEPS];
	bool earlier;

	harness_open(h);
	id_times_begin(h->store);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t seconds = i < STEPS / 2 ? DAY / 40 : 10;

		ids[i] = give(h, 1 + i % 1000);
		given_ms[i] = now_ms(h);
		clk_scripted_advance(&h->clk, seconds * 1000000);
		id_times_note(h->store);
	}
	for (unsigned i = 0; i < STEPS; i++) {
		double truth = (double)(now_ms(h) - given_ms[i]) / 1000, told = age(h, ids[i], &earlier);

		assert_false(earlier);
		assert_true(fabs(told - truth) <= truth * 0.2 + 11);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ids_of_an_earlier_process, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(ids_of_this_moment, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(a_pause, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(ages_over_years, setup_in_memory, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
