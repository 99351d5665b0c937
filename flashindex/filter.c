/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bloom filter units, and what they share with cuckoo filters (cuckoo.c), whose trailer is "FC", 1, width of the
 * fingerprints, 0*, and whose bytes before it are as many.
 *
 *   +---------+---------+-----+---------+------------------------------+
 *   | block 0 | block 1 | ... | block m | trailer: "FB", 1, probes, 0* |
 *   | 64 B    | 64 B    |     | 64 B    | 8 B                          |
 *   +---------+---------+-----+---------+------------------------------+
 *
 * Blocked: a key's bits all lie in one cache line, so that a query costs one miss. The trailer contains the
 * number of probes, because a process with other options may read the unit back: with more probes than it was
 * built with, it would reject its own keys.
 *
 * With b bits per key, round(b ln 2) probes, at least one. One or two bits: one probe, and the
 * rate is that of a plain bit map, 1 - e^(-1/b): 0.632 and 0.393.
 */
#include "flashindex/flashindex.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "flashindex/filter_internal.h"
#include "flashindex/index_internal.h"

unsigned filter_probes(unsigned bits)
{
	unsigned probes = (unsigned)(bits * 0.6931 + 0.5);

	return probes ? probes : 1;
}

uint64_t filter_blocks(unsigned bits, uint64_t n)
{
	uint64_t blocks = (n * bits + BLOCK_BITS - 1) / BLOCK_BITS;

	return blocks ? blocks : 1;
}

#define PROBE_BITS 9 /* log2(BLOCK_BITS) */

/* The bits of a key: its block, then nine bits of walk for each probe, mixed anew after seven. */
struct probe {
	uint64_t block;
	uint64_t mixed;
	uint64_t walk;
	unsigned left;
};

static struct probe probe_start(uint64_t seed, uint64_t blocks, uint64_t hash)
{
	uint64_t mixed = mix64(hash ^ seed);

	/* The block comes from the high bits of mixed; the walk must not repeat them. */
	return (struct probe){ reduce64(mixed, blocks), mixed, 0, 0 };
}

static unsigned probe_bit(struct probe *probe)
{
	unsigned bit;

	if (!probe->left--) {
		probe->walk = probe->mixed = mix64(probe->mixed + 1);
		probe->left = 64 / PROBE_BITS - 1;
	}
	bit = probe->walk % BLOCK_BITS;
	probe->walk >>= PROBE_BITS;
	return bit;
}

static unsigned filter_bits_of(const struct fidx *index)
{
	return atomic_load_explicit(&index->filter_bits, memory_order_relaxed);
}

uint64_t fidx_filter_length(const struct fidx *index, uint64_t n)
{
	unsigned bits = filter_bits_of(index);

	if (!bits)
		return 0;
	if (index->filter_units)
		return index->filter_units * unit_length(filter_unit_bits(bits), n);
	return filter_blocks(bits, n) * BLOCK_BYTES + TRAILER_BYTES;
}

void bloom_set(uint64_t seed, const uint64_t *hashes, uint64_t n, uint8_t *bytes, uint64_t blocks, unsigned probes)
{
	for (uint64_t i = 0; i < n; i++) {
		struct probe probe = probe_start(seed, blocks, hashes[i]);
		uint8_t *block = bytes + probe.block * BLOCK_BYTES;

		for (unsigned p = 0; p < probes; p++) {
			unsigned bit = probe_bit(&probe);

			must(probe.block < blocks && bit < BLOCK_BITS);
			block[bit / 8] |= (uint8_t)(1u << bit % 8);
		}
	}
}

void *fidx_filter_build(const struct fidx *index, const uint64_t *hashes, uint64_t n, size_t *length)
{
	unsigned bits = filter_bits_of(index), probes = filter_probes(bits);
	uint64_t blocks = filter_blocks(bits, n);
	uint8_t *bytes;

	*length = bits ? blocks * BLOCK_BYTES + TRAILER_BYTES : 0;
	if (!*length)
		return NULL;
	bytes = mem_zalloc(*length);
	if (!bytes) {
		*length = 0;
		return NULL;
	}
	if (index->warm) {
		unsigned width = cuckoo_build(index->warm, index->filter_seed, hashes, n, bytes, blocks * BLOCK_BYTES);

		if (width) {
			memcpy(bytes + blocks * BLOCK_BYTES,
			       (uint8_t[TRAILER_BYTES]){ 'F', 'C', TRAILER_VERSION, (uint8_t)width }, TRAILER_BYTES);
			return bytes;
		}
	}
	bloom_set(index->filter_seed, hashes, n, bytes, blocks, probes);
	memcpy(bytes + blocks * BLOCK_BYTES, (uint8_t[TRAILER_BYTES]){ 'F', 'B', TRAILER_VERSION, (uint8_t)probes },
	       TRAILER_BYTES);
	return bytes;
}

static bool unit_passes(const struct fidx *index, const struct filter *filter, uint64_t hash)
{
	if (filter->width)
		return cuckoo_passes(filter->bytes, filter->blocks * BLOCK_BYTES, filter->width, index->filter_seed,
				     hash);

	struct probe probe = probe_start(index->filter_seed ^ filter->salt, filter->blocks, hash);
	const uint8_t *block = filter->bytes + probe.block * BLOCK_BYTES;

	for (unsigned p = 0; p < filter->probes; p++) {
		unsigned bit = probe_bit(&probe);

		if (!(block[bit / 8] >> bit % 8 & 1))
			return false;
	}
	return true;
}

bool filter_passes(const struct fidx *index, const struct filter *filter, uint64_t hash)
{
	do {
		if (!unit_passes(index, filter, hash))
			return false;
		filter = filter->next;
	} while (filter);
	return true;
}

/* ---- a unit in use --------------------------------------------------------------------------- */

static bool trailer_is_valid(const uint8_t *bytes, size_t length)
{
	const uint8_t *trailer = bytes + length - TRAILER_BYTES;

	if (trailer[0] != 'F' || trailer[2] != TRAILER_VERSION)
		return false;
	return trailer[1] == 'B'
		       ? trailer[3] >= 1 && trailer[3] <= PROBES_MAX
		       : trailer[1] == 'C' && trailer[3] >= CUCKOO_WIDTH_LEAST && trailer[3] <= CUCKOO_WIDTH_MAX;
}

struct filter *filter_wrap(void *bytes, size_t length)
{
	struct filter *filter = NULL;

	if (bytes && length >= BLOCK_BYTES + TRAILER_BYTES && length % BLOCK_BYTES == TRAILER_BYTES &&
	    trailer_is_valid(bytes, length))
		filter = mem_alloc(sizeof(*filter));
	if (!filter) {
		mem_free(bytes);
		return NULL;
	}
	*filter = (struct filter){ .bytes = bytes, .blocks = length / BLOCK_BYTES };
	if (filter->bytes[length - TRAILER_BYTES + 1] == 'C')
		filter->width = filter->bytes[length - TRAILER_BYTES + 3];
	else
		filter->probes = filter->bytes[length - TRAILER_BYTES + 3];
	return filter;
}

void filter_free(struct filter *filter)
{
	while (filter) {
		struct filter *next = filter->next;

		mem_free(filter->bytes);
		mem_free(filter);
		filter = next;
	}
}

size_t filter_bytes(const struct filter *filter)
{
	size_t bytes = 0;

	for (; filter; filter = filter->next)
		bytes += sizeof(*filter) + filter_unit_length(filter);
	return bytes;
}

size_t filter_unit_length(const struct filter *filter)
{
	return filter->blocks * BLOCK_BYTES + (filter->stored ? UNIT_TRAILER_BYTES : TRAILER_BYTES);
}

/* Computed from the bits that are set in this unit: another key falls into each block with equal probability. */
static double unit_pass_rate(const struct filter *filter)
{
	double sum = 0;

	if (filter->width)
		return cuckoo_pass_rate(filter->bytes, filter->blocks * BLOCK_BYTES, filter->width);
	for (uint64_t b = 0; b < filter->blocks; b++) {
		unsigned ones = 0;
		double pass = 1;

		for (unsigned i = 0; i < BLOCK_BYTES; i++)
			ones += (unsigned)__builtin_popcount(filter->bytes[b * BLOCK_BYTES + i]);
		for (unsigned p = 0; p < filter->probes; p++)
			pass *= (double)ones / BLOCK_BITS;
		sum += pass;
	}
	return sum / (double)filter->blocks;
}

double filter_pass_rate(const struct filter *filter)
{
	double pass = 1;

	for (; filter; filter = filter->next)
		pass *= unit_pass_rate(filter);
	return pass;
}
