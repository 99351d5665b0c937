/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bundle's block. All parts begin at multiples of 8:
 *
 *   head | columns | bits | samples | fingerprints | kill bits | kill samples | kills | kill columns
 *
 * Where the parts lie follows from the head's four sizes.
 */
#include <string.h>

#include "flashindex/frugal/frugal_internal.h"

static uint64_t align8(uint64_t bytes)
{
	return (bytes + 7) & ~(uint64_t)7;
}

/* Offsets of the parts from the head on. */
struct places {
	uint64_t column, bits, samples, values, kill_bits, kill_samples, kills, kill_columns, end;
};

static struct places places_of(uint32_t partitions, uint32_t columns, uint64_t values, uint64_t kills)
{
	struct places places = { .column = align8(sizeof(struct bundle_head)) };

	places.bits = places.column + columns * sizeof(struct column);
	places.samples = places.bits + 8 * lists_words(partitions, columns, values);
	places.values = places.samples + align8(lists_samples(partitions, columns) * sizeof(uint32_t));
	places.kill_bits = places.values + align8(values * sizeof(uint16_t));
	places.kill_samples = places.kill_bits + (kills ? 8 * lists_words(partitions, 1, kills) : 0);
	places.kills = places.kill_samples + (kills ? align8(lists_samples(partitions, 1) * sizeof(uint32_t)) : 0);
	places.kill_columns = places.kills + align8(kills * sizeof(uint32_t));
	places.end = places.kill_columns + align8(kills * sizeof(uint16_t));
	return places;
}

uint64_t bundle_bytes(uint32_t partitions, uint32_t columns, uint64_t values, uint64_t kills)
{
	return places_of(partitions, columns, values, kills).end;
}

void bundle_make(void *at, uint32_t partitions, uint32_t columns, uint64_t values, uint64_t kills,
		 struct bundle_parts *out)
{
	const struct places places = places_of(partitions, columns, values, kills);
	uint8_t *to = at;

	must(columns <= COLUMNS_MOST && values <= UINT32_MAX && kills <= UINT32_MAX);
	*(struct bundle_head *)at =
		(struct bundle_head){ .partitions = partitions, .columns = columns, .values = values, .kills = kills };
	*out = (struct bundle_parts){ .column = (struct column *)(void *)(to + places.column),
				      .bits = (uint64_t *)(void *)(to + places.bits),
				      .samples = (uint32_t *)(void *)(to + places.samples),
				      .values = (uint16_t *)(void *)(to + places.values),
				      .kill_bits = (uint64_t *)(void *)(to + places.kill_bits),
				      .kill_samples = (uint32_t *)(void *)(to + places.kill_samples),
				      .kills = (uint32_t *)(void *)(to + places.kills),
				      .kill_columns = (uint16_t *)(void *)(to + places.kill_columns) };
}

struct bundle *bundle_of(const struct frugal *frugal, const struct block *block)
{
	const uint8_t *from = frugal->area + block->offset;
	struct bundle_head head;
	struct bundle *bundle;
	struct places places;

	memcpy(&head, from, sizeof(head));
	if (head.partitions != frugal->partitions || head.columns > COLUMNS_MOST || head.values > UINT32_MAX ||
	    head.kills > UINT32_MAX)
		return NULL;
	places = places_of(head.partitions, head.columns, head.values, head.kills);
	bundle = places.end <= block->bytes ? mem_alloc(sizeof(*bundle)) : NULL;
	if (!bundle)
		return NULL;
	*bundle = (struct bundle){
		.block = *block,
		.columns = head.columns,
		.column = (const struct column *)(const void *)(from + places.column),
		.lists = { .partitions = head.partitions,
			   .columns = head.columns,
			   .group = lists_group(head.columns),
			   .values = head.values,
			   .bits = (const uint64_t *)(const void *)(from + places.bits),
			   .samples = (const uint32_t *)(const void *)(from + places.samples) },
		.values = (const uint16_t *)(const void *)(from + places.values),
		.kill_lists = { .partitions = head.partitions,
				.columns = 1,
				.group = lists_group(1),
				.values = head.kills,
				.bits = (const uint64_t *)(const void *)(from + places.kill_bits),
				.samples = (const uint32_t *)(const void *)(from + places.kill_samples) },
		.kills = (const uint32_t *)(const void *)(from + places.kills),
		.kill_columns = (const uint16_t *)(const void *)(from + places.kill_columns),
	};
	return bundle;
}

struct cell bundle_cell(const struct bundle *bundle, uint32_t partition)
{
	struct cell cell = { .lists = &bundle->lists, .values = bundle->values };

	if (bundle->columns > 0)
		cell.range = lists_range(&bundle->lists, partition);
	if (bundle->kill_lists.values > 0) {
		struct lists_range kills = lists_range(&bundle->kill_lists, partition);

		cell.kills = bundle->kills + kills.first;
		cell.kill_columns = bundle->kill_columns + kills.first;
		cell.kill_count = kills.end - kills.first;
	}
	return cell;
}
