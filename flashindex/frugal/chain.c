/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is in memory of the chain, in a block: columns | segments | places. A place is 32 bits for each partition, in units of
 * 16 bytes through all segments of the chain, so that the record's length follows from the next place.
 */
#include <string.h>

#include "flashindex/frugal/chain_internal.h"

struct chain_layout chain_layout(uint32_t partitions, uint32_t columns, uint32_t segments)
{
	struct chain_layout layout = { .segment = columns * sizeof(struct column) };

	layout.places = layout.segment + segments * sizeof(struct chain_segment);
	layout.end = layout.places + ((uint64_t)partitions + 1) * sizeof(uint32_t);
	return layout;
}

bool chain_fill(const struct frugal *frugal, struct chain_row *row, struct chain *out)
{
	struct chain_layout layout;
	const uint8_t *from = frugal->area + row->block.offset;

	if (row->columns > COLUMNS_MOST || row->segments > FRUGAL_CHAIN_SEGMENTS)
		return false;
	layout = chain_layout(frugal->partitions, row->columns, row->segments);
	if (layout.end > row->block.bytes)
		return false;
	*out = (struct chain){ .row = row,
			       .block = row->block,
			       .number = atomic_load(&row->number),
			       .covers = row->covers,
			       .columns = row->columns,
			       .segments = row->segments,
			       .column = (const struct column *)(const void *)from,
			       .segment = (const struct chain_segment *)(const void *)(from + layout.segment),
			       .places = (const uint32_t *)(const void *)(from + layout.places) };
	return true;
}

bool chain_is_sound(const struct frugal *frugal, const struct chain *chain)
{
	uint64_t end = chain->places[frugal->partitions], most = frugal->config.segment_bytes;

	for (uint32_t p = 0; p < frugal->partitions; p++)
		if (chain->places[p] > chain->places[p + 1])
			return false;
	for (uint32_t s = 0; s < chain->segments; s++) {
		const struct chain_segment *segment = &chain->segment[s];
		uint64_t next = s + 1 < chain->segments ? segment[1].from : end;

		if (segment->segment >= frugal->config.segments || segment->from > next ||
		    segment->data_offset > most ||
		    (next - segment->from) * FRUGAL_CHAIN_ALIGN > most - segment->data_offset)
			return false;
	}
	return end == 0 || (chain->segments > 0 && chain->segment[0].from == 0);
}

bool chain_place(const struct frugal *frugal, const struct chain *chain, uint32_t partition, struct frugal_found *out)
{
	uint32_t from = chain->places[partition], to = chain->places[partition + 1], low = 0, high = chain->segments;

	must(partition < frugal->partitions);
	if (from >= to || chain->segments == 0 || chain->segment[0].from > from)
		return false;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (chain->segment[middle].from <= from)
			low = middle;
		else
			high = middle;
	}
	*out = (struct frugal_found){ .segment = chain->segment[low].segment,
				      .sequence = chain->segment[low].sequence,
				      .offset = chain->segment[low].data_offset +
						(from - chain->segment[low].from) * FRUGAL_CHAIN_ALIGN,
				      .length = (to - from) * FRUGAL_CHAIN_ALIGN };
	return out->segment < frugal->config.segments;
}

void chain_destroy(struct frugal *frugal, struct chain *chain)
{
	if (!chain)
		return;
	atomic_store_explicit(&chain->row->number, 0, memory_order_release);
	block_give(frugal, &chain->block);
	mem_free(chain);
}

bool frugal_has_chain_in(const struct frugal *frugal, uint32_t segment, uint64_t sequence)
{
	return segment < frugal->config.segments && sequence != 0 &&
	       atomic_load_explicit(&frugal->chained[segment], memory_order_acquire) == sequence;
}

void chain_mark(struct frugal *frugal, const struct chain *chain)
{
	for (uint32_t s = 0; s < frugal->config.segments; s++)
		atomic_store_explicit(&frugal->chained[s], 0, memory_order_relaxed);
	for (uint32_t i = 0; chain && i < chain->segments; i++)
		if (chain->segment[i].segment < frugal->config.segments)
			atomic_store_explicit(&frugal->chained[chain->segment[i].segment], chain->segment[i].sequence,
					      memory_order_release);
}

bool frugal_chain_is_over(const struct frugal *frugal)
{
	const struct chain *chain = frugal->chain;

	for (uint32_t c = 0; chain && c < chain->columns; c++)
		if (column_is_open(frugal, &chain->column[c]))
			return false;
	return chain != NULL;
}

void frugal_drop_chain(struct frugal *frugal)
{
	struct chain *old = frugal->chain;

	if (!old)
		return;
	must(!frugal->merge);
	atomic_store_explicit(&frugal->kept->chain, 0, memory_order_release);
	frugal->chain = NULL;
	chain_mark(frugal, NULL);
	figures_count(frugal);
	view_publish(frugal);
	chain_destroy(frugal, old);
}
