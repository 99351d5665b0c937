/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment of bins from its plan to its last commit: the epoch of kills, and the bundle of its one column. */
#include <string.h>

#include "flashindex/frugal/frugal_internal.h"

void frugal_plan_begin(struct frugal *frugal, uint64_t sequence)
{
	must(frugal->reserved.bytes == 0 && !frugal->taken);
	if (sequence > atomic_load(&frugal->kept->kill_up_to))
		atomic_store(&frugal->kept->kill_up_to, sequence);
	kills_begin_epoch(frugal);
}

int frugal_reserve(struct frugal *frugal, uint64_t records)
{
	int result;

	must(frugal->reserved.bytes == 0);
	if (records > UINT32_MAX || frugal->bundles >= BUNDLES_MOST - 1)
		return FS_ENOMEM;
	result = kills_take(frugal);
	if (result == FS_OK)
		result = block_take(frugal, bundle_bytes(frugal->partitions, 1, records, frugal->taken_count),
				    &frugal->reserved);
	return result;
}

/* ---- the bundle ------------------------------------------------------------------------------ */

/* Where each partition's fingerprints begin; behind them is the end. */
static uint32_t *count_partitions(const struct frugal *frugal, const uint64_t *x, uint64_t n)
{
	uint32_t *first = mem_zalloc(((uint64_t)frugal->partitions + 1) * sizeof(*first)), sum = 0;

	if (!first)
		return NULL;
	for (uint64_t i = 0; i < n; i++) {
		first[frugal_partition_of(frugal, x[i])]++;
		if (i % 4096 == 0)
			frugal_step(frugal);
	}
	for (uint32_t p = 0; p <= frugal->partitions; p++) {
		uint32_t count = first[p];

		first[p] = sum;
		sum += count;
	}
	return first;
}

static void fill_fingerprints(const struct frugal *frugal, const struct bundle_parts *parts, const uint64_t *x,
			      uint64_t n, uint32_t *first)
{
	struct lists_writer lists;

	lists_write_begin(&lists, 1, parts->bits, lists_words(frugal->partitions, 1, n), parts->samples);
	for (uint32_t p = 0; p < frugal->partitions; p++)
		lists_write(&lists, first[p + 1] - first[p]);
	lists_write_end(&lists);
	for (uint64_t i = 0; i < n; i++) {
		parts->values[first[frugal_partition_of(frugal, x[i])]++] = fingerprint_of(x[i]);
		if (i % 4096 == 0)
			frugal_step(frugal);
	}
}

/* The kills that were taken are about all columns from this one of the bundle on. */
static void fill_kills(const struct frugal *frugal, const struct bundle_parts *parts, uint16_t column)
{
	uint64_t kills = frugal->taken_count, at = 0;
	struct lists_writer lists;

	if (kills == 0)
		return;
	lists_write_begin(&lists, 1, parts->kill_bits, lists_words(frugal->partitions, 1, kills), parts->kill_samples);
	for (uint32_t p = 0; p < frugal->partitions; p++) {
		uint64_t from = at;

		for (; at < kills && frugal_partition_of(frugal, frugal->taken[at]) == p; at++) {
			parts->kills[at] = kill_of(entry_x(frugal->taken[at]));
			parts->kill_columns[at] = column;
		}
		lists_write(&lists, (uint32_t)(at - from));
	}
	lists_write_end(&lists);
	must(at == kills);
}

int frugal_open(struct frugal *frugal, uint32_t segment, uint64_t sequence, const uint64_t *x, uint64_t n,
		uint64_t bytes)
{
	const struct column column = {
		.sequence = sequence, .segment = segment, .records = (uint32_t)n, .bytes = bytes
	};
	struct bundle_parts parts;
	struct bundle *bundle;
	uint32_t *first;

	must(segment < frugal->config.segments && sequence != 0 && frugal->reserved.bytes > 0);
	must(bundle_bytes(frugal->partitions, 1, n, frugal->taken_count) <= frugal->reserved.bytes);
	first = count_partitions(frugal, x, n);
	if (!first)
		return FS_ENOMEM;
	bundle_make(frugal->area + frugal->reserved.offset, frugal->partitions, 1, n, frugal->taken_count, &parts);
	parts.column[0] = column;
	fill_fingerprints(frugal, &parts, x, n, first);
	fill_kills(frugal, &parts, 1);
	mem_free(first);
	bundle = bundle_of(frugal, &frugal->reserved);
	if (!bundle)
		return FS_ENOMEM;
	frugal->reserved.bytes = 0;
	frugal->took = true;
	segment_open(frugal, &column);
	bundle_publish(frugal, bundle);
	return FS_OK;
}

void frugal_plan_end(struct frugal *frugal)
{
	block_give(frugal, &frugal->reserved);
	kills_forget_taken(frugal);
	bundles_tidy(frugal);
}

void frugal_tidy(struct frugal *frugal)
{
	must(frugal->reserved.bytes == 0 && !frugal->taken);
	bundles_tidy(frugal);
}

/* ---- kills without a segment ------------------------------------------------------------------- */

static int bundle_of_kills(struct frugal *frugal)
{
	struct bundle_parts parts;
	struct bundle *bundle;
	int result = block_take(frugal, bundle_bytes(frugal->partitions, 0, 0, frugal->taken_count), &frugal->reserved);

	if (result != FS_OK)
		return result;
	bundle_make(frugal->area + frugal->reserved.offset, frugal->partitions, 0, 0, frugal->taken_count, &parts);
	fill_kills(frugal, &parts, 0);
	bundle = bundle_of(frugal, &frugal->reserved);
	if (!bundle)
		return FS_ENOMEM;
	frugal->reserved.bytes = 0;
	frugal->took = true;
	bundle_publish(frugal, bundle);
	return FS_OK;
}

int frugal_take_kills(struct frugal *frugal)
{
	int result = frugal->bundles < BUNDLES_MOST - 1 ? FS_OK : FS_ENOMEM;

	must(frugal->reserved.bytes == 0 && !frugal->taken);
	kills_begin_epoch(frugal);
	if (result == FS_OK)
		result = kills_take(frugal);
	if (result == FS_OK && frugal->taken_count > 0)
		result = bundle_of_kills(frugal);
	frugal_plan_end(frugal);
	return result;
}
