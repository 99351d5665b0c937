/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/filter.h"

#include "base/hash.h"

#define BLOCK_BYTES 64u
#define TRAILER_BYTES 8u
#define PROBES_MOST 24u
#define NUMBER_BITS 9u /* of a bit's number in a block */
#define NUMBERS_PER_HASH 7u

void filter_init(struct filter *filter, const struct format_super *super, const uint8_t *bytes, uint64_t length)
{
	const uint8_t *trailer;

	*filter = (struct filter){
		.blocks = bytes,
		.block_count = length / BLOCK_BYTES,
		.seed = mix64(super->hash_seed ^ 0x8cb92ba72f3d8dd7ull),
		.hash_seed = super->hash_seed,
	};
	if (filter->block_count == 0 || length % BLOCK_BYTES != TRAILER_BYTES)
		return;
	trailer = bytes + length - TRAILER_BYTES;
	if (trailer[0] == 'F' && trailer[1] == 'B' && trailer[2] == 1 && trailer[3] <= PROBES_MOST)
		filter->probes = trailer[3];
}

bool filter_passes(const struct filter *filter, const uint8_t *key, uint32_t length)
{
	uint64_t hash, numbers = 0;
	const uint8_t *block;

	if (filter->probes == 0)
		return true;
	hash = mix64(hash64(key, length, filter->hash_seed) ^ filter->seed);
	block = filter->blocks + reduce64(hash, filter->block_count) * BLOCK_BYTES;
	for (unsigned probe = 0; probe < filter->probes; probe++) {
		unsigned bit;

		if (probe % NUMBERS_PER_HASH == 0)
			numbers = hash = mix64(hash + 1);
		bit = numbers % (1u << NUMBER_BITS);
		numbers >>= NUMBER_BITS;
		if (!(block[bit / 8] >> bit % 8 & 1))
			return false;
	}
	return true;
}
