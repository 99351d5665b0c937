/* SPDX-License-Identifier: BSD-3-Clause */
/* The places of a chain: rows and places that don't fit, and a chain that is dropped. */
#include "tests/unit/flashindex/frugal/world.h"

#include "flashindex/frugal/chain_internal.h"

#define KEYS 400u

static void make_chain(struct world *w, uint32_t partitions_each)
{
	world_open(w);
	for (uint32_t k = 0; k < KEYS; k++)
		world_set(w, k);
	assert_true(world_write(w, 1, NULL));
	world_merge(w, partitions_each, 0, true);
	assert_non_null(w->frugal->chain);
}

static void rows_that_don_t_fit_are_refused(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct chain chain;

	(void)state;
	make_chain(&w, 3);
	const struct chain_row right = *w.frugal->chain->row;
	const uint64_t end = chain_layout(w.frugal->partitions, right.columns, right.segments).end;
	struct chain_row fits = right;
	const struct chain_row wrong[] = {
		{ .block = right.block, .columns = COLUMNS_MOST + 1, .segments = right.segments },
		{ .block = right.block, .columns = right.columns, .segments = FRUGAL_CHAIN_SEGMENTS + 1 },
		{ .block = right.block, .columns = COLUMNS_MOST, .segments = right.segments },
		{ .block = { right.block.offset, end - 1 }, .columns = right.columns, .segments = right.segments },
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct chain_row row = wrong[i];

		assert_false(chain_fill(w.frugal, &row, &chain));
	}
	fits.block.bytes = end;
	assert_true(chain_fill(w.frugal, &fits, &chain));
	assert_true(chain_is_sound(w.frugal, &chain));
	world_close(&w);
}

static void places_outside_of_segments_are_told(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct chain *chain;
	struct chain_segment *segment;
	uint32_t *places;

	(void)state;
	make_chain(&w, 3);
	chain = w.frugal->chain;
	assert_true(chain->segments > 1);
	segment = (struct chain_segment *)(uintptr_t)chain->segment;
	places = (uint32_t *)(uintptr_t)chain->places;
	const struct chain_segment right = segment[1];
	const uint32_t place = places[3];

	segment[1].segment = WORLD_SEGMENTS;
	assert_false(chain_is_sound(w.frugal, chain));
	segment[1] = right;
	segment[1].data_offset = WORLD_SEGMENT_BYTES;
	assert_false(chain_is_sound(w.frugal, chain));
	segment[1].data_offset = UINT64_MAX;
	assert_false(chain_is_sound(w.frugal, chain));
	segment[1] = right;
	segment[1].from = UINT64_MAX;
	assert_false(chain_is_sound(w.frugal, chain));
	segment[1] = right;
	segment[0].from = 1;
	assert_false(chain_is_sound(w.frugal, chain));
	segment[0].from = 0;
	places[3] = UINT32_MAX;
	assert_false(chain_is_sound(w.frugal, chain));
	places[3] = place;
	assert_true(chain_is_sound(w.frugal, chain));
	world_close(&w);
}

static void each_partition_has_its_place(void **state)
{
	struct world w = { .config = { .share = 0.25, .partitions = 20 } };
	struct frugal_found place;
	unsigned there = 0;

	(void)state;
	make_chain(&w, 6);
	for (uint32_t p = 0; p < 20; p++) {
		uint64_t length;

		if (!chain_place(w.frugal, w.frugal->chain, p, &place))
			continue;
		assert_non_null(world_chain_value(&w, &place, p, &length));
		assert_true(frugal_has_chain_in(w.frugal, place.segment, place.sequence));
		assert_false(frugal_has_chain_in(w.frugal, place.segment, place.sequence + 1));
		there++;
	}
	assert_true(there > 15);
	world_close(&w);
}

static void without_the_chain_younger_columns_are_left(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	uint64_t memory;

	(void)state;
	make_chain(&w, 3);
	for (uint32_t k = KEYS; k < KEYS + 50; k++)
		world_set(&w, k);
	assert_true(world_write(&w, 1, NULL));
	world_check_all(&w);
	memory = frugal_memory(w.frugal);
	w.lossy = true;
	frugal_drop_chain(w.frugal);
	frugal_drop_chain(w.frugal);
	assert_true(frugal_memory(w.frugal) < memory);
	for (uint32_t s = 0; s < WORLD_SEGMENTS; s++)
		assert_false(frugal_has_chain_in(w.frugal, s, w.segment[s].sequence));
	w.found = 0;
	world_check_all(&w);
	assert_true(w.found > 40 && w.found < 100);
	world_merge(&w, 3, 0, true);
	world_check_all(&w);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_don_t_fit_are_refused),
		cmocka_unit_test(places_outside_of_segments_are_told),
		cmocka_unit_test(each_partition_has_its_place),
		cmocka_unit_test(without_the_chain_younger_columns_are_left),
	};

	return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
