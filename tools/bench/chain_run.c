/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/chain_run.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/rng.h"
#include "flashindex/frugal/cell.h"

#define RECORDS 512u /* in which the searches go round */
#define COLUMNS_LIMIT 16383u
#define KEYS_LIMIT 4000000.0 /* of a record */
#define PROBES_MOST 24u
#define WORD_BITS 32u
#define SEED 0x636861696eull

/* One record, in either form. */
struct record {
	uint64_t *keys; /* in order of their columns, the newest first */
	uint32_t *column; /* of each key */
	uint8_t *bytes; /* a chain record, or rows */
	uint64_t count, length;
};

struct run {
	struct chain_shape shape;
	struct record record[RECORDS];
	struct rng rng;
	unsigned probes; /* of rows */
	uint64_t filter_bits, row_words; /* bits of a column's filter; 32-bit words of a row */
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rows with as many bytes as lists for the expected keys. */
static void plan_rows(struct run *run)
{
	double each = run->shape.expected_each, keys = each * run->shape.columns, bits;

	bits = 8 * (double)chain_record_bytes(run->shape.columns, (uint64_t)ceil(keys), 0);
	run->row_words = (run->shape.columns + WORD_BITS - 1) / WORD_BITS;
	run->filter_bits = (uint64_t)(bits / (double)(WORD_BITS * run->row_words));
	if (run->filter_bits < 1)
		run->filter_bits = 1;
	run->probes = (unsigned)lround((double)run->filter_bits / each * M_LN2);
	run->probes = run->probes < 1 ? 1 : run->probes > PROBES_MOST ? PROBES_MOST : run->probes;
}

/* Returns the row of a key's probe. */
static uint64_t row_of(const struct run *run, uint64_t *mixed)
{
	*mixed = mix64(*mixed + 0x9e3779b97f4a7c15ull);
	return reduce64(*mixed, run->filter_bits);
}

static void fill_rows(const struct run *run, struct record *record)
{
	uint32_t *words = (uint32_t *)(void *)record->bytes;

	for (uint64_t i = 0; i < record->count; i++) {
		uint64_t mixed = record->keys[i];

		for (unsigned p = 0; p < run->probes; p++)
			words[row_of(run, &mixed) * run->row_words + record->column[i] / WORD_BITS] |=
				1u << record->column[i] % WORD_BITS;
	}
}

/* Returns the columns before `until` that match, and whether that one does. */
static uint64_t search_rows(const struct run *run, const struct record *record, uint64_t key, uint32_t until,
			    bool *found)
{
	const uint32_t *words = (const uint32_t *)(const void *)record->bytes, *row[PROBES_MOST] = { NULL };
	uint64_t mixed = key, matches = 0;

	for (unsigned p = 0; p < run->probes; p++)
		row[p] = words + row_of(run, &mixed) * run->row_words;
	for (uint64_t w = 0; w < run->row_words; w++) {
		uint32_t all = row[0][w];

		for (unsigned p = 1; p < run->probes && all; p++)
			all &= row[p][w];
		for (; all; all &= all - 1) {
			uint32_t column = (uint32_t)(WORD_BITS * w) + (uint32_t)__builtin_ctz(all);

			if (column == until) {
				*found = true;
				return matches;
			}
			matches++;
		}
	}
	return matches;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void fill_lists(const struct run *run, struct record *record)
{
	uint32_t columns = run->shape.columns;
	struct lists_writer writer;
	struct chain_parts parts;
	uint64_t at = 0;

	chain_record_make(record->bytes, columns, record->count, 0, &parts);
	lists_write_begin(&writer, columns, parts.bits, lists_words(1, columns, record->count), NULL);
	for (uint32_t c = 0; c < columns; c++) {
		uint64_t from = at;

		for (; at < record->count && record->column[at] == c; at++)
			parts.values[at] = (uint16_t)record->keys[at];
		lists_write(&writer, (uint32_t)(at - from));
	}
}

static uint64_t search_lists(const struct run *run, const struct record *record, uint64_t key, uint32_t until,
			     bool *found)
{
	struct chain_record chain;
	uint64_t matches = 0, at;
	uint32_t column;

	if (!chain_record_read(record->bytes, record->length, run->shape.columns, &chain))
		return 0;
	at = chain.cell.range.first;
	while (cell_find(&chain.cell, (uint16_t)key, &at, &column)) {
		if (column == until) {
			*found = true;
			return matches;
		}
		matches++;
	}
	return matches;
}

/* ---- both ------------------------------------------------------------------------------------ */

static uint64_t record_bytes(const struct run *run, uint64_t count)
{
	return run->shape.rows ? run->filter_bits * run->row_words * sizeof(uint32_t)
			       : chain_record_bytes(run->shape.columns, count, 0);
}

/* Counts of each column: the keys fall into them at random. */
static int make_record(struct run *run, struct record *record)
{
	uint32_t columns = run->shape.columns, *counts = mem_zalloc(columns * sizeof(*counts));
	uint64_t at = 0;

	record->count = (uint64_t)llround(run->shape.keys_each * columns);
	record->count = record->count ? record->count : 1;
	record->length = record_bytes(run, record->count);
	record->keys = mem_alloc(record->count * sizeof(*record->keys));
	record->column = mem_alloc(record->count * sizeof(*record->column));
	record->bytes = mem_zalloc(record->length);
	if (!counts || !record->keys || !record->column || !record->bytes) {
		mem_free(counts);
		return FS_ENOMEM;
	}
	for (uint64_t i = 0; i < record->count; i++)
		counts[rng_below(&run->rng, columns)]++;
	for (uint32_t c = 0; c < columns; c++)
		for (uint32_t n = 0; n < counts[c]; n++, at++) {
			record->keys[at] = rng_next(&run->rng);
			record->column[at] = c;
		}
	mem_free(counts);
	if (run->shape.rows)
		fill_rows(run, record);
	else
		fill_lists(run, record);
	return FS_OK;
}

static uint64_t search(const struct run *run, const struct record *record, uint64_t key, uint32_t until, bool *found)
{
	return run->shape.rows ? search_rows(run, record, key, until, found)
			       : search_lists(run, record, key, until, found);
}

/* Searches, each in another record than the one before. Returns the matches in vain; *ns: of a search. */
static uint64_t search_all(struct run *run, uint64_t searches, bool hits, double *ns, bool *missed)
{
	uint64_t began, matches = 0;

	began = clk_now_ns(clk_boot());
	for (uint64_t i = 0; i < searches; i++) {
		const struct record *record = &run->record[i % RECORDS];
		uint64_t n = rng_below(&run->rng, record->count);
		bool found = false;

		matches += search(run, record, hits ? record->keys[n] : rng_next(&run->rng),
				  hits ? record->column[n] : UINT32_MAX, &found);
		*missed |= hits && !found;
	}
	*ns = (double)(clk_now_ns(clk_boot()) - began) / (double)searches;
	return matches;
}

static void measure(struct run *run, uint64_t searches, struct chain_cost *out, bool *missed)
{
	uint64_t bytes = 0, keys = 0;

	for (unsigned r = 0; r < RECORDS; r++) {
		bytes += run->record[r].length;
		keys += run->record[r].count;
	}
	out->bits_per_key = 8 * (double)bytes / (double)keys;
	out->in_vain_per_hit = (double)search_all(run, searches, true, &out->hit_ns, missed) / (double)searches;
	out->in_vain_per_miss = (double)search_all(run, searches, false, &out->miss_ns, missed) / (double)searches;
}

int chain_run(const struct chain_shape *shape, uint64_t searches, struct chain_cost *out)
{
	struct run *run;
	bool missed = false;
	int rc = FS_OK;

	if (shape->columns < 1 || shape->columns > COLUMNS_LIMIT || searches == 0 || !(shape->keys_each > 0) ||
	    !(shape->expected_each > 0) || shape->keys_each * shape->columns > KEYS_LIMIT ||
	    shape->expected_each * shape->columns > KEYS_LIMIT)
		return FS_EINVAL;
	run = mem_zalloc(sizeof(*run));
	if (!run)
		return FS_ENOMEM;
	run->shape = *shape;
	rng_init(&run->rng, SEED);
	if (shape->rows)
		plan_rows(run);
	for (unsigned r = 0; r < RECORDS && rc == FS_OK; r++)
		rc = make_record(run, &run->record[r]);
	if (rc == FS_OK)
		measure(run, searches, out, &missed);
	for (unsigned r = 0; r < RECORDS; r++) {
		mem_free(run->record[r].keys);
		mem_free(run->record[r].column);
		mem_free(run->record[r].bytes);
	}
	mem_free(run);
	return rc == FS_OK && missed ? FS_ECORRUPT : rc;
}
