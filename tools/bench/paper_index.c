/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/paper_index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#define FUNCTION_BITS 4
#define FILTER_SEED 0x66696c746572ull
#define FILTER_BITS_MOST 32

struct paper_index {
	uint32_t *slot;
	uint64_t slots;
	uint8_t *filters; /* of all segments, filter_bytes each */
	uint64_t filter_bytes;
	uint32_t segments;
	unsigned probes;
};

int paper_index_create(struct paper_index **out, uint64_t slots, uint32_t segments, uint64_t keys_each,
		       unsigned filter_bits)
{
	struct paper_index *index;

	if (slots < PAPER_INDEX_CHOICES || segments == 0 || segments >= UINT32_MAX >> FUNCTION_BITS || keys_each == 0 ||
	    filter_bits == 0 || filter_bits > FILTER_BITS_MOST)
		return FS_EINVAL;
	index = mem_zalloc(sizeof(*index));
	if (!index)
		return FS_ENOMEM;
	index->slots = slots;
	index->segments = segments;
	index->filter_bytes = (keys_each * filter_bits + 7) / 8;
	index->probes = (unsigned)(filter_bits * 0.6931 + 0.5);
	if (index->probes == 0)
		index->probes = 1;
	index->slot = mem_zalloc(slots * sizeof(*index->slot));
	index->filters = mem_zalloc(segments * index->filter_bytes);
	if (!index->slot || !index->filters) {
		paper_index_destroy(index);
		return FS_ENOMEM;
	}
	*out = index;
	return FS_OK;
}

void paper_index_destroy(struct paper_index *index)
{
	if (!index)
		return;
	mem_free(index->slot);
	mem_free(index->filters);
	mem_free(index);
}

/* ---- filters --------------------------------------------------------------------------------- */

/* The bit of a key's probe in a segment's filter. */
static uint64_t filter_bit(const struct paper_index *index, uint64_t hash, unsigned probe)
{
	return reduce64(mix64((hash ^ FILTER_SEED) + probe * 0x9e3779b97f4a7c15ull), index->filter_bytes * 8);
}

static uint8_t *filter_of(const struct paper_index *index, uint32_t segment)
{
	return index->filters + segment * index->filter_bytes;
}

static bool filter_has(const struct paper_index *index, uint32_t segment, uint64_t hash)
{
	const uint8_t *filter = filter_of(index, segment);

	for (unsigned probe = 0; probe < index->probes; probe++) {
		uint64_t bit = filter_bit(index, hash, probe);

		if (!(filter[bit / 8] >> bit % 8 & 1))
			return false;
	}
	return true;
}

void paper_index_open(struct paper_index *index, uint32_t segment)
{
	memset(filter_of(index, segment), 0, index->filter_bytes);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static uint32_t *choice(const struct paper_index *index, uint64_t hash, unsigned number)
{
	return &index->slot[reduce64(mix64(hash + number), index->slots)];
}

static uint32_t slot_of(uint32_t segment, unsigned function)
{
	return (segment + 1) << FUNCTION_BITS | function;
}

bool paper_index_insert(struct paper_index *index, uint64_t hash, uint32_t segment, unsigned function)
{
	uint8_t *filter = filter_of(index, segment);
	uint32_t *slot = NULL;
	bool was_free;

	must(segment < index->segments && function < 1u << FUNCTION_BITS);
	for (unsigned probe = 0; probe < index->probes; probe++) {
		uint64_t bit = filter_bit(index, hash, probe);

		filter[bit / 8] |= (uint8_t)(1u << bit % 8);
	}
	for (unsigned i = 0; i < PAPER_INDEX_CHOICES; i++) {
		slot = choice(index, hash, i);
		if (*slot == 0)
			break;
	}
	was_free = *slot == 0;
	*slot = slot_of(segment, function);
	return was_free;
}

void paper_index_remove(struct paper_index *index, uint64_t hash, uint32_t segment, unsigned function)
{
	for (unsigned i = 0; i < PAPER_INDEX_CHOICES; i++) {
		uint32_t *slot = choice(index, hash, i);

		if (*slot == slot_of(segment, function)) {
			*slot = 0;
			return;
		}
	}
}

unsigned paper_index_lookup(const struct paper_index *index, uint64_t hash, uint64_t *asked,
			    struct paper_index_match out[PAPER_INDEX_CHOICES])
{
	unsigned found = 0;

	for (unsigned i = 0; i < PAPER_INDEX_CHOICES; i++) {
		uint32_t slot = *choice(index, hash, i);
		uint32_t segment = (slot >> FUNCTION_BITS) - 1;

		if (slot == 0)
			continue;
		(*asked)++;
		if (filter_has(index, segment, hash))
			out[found++] = (struct paper_index_match){ segment, slot & ((1u << FUNCTION_BITS) - 1) };
	}
	return found;
}

uint64_t paper_index_bytes(const struct paper_index *index)
{
	return index->slots * sizeof(*index->slot) + index->segments * index->filter_bytes;
}
