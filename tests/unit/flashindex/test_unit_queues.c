/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues of filter units, by scripted gets: who gives up a unit for whom, and that the budget holds. */
#include "tests/unit/flashindex/support.h"

#include <math.h>

#include "flashindex/unit_queues.h"

#define SEGMENTS 40u
#define LIFE 100u
#define UNIT 1000u

static struct unit_queues *queues_of(unsigned segments, unsigned stored, unsigned resident)
{
	const struct unit_entry entry = {
		.stored = stored, .resident = resident, .bytes = UNIT, .share = 2 * UNIT, .pass = 0.4
	};
	struct unit_queues *queues;

	assert_int_equal(unit_queues_create(&queues, SEGMENTS, LIFE), FS_OK);
	for (uint32_t s = 0; s < segments; s++)
		unit_queues_add(queues, s, &entry, 0);
	return queues;
}

static struct unit_queues_figures figures_of(const struct unit_queues *queues)
{
	struct unit_queues_figures figures;

	unit_queues_get_figures(queues, &figures);
	return figures;
}

/* Asks, and loads what is to be loaded. True: a unit was loaded. */
static bool ask(struct unit_queues *queues, uint32_t segment, uint32_t times, uint64_t gets,
		struct unit_victims *victims)
{
	bool loads;

	unit_queues_note(queues, segment, times, 0, gets);
	loads = unit_queues_want(queues, segment, gets, victims);
	assert_true(loads || victims->count == 0);
	if (loads)
		unit_queues_loaded(queues, segment, UNIT_LOADED);
	assert_true(figures_of(queues).bytes <= figures_of(queues).budget);
	return loads;
}

static void nobody_gives_up_a_unit_before_it_expires(void **state)
{
	struct unit_queues *queues = queues_of(3, 4, 2);
	struct unit_victims victims;

	(void)state;
	assert_false(ask(queues, 0, 50, LIFE - 1, &victims)); /* too early for the others */
	assert_false(ask(queues, 0, 50, LIFE, &victims));
	assert_true(ask(queues, 0, 50, LIFE + 1, &victims));
	assert_int_equal(victims.count, 1);
	assert_int_equal(victims.segment[0], 1); /* the least recently asked one */
	assert_int_equal(figures_of(queues).units, 6);
	unit_queues_destroy(queues);
}

static void the_longest_filters_give_up_first(void **state)
{
	const struct unit_entry more = { .stored = 4, .resident = 3, .bytes = UNIT, .share = 3 * UNIT, .pass = 0.4 };
	struct unit_queues *queues = queues_of(3, 4, 2);
	struct unit_victims victims;

	(void)state;
	unit_queues_add(queues, 9, &more, 0);
	assert_true(ask(queues, 0, 50, LIFE + 1, &victims));
	assert_int_equal(victims.segment[0], 9);
	assert_true(ask(queues, 0, 500, LIFE + 1, &victims)); /* now 9 has two, as the others, and came last */
	assert_int_equal(victims.segment[0], 1);
	assert_false(ask(queues, 0, 500, LIFE + 1, &victims)); /* it has all that are stored */
	unit_queues_destroy(queues);
}

static void a_unit_moves_only_where_it_spares_more(void **state)
{
	struct unit_queues *queues = queues_of(2, 4, 2);
	struct unit_victims victims;
	double before;

	(void)state;
	assert_false(ask(queues, 1, 100, 10, &victims)); /* segment 1 was asked often, then no more */
	before = figures_of(queues).reads_in_vain;
	assert_false(ask(queues, 0, 30, 10 + LIFE + 1, &victims)); /* 38 * 0.4^2 * 0.6 < 108 * 0.4 * 0.6 */
	assert_true(fabs(figures_of(queues).reads_in_vain - before - 30 * 0.16) < 1e-9);
	assert_true(ask(queues, 0, 240, 10 + LIFE + 2, &victims)); /* 278 * 0.4^2 > 108 * 0.4 */
	assert_int_equal(victims.segment[0], 1);
	unit_queues_destroy(queues);
}

static void what_was_asked_long_ago_counts_less(void **state)
{
	struct unit_queues *queues = queues_of(2, 4, 2);
	struct unit_victims victims;

	(void)state;
	assert_false(ask(queues, 1, 100, 10, &victims));
	assert_true(ask(queues, 0, 30, 10 + 256 * 6 * LIFE, &victims)); /* by now 100 is worth 1.6 */
	assert_int_equal(victims.segment[0], 1);
	unit_queues_destroy(queues);
}

/* Units of different sizes: several small ones make room for a large one, or nothing changes. */
static void too_little_room_changes_nothing(void **state)
{
	const struct unit_entry large = { .stored = 1, .resident = 0, .bytes = 2 * UNIT, .share = 0, .pass = 0.4 };
	struct unit_queues *queues = queues_of(2, 4, 1);
	struct unit_victims victims;

	(void)state;
	/* The budget has 4000 bytes, 2000 are in use. */
	assert_true(ask(queues, 0, 1, 1, &victims));
	assert_true(ask(queues, 1, 1, 1, &victims));
	assert_int_equal(victims.count, 0);
	assert_int_equal(figures_of(queues).bytes, 4 * UNIT);
	unit_queues_add(queues, 5, &large, 1);
	assert_false(ask(queues, 5, 1000, LIFE / 2, &victims));
	assert_int_equal(figures_of(queues).units, 4);
	assert_true(ask(queues, 5, 1000, 3 * LIFE, &victims));
	assert_int_equal(victims.count, 2);
	assert_int_equal(figures_of(queues).bytes, 4 * UNIT);
	assert_false(ask(queues, 5, 100000, 6 * LIFE, &victims)); /* there is no other unit of it */
	assert_int_equal(figures_of(queues).units, 3);
	unit_queues_destroy(queues);
}

static void a_unit_that_cannot_be_had_is_given_up(void **state)
{
	struct unit_queues *queues = queues_of(2, 4, 1);
	struct unit_victims victims;

	(void)state;
	unit_queues_note(queues, 0, 1, 0, 1);
	assert_true(unit_queues_want(queues, 0, 1, &victims));
	assert_int_equal(figures_of(queues).bytes, 3 * UNIT); /* its bytes are spoken for */
	unit_queues_loaded(queues, 0, UNIT_DAMAGED);
	assert_int_equal(figures_of(queues).bytes, 2 * UNIT);
	assert_false(ask(queues, 0, 100, 2, &victims));
	assert_true(ask(queues, 1, 1, 2, &victims));
	unit_queues_destroy(queues);
}

static void a_unit_that_comes_later_is_wanted_again(void **state)
{
	struct unit_queues *queues = queues_of(2, 4, 1);
	struct unit_victims victims;

	(void)state;
	unit_queues_note(queues, 0, 1, 0, 1);
	assert_true(unit_queues_want(queues, 0, 1, &victims));
	unit_queues_loaded(queues, 0, UNIT_LATER);
	assert_int_equal(figures_of(queues).bytes, 2 * UNIT);
	assert_int_equal(figures_of(queues).units, 2);
	assert_true(ask(queues, 0, 1, 2, &victims));
	assert_int_equal(figures_of(queues).units, 3);
	unit_queues_destroy(queues);
}

static void the_budget_shrinks_with_a_segment(void **state)
{
	struct unit_queues *queues = queues_of(2, 4, 1);
	struct unit_victims victims;
	uint32_t shed;

	(void)state;
	assert_true(ask(queues, 0, 9, 1, &victims));
	assert_true(ask(queues, 0, 9, 1, &victims)); /* three and one */
	assert_false(unit_queues_shed(queues, &shed, 1));
	unit_queues_remove(queues, 1);
	assert_false(unit_queues_has(queues, 1));
	assert_true(unit_queues_shed(queues, &shed, 1)); /* before it has expired, too */
	assert_int_equal(shed, 0);
	assert_false(unit_queues_shed(queues, &shed, 1));
	assert_int_equal(figures_of(queues).units, 2);
	unit_queues_destroy(queues);
}

/* The same by a model: units of each segment, counted beside; no victim is fresh, none has more units than it may. */
static void a_model_agrees(void **state)
{
	static unsigned units[SEGMENTS];
	static uint64_t asked_at[SEGMENTS];
	struct unit_queues *queues = queues_of(SEGMENTS, 6, 2);
	unsigned loads = 0, sheds = 0;
	struct rng rng;

	(void)state;
	rng_init(&rng, test_seed());
	for (unsigned s = 0; s < SEGMENTS; s++)
		units[s] = 2, asked_at[s] = 0;
	for (uint64_t gets = 1; gets < 200000; gets++) {
		/* Low numbers are asked far more often; whose these are moves along. */
		uint32_t s =
			(uint32_t)((rng_next(&rng) % SEGMENTS * (rng_next(&rng) % SEGMENTS) / SEGMENTS + gets / 40000) %
				   SEGMENTS);
		struct unit_victims victims;
		uint64_t sum = 0;

		if (rng_next(&rng) % 500 == 0) { /* it is written anew */
			unit_queues_remove(queues, s);
			unit_queues_add(
				queues, s,
				&(struct unit_entry){
					.stored = 6, .resident = 2, .bytes = UNIT, .share = 2 * UNIT, .pass = 0.4 },
				gets);
			units[s] = 2;
			asked_at[s] = gets;
			for (uint32_t shed; unit_queues_shed(queues, &shed, gets); sheds++)
				units[shed]--;
		}
		if (ask(queues, s, 10 + (uint32_t)(gets % 3), gets, &victims)) {
			loads++;
			units[s]++;
			for (unsigned i = 0; i < victims.count; i++) {
				assert_true(asked_at[victims.segment[i]] + LIFE < gets);
				assert_true(units[victims.segment[i]]-- > 0);
			}
		}
		asked_at[s] = gets;
		assert_true(units[s] <= 6);
		for (unsigned i = 0; i < SEGMENTS; i++)
			sum += units[i];
		assert_int_equal(sum, figures_of(queues).units);
		assert_int_equal(sum * UNIT, figures_of(queues).bytes);
		assert_int_equal(figures_of(queues).budget, SEGMENTS * 2 * UNIT);
	}
	assert_true(loads > 100 && sheds > 10);
	unit_queues_destroy(queues);
}

/* Segments that are asked alike keep their units, although no two of them are asked equally often. */
static void chance_moves_nothing(void **state)
{
	struct unit_queues *queues = queues_of(SEGMENTS, 4, 2);
	struct unit_victims victims;
	unsigned loads = 0;
	struct rng rng;

	(void)state;
	rng_init(&rng, test_seed());
	for (uint64_t gets = 1; gets < 4000; gets++)
		loads += rng_next(&rng) % 10 == 0 &&
			 ask(queues, (uint32_t)(rng_next(&rng) % SEGMENTS), 1, gets, &victims);
	assert_int_equal(loads, 0);
	unit_queues_destroy(queues);
}

/* A look that comes late knows when a segment was asked: it may have expired meanwhile. */
static void what_was_asked_long_before_the_look_has_expired(void **state)
{
	struct unit_queues *queues = queues_of(2, 4, 2);
	struct unit_victims victims;

	(void)state;
	unit_queues_note(queues, 1, 1, 3 * LIFE, 4 * LIFE);
	unit_queues_note(queues, 0, 100, LIFE, 4 * LIFE); /* just not yet */
	assert_true(unit_queues_want(queues, 0, 4 * LIFE, &victims));
	assert_int_equal(victims.count, 1);
	assert_int_equal(victims.segment[0], 1);
	unit_queues_loaded(queues, 0, UNIT_LOADED);
	assert_false(unit_queues_want(queues, 1, 4 * LIFE, &victims));
	unit_queues_destroy(queues);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_gives_up_a_unit_before_it_expires),
		cmocka_unit_test(the_longest_filters_give_up_first),
		cmocka_unit_test(a_unit_moves_only_where_it_spares_more),
		cmocka_unit_test(chance_moves_nothing),
		cmocka_unit_test(what_was_asked_long_before_the_look_has_expired),
		cmocka_unit_test(what_was_asked_long_ago_counts_less),
		cmocka_unit_test(too_little_room_changes_nothing),
		cmocka_unit_test(a_unit_that_cannot_be_had_is_given_up),
		cmocka_unit_test(a_unit_that_comes_later_is_wanted_again),
		cmocka_unit_test(the_budget_shrinks_with_a_segment),
		cmocka_unit_test(a_model_agrees),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
