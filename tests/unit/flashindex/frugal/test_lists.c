/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists by partition and column: bits that are no lists, and lists of every shape, compared with plain counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "flashindex/frugal/lists.h"

#define ROUNDS 300u

struct made {
	struct lists lists;
	uint32_t *counts; /* by partition and column */
	uint64_t *bits, words;
	uint32_t *samples;
};

static void make(struct made *made, struct rng *rng, uint32_t partitions, uint32_t columns, uint32_t most)
{
	uint64_t number = (uint64_t)partitions * columns, values = 0;
	struct lists_writer writer;

	made->counts = mem_must_zalloc((number + 1) * sizeof(*made->counts));
	for (uint64_t i = 0; i < number; i++) {
		made->counts[i] = rng_below(rng, 3) ? (uint32_t)rng_below(rng, most + 1) : 0;
		values += made->counts[i];
	}
	made->words = lists_words(partitions, columns, values);
	made->bits = mem_must_zalloc((made->words + 1) * sizeof(*made->bits));
	made->samples = mem_must_zalloc(lists_samples(partitions, columns) * sizeof(*made->samples));
	made->lists = (struct lists){ .partitions = partitions,
				      .columns = columns,
				      .group = lists_group(columns),
				      .values = values,
				      .bits = made->bits,
				      .samples = made->samples };
	if (columns == 0)
		return;
	lists_write_begin(&writer, columns, made->bits, made->words, made->samples);
	for (uint64_t i = 0; i < number; i++)
		lists_write(&writer, made->counts[i]);
	lists_write_end(&writer);
}

static void fini(struct made *made)
{
	mem_free(made->counts);
	mem_free(made->bits);
	mem_free(made->samples);
}

/* Whatever the bits are: results are within the lists, and under ASan no byte beyond the arrays is read. */
static void any_bits_and_samples_give_results_within_the_lists(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct made made;
		struct lists_reader reader;
		uint64_t sum = 0;

		make(&made, &rng, 1 + (uint32_t)rng_below(&rng, 90), 1 + (uint32_t)rng_below(&rng, 40), 5);
		for (uint64_t w = 0; w < made.words; w++)
			if (rng_below(&rng, 2))
				made.bits[w] = round % 3 == 0 ? 0 : round % 3 == 1 ? ~0ull : rng_next(&rng);
		for (uint64_t i = 0; i < lists_samples(made.lists.partitions, made.lists.columns); i++)
			if (rng_below(&rng, 3) == 0)
				made.samples[i] = (uint32_t)rng_next(&rng);
		for (uint32_t p = 0; p < made.lists.partitions; p++) {
			struct lists_range range = lists_range(&made.lists, p);

			assert_true(range.first <= range.end && range.end <= made.lists.values);
			for (uint64_t v = range.first; v < range.end; v++)
				assert_true(lists_column(&made.lists, &range, v) <= made.lists.columns);
		}
		reader = (struct lists_reader){ .lists = &made.lists };
		for (uint64_t i = 0; i < (uint64_t)made.lists.partitions * made.lists.columns; i++)
			sum += lists_read(&reader);
		assert_true(sum <= made.lists.values);
		fini(&made);
	}
}

static void check_partition(const struct made *made, uint32_t partition, uint64_t *before)
{
	struct lists_range range = lists_range(&made->lists, partition);
	uint64_t at = range.first;

	assert_int_equal(range.first, *before);
	for (uint32_t c = 0; c < made->lists.columns; c++)
		for (uint32_t n = 0; n < made->counts[(uint64_t)partition * made->lists.columns + c]; n++, at++)
			assert_int_equal(lists_column(&made->lists, &range, at), c);
	assert_int_equal(range.end, at);
	*before = at;
}

static void each_value_is_found_in_its_partition_and_column(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 2);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct made made;
		struct lists_reader reader;
		uint64_t before = 0;

		make(&made, &rng, 1 + (uint32_t)rng_below(&rng, 130), (uint32_t)rng_below(&rng, round % 2 ? 70 : 4),
		     round % 5 == 0 ? 300 : 3);
		for (uint32_t p = 0; p < made.lists.partitions; p++)
			check_partition(&made, p, &before);
		assert_int_equal(before, made.lists.values);
		reader = (struct lists_reader){ .lists = &made.lists };
		for (uint64_t i = 0; i < (uint64_t)made.lists.partitions * made.lists.columns; i++)
			assert_int_equal(lists_read(&reader), made.counts[i]);
		fini(&made);
	}
}

static void lists_of_one_partition_need_no_samples(void **state)
{
	struct rng rng;
	struct made made;
	uint64_t before = 0;

	(void)state;
	rng_init(&rng, 3);
	make(&made, &rng, 1, 1000, 4);
	made.lists.samples = NULL;
	check_partition(&made, 0, &before);
	assert_int_equal(before, made.lists.values);
	fini(&made);
}

static void equal_values_are_found_in_order(void **state)
{
	uint16_t narrow[100];
	uint32_t wide[100];

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		narrow[i] = (uint16_t)(i % 7 * 9000);
		wide[i] = i % 7 * 600000000u;
	}
	for (unsigned from = 0; from < 40; from++)
		for (unsigned end = from; end <= 100; end++)
			for (unsigned value = 0; value < 8; value++) {
				unsigned first = from;

				while (first < end && first % 7 != value)
					first++;
				assert_int_equal(values16_find(narrow, from, end, (uint16_t)(value * 9000)), first);
				assert_int_equal(values32_find(wide, from, end, value * 600000000u), first);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_bits_and_samples_give_results_within_the_lists),
		cmocka_unit_test(each_value_is_found_in_its_partition_and_column),
		cmocka_unit_test(lists_of_one_partition_need_no_samples),
		cmocka_unit_test(equal_values_are_found_in_order),
	};

	return cmocka_run_group_tests_name("lists", tests, NULL, NULL);
}
