/* SPDX-License-Identifier: BSD-3-Clause */
/* A bundle's block: heads that don't fit, damage, and its cells. */
#include "tests/unit/flashindex/frugal/world.h"

#define COLUMNS 3u
#define VALUES 5u
#define KILLS 2u

/* Partition 2 has fingerprints 10, 11 in column 0, 12 in column 2, and a kill about column 1; partition 4 has the rest. */
static struct block make(struct world *w)
{
	struct lists_writer lists, kills;
	struct bundle_parts parts;
	struct block block;
	uint64_t bytes = bundle_bytes(w->frugal->partitions, COLUMNS, VALUES, KILLS);

	assert_int_equal(block_take(w->frugal, bytes, &block), FS_OK);
	bundle_make(w->frugal->area + block.offset, w->frugal->partitions, COLUMNS, VALUES, KILLS, &parts);
	for (uint32_t c = 0; c < COLUMNS; c++)
		parts.column[c] = (struct column){ .sequence = 9 - c, .segment = c };
	lists_write_begin(&lists, COLUMNS, parts.bits, lists_words(w->frugal->partitions, COLUMNS, VALUES),
			  parts.samples);
	lists_write_begin(&kills, 1, parts.kill_bits, lists_words(w->frugal->partitions, 1, KILLS), parts.kill_samples);
	for (uint32_t p = 0; p < w->frugal->partitions; p++) {
		for (uint32_t c = 0; c < COLUMNS; c++)
			lists_write(&lists, p == 2 ? (c == 0 ? 2 : c == 2) : p == 4 && c == 1 ? 2 : 0);
		lists_write(&kills, p == 2 || p == 4);
	}
	lists_write_end(&lists);
	lists_write_end(&kills);
	for (uint16_t v = 0; v < VALUES; v++)
		parts.values[v] = (uint16_t)(10 + v);
	for (uint16_t k = 0; k < KILLS; k++) {
		parts.kills[k] = 100u + k;
		parts.kill_columns[k] = (uint16_t)(1 + k);
	}
	return block;
}

static void heads_that_don_t_fit_are_refused(void **state)
{
	struct world w = { .config = { 0 } };
	struct bundle_head *head;
	struct block block;

	(void)state;
	world_open(&w);
	block = make(&w);
	head = (struct bundle_head *)(void *)(w.frugal->area + block.offset);
	const struct bundle_head right = *head;
	const struct bundle_head wrong[] = {
		{ right.partitions + 1, right.columns, right.values, right.kills },
		{ right.partitions, COLUMNS_MOST + 1, right.values, right.kills },
		{ right.partitions, right.columns, block.bytes, right.kills },
		{ right.partitions, right.columns, UINT64_MAX, right.kills },
		{ right.partitions, right.columns, right.values, UINT32_MAX },
		{ right.partitions, right.columns, right.values, UINT64_MAX },
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		*head = wrong[i];
		assert_null(bundle_of(w.frugal, &block));
	}
	world_close(&w);
}

static void damaged_cells_lie_within_the_bundle(void **state)
{
	struct world w = { .config = { 0 } };
	struct block block;
	struct bundle *bundle;
	uint8_t *bytes;

	(void)state;
	world_open(&w);
	block = make(&w);
	bytes = w.frugal->area + block.offset;
	bundle = bundle_of(w.frugal, &block);
	assert_non_null(bundle);
	for (unsigned round = 0; round < 3000; round++) {
		uint64_t from = sizeof(struct bundle_head);

		bytes[from + rng_below(&w.rng, 400)] = (uint8_t)rng_next(&w.rng);
		for (uint32_t p = 0; p < w.frugal->partitions; p++) {
			struct cell cell = bundle_cell(bundle, p);
			uint64_t at = cell.range.first;
			uint32_t column;

			assert_true(cell.range.end <= VALUES && cell.kill_count <= KILLS);
			while (cell_find(&cell, 12, &at, &column))
				assert_true(column < COLUMNS);
			(void)cell_killed_from(&cell, 100);
		}
	}
	mem_free(bundle);
	world_close(&w);
}

static void cells_are_those_of_their_partition(void **state)
{
	struct world w = { .config = { 0 } };
	struct block block;
	struct bundle *bundle;
	struct cell cell;
	uint32_t column;
	uint64_t at;

	(void)state;
	world_open(&w);
	block = make(&w);
	bundle = bundle_of(w.frugal, &block);
	assert_non_null(bundle);
	assert_int_equal(bundle->columns, COLUMNS);
	cell = bundle_cell(bundle, 2);
	at = cell.range.first;
	assert_true(cell_find(&cell, 11, &at, &column));
	assert_int_equal(column, 0);
	at = cell.range.first;
	assert_true(cell_find(&cell, 12, &at, &column));
	assert_int_equal(column, 2);
	assert_false(cell_find(&cell, 13, &at, &column));
	assert_int_equal(cell_killed_from(&cell, 100), 1);
	assert_int_equal(cell_killed_from(&cell, 101), NEVER_KILLED);
	cell = bundle_cell(bundle, 4);
	at = cell.range.first;
	assert_true(cell_find(&cell, 13, &at, &column));
	assert_int_equal(column, 1);
	assert_int_equal(cell_killed_from(&cell, 101), 2);
	cell = bundle_cell(bundle, 6);
	assert_int_equal(cell.range.first, cell.range.end);
	assert_int_equal(cell.kill_count, 0);
	mem_free(bundle);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_that_don_t_fit_are_refused),
		cmocka_unit_test(damaged_cells_lie_within_the_bundle),
		cmocka_unit_test(cells_are_those_of_their_partition),
	};

	return cmocka_run_group_tests_name("bundle", tests, NULL, NULL);
}
