/* SPDX-License-Identifier: BSD-3-Clause */
/* A partition's record of the chain: bytes that are none, and records that were made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "flashindex/frugal/cell.h"

#define COLUMNS 5u
#define VALUES 7u
#define KILLS 3u

static const uint32_t COUNTS[COLUMNS] = { 2, 0, 3, 1, 1 };
static const uint16_t FINGERPRINTS[VALUES] = { 11, 12, 13, 11, 14, 11, 15 };
static const uint8_t COLUMN_OF[VALUES] = { 0, 0, 2, 2, 2, 3, 4 };
static const uint32_t KILL[KILLS] = { 0xabcd0001, 7, 0xabcd0001 };
static const uint16_t KILL_COLUMN[KILLS] = { 1, 2, 4 };

static void *make(uint64_t *length)
{
	struct lists_writer writer;
	struct chain_parts parts;
	void *bytes;

	*length = chain_record_bytes(COLUMNS, VALUES, KILLS);
	bytes = mem_aligned(8, *length);
	assert_non_null(bytes);
	memset(bytes, 0, *length);
	chain_record_make(bytes, COLUMNS, VALUES, KILLS, &parts);
	lists_write_begin(&writer, COLUMNS, parts.bits, lists_words(1, COLUMNS, VALUES), NULL);
	for (uint32_t c = 0; c < COLUMNS; c++)
		lists_write(&writer, COUNTS[c]);
	lists_write_end(&writer);
	memcpy(parts.values, FINGERPRINTS, sizeof(FINGERPRINTS));
	memcpy(parts.kills, KILL, sizeof(KILL));
	memcpy(parts.kill_columns, KILL_COLUMN, sizeof(KILL_COLUMN));
	return bytes;
}

static void bytes_that_are_no_record_are_refused(void **state)
{
	uint64_t length;
	uint32_t *words = make(&length);
	struct chain_record record;

	(void)state;
	assert_false(chain_record_read(words, length, COLUMNS + 1, &record));
	assert_false(chain_record_read(words, length - 1, COLUMNS, &record));
	for (uint64_t short_of = 0; short_of < CHAIN_HEAD; short_of++)
		assert_false(chain_record_read(words, short_of, COLUMNS, &record));
	words[0] = 2;
	assert_false(chain_record_read(words, length, COLUMNS, &record));
	words[0] = CHAIN_FORMAT;
	words[2] = UINT32_MAX;
	assert_false(chain_record_read(words, length, COLUMNS, &record));
	words[2] = VALUES;
	words[3] = UINT32_MAX;
	assert_false(chain_record_read(words, length, COLUMNS, &record));
	words[3] = KILLS;
	assert_true(chain_record_read(words, length, COLUMNS, &record));
	mem_free(words);
}

/* Damage that no check has found: what is told lies within the record. */
static void damaged_records_are_read_within_their_bytes(void **state)
{
	uint64_t length;
	uint8_t *bytes = make(&length), *copy = mem_aligned(8, length);
	struct rng rng;

	(void)state;
	assert_non_null(copy);
	rng_init(&rng, 5);
	for (unsigned round = 0; round < 5000; round++) {
		struct chain_record record;
		uint32_t column;
		uint64_t at;

		memcpy(copy, bytes, length);
		for (unsigned n = 0; n < 1 + round % 4; n++)
			copy[rng_below(&rng, length)] = (uint8_t)rng_next(&rng);
		if (!chain_record_read(copy, length, COLUMNS, &record))
			continue;
		at = record.cell.range.first;
		while (cell_find(&record.cell, 11, &at, &column))
			assert_true(column < COLUMNS && at <= record.lists.values);
		(void)cell_killed_from(&record.cell, 7);
	}
	mem_free(copy);
	mem_free(bytes);
}

static void columns_and_kills_are_found(void **state)
{
	uint64_t length, at;
	void *bytes = make(&length);
	struct chain_record record;
	uint32_t column, n = 0;

	(void)state;
	assert_true(chain_record_read(bytes, length, COLUMNS, &record));
	at = record.cell.range.first;
	while (cell_find(&record.cell, 11, &at, &column)) {
		const uint32_t expected[] = { 0, 2, 3 };

		assert_true(n < 3);
		assert_int_equal(column, expected[n++]);
	}
	assert_int_equal(n, 3);
	for (uint32_t v = 0; v < VALUES; v++) {
		at = record.cell.range.first + v;
		assert_true(cell_find(&record.cell, FINGERPRINTS[v], &at, &column));
		assert_int_equal(column, COLUMN_OF[v]);
	}
	at = record.cell.range.first;
	assert_false(cell_find(&record.cell, 99, &at, &column));
	assert_int_equal(cell_killed_from(&record.cell, 0xabcd0001), 1);
	assert_int_equal(cell_killed_from(&record.cell, 7), 2);
	assert_int_equal(cell_killed_from(&record.cell, 0xabcd0002), NEVER_KILLED);
	mem_free(bytes);
}

static void a_record_may_be_empty(void **state)
{
	_Alignas(8) uint8_t bytes[64] = { 0 };
	struct chain_record record;
	struct chain_parts parts;
	uint32_t column;
	uint64_t at;

	(void)state;
	chain_record_make(bytes, 0, 0, 0, &parts);
	assert_true(chain_record_read(bytes, CHAIN_HEAD, 0, &record));
	at = record.cell.range.first;
	assert_false(cell_find(&record.cell, 0, &at, &column));
	assert_int_equal(cell_killed_from(&record.cell, 0), NEVER_KILLED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_are_no_record_are_refused),
		cmocka_unit_test(damaged_records_are_read_within_their_bytes),
		cmocka_unit_test(columns_and_kills_are_found),
		cmocka_unit_test(a_record_may_be_empty),
	};

	return cmocka_run_group_tests_name("chain_record", tests, NULL, NULL);
}
