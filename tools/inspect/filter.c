/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/filter.h"

#include "base/hash.h"

#define BLOCK_BYTES 64u
#define TRAILER_BYTES 8u
#define PROBES_MOST 24u
#define NUMBER_BITS 9u /* of a bit's number in a block */
#define NUMBERS_PER_HASH 7u
#define WIDTH_LEAST 2u /* of fingerprints */
#define WIDTH_MOST 14u
#define CELLS 4u
#define UNIT_TAIL_BYTES 16u /* sum and trailer */
#define UNITS_LEAST 2u
#define UNITS_MOST 8u

void filter_init(struct filter *filter, const struct format_super *super, const uint8_t *bytes, uint64_t length)
{
	const uint8_t *trailer;

	*filter = (struct filter){
		.blocks = bytes,
		.block_count = length / BLOCK_BYTES,
		.seed = mix64(super->hash_seed ^ 0x8cb92ba72f3d8dd7ull),
		.hash_seed = super->hash_seed,
	};
	if (filter->block_count == 0)
		return;
	trailer = bytes + length - TRAILER_BYTES;
	if (length >= UNITS_LEAST * (BLOCK_BYTES + UNIT_TAIL_BYTES) && trailer[0] == 'F' && trailer[1] == 'U' &&
	    trailer[2] == 1 && trailer[3] <= PROBES_MOST && trailer[4] + 1u == trailer[5] &&
	    trailer[5] >= UNITS_LEAST && trailer[5] <= UNITS_MOST && length % trailer[5] == 0 &&
	    length / trailer[5] % BLOCK_BYTES == UNIT_TAIL_BYTES) {
		filter->units = trailer[5];
		filter->unit_bytes = length / filter->units;
		filter->block_count = filter->unit_bytes / BLOCK_BYTES;
		filter->probes = trailer[3];
		return;
	}
	if (length % BLOCK_BYTES != TRAILER_BYTES)
		return;
	if (trailer[0] == 'F' && trailer[1] == 'B' && trailer[2] == 1 && trailer[3] <= PROBES_MOST)
		filter->probes = trailer[3];
	if (trailer[0] == 'F' && trailer[1] == 'C' && trailer[2] == 1 && trailer[3] >= WIDTH_LEAST &&
	    trailer[3] <= WIDTH_MOST)
		filter->width = trailer[3];
}

/* Returns so many bits from bit number at on. */
static uint64_t bits_at(const struct filter *filter, uint64_t at, unsigned bits)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bits; i++)
		value |= (uint64_t)(filter->blocks[(at + i) / 8] >> (at + i) % 8 & 1) << i;
	return value;
}

static bool cuckoo_has_key(const struct filter *filter, uint64_t x)
{
	unsigned width = filter->width, bucket_bits = CELLS * width + 1;
	uint64_t buckets = filter->block_count * BLOCK_BYTES * 8 / bucket_bits;

	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = reduce64(i == 0 ? x : mix64(x + 1), buckets) * bucket_bits;
		uint64_t seed = bits_at(filter, at + (uint64_t)CELLS * width, 1);
		uint64_t fingerprint = 1 + reduce64(mix64(x + 2 + seed), (UINT64_C(1) << width) - 1);

		for (unsigned cell = 0; cell < CELLS; cell++)
			if (bits_at(filter, at + (uint64_t)cell * width, width) == fingerprint)
				return true;
	}
	return false;
}

/* x: the key's hash with the seed of these blocks. */
static bool blocks_have_key(const struct filter *filter, const uint8_t *blocks, uint64_t x)
{
	const uint8_t *block = blocks + reduce64(x, filter->block_count) * BLOCK_BYTES;
	uint64_t numbers = 0;

	for (unsigned probe = 0; probe < filter->probes; probe++) {
		unsigned bit;

		if (probe % NUMBERS_PER_HASH == 0)
			numbers = x = mix64(x + 1);
		bit = numbers % (1u << NUMBER_BITS);
		numbers >>= NUMBER_BITS;
		if (!(block[bit / 8] >> bit % 8 & 1))
			return false;
	}
	return true;
}

bool filter_has_key(const struct filter *filter, const uint8_t *key, uint32_t length)
{
	uint64_t seeded;

	if (filter->probes == 0 && filter->width == 0)
		return true;
	seeded = hash64(key, length, filter->hash_seed) ^ filter->seed;
	if (filter->width)
		return cuckoo_has_key(filter, mix64(seeded));
	if (filter->units == 0)
		return blocks_have_key(filter, filter->blocks, mix64(seeded));
	for (unsigned u = 0; u < filter->units; u++)
		if (!blocks_have_key(filter, filter->blocks + u * filter->unit_bytes, mix64(seeded ^ mix64(u + 1))))
			return false;
	return true;
}
