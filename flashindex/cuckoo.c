/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dynamic-seed cuckoo filters (SpotKV, IV-C), and the warm keys after which they are seeded.
 *
 *   bucket: | cell 0 | cell 1 | cell 2 | cell 3 | seed |    cells of `width` bits, the seed of one; no gap between buckets
 *
 * A key has two buckets by two independent hashes, and lies in one of their eight cells as a fingerprint of `width` bits,
 * 1 and above; 0 is an empty cell. The bucket's seed, 0 or 1, chooses which of a key's two fingerprints it stores. While
 * the filter is built all keys are at hand: a bucket that passes fewer of the warm keys with seed 1 gets that seed, and its
 * fingerprints are computed anew. (The paper gives seed 1 to any bucket that passes a warm key with seed 0, as it knows no
 * more of these than fingerprints.)
 *
 * The memory is given, and the width follows from it: the widest for which the keys still find a cell each. A key is in
 * the filter if one of its eight cells has its fingerprint, so that other keys pass with a probability of about
 * 8 * load / (2^width - 1).
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "flashindex/index_internal.h"

#define CELLS 4u
#define KICKS_MOST 500u
#define LOAD_PERCENT 95u
#define NOBODY UINT32_MAX

_Static_assert(CELLS *CUCKOO_WIDTH_MAX + 1 + 7 <= 64, "eight bytes hold a bucket wherever it begins");

static unsigned bits_each(unsigned width)
{
	return CELLS * width + 1;
}

/* The buckets of a filter; the eight bytes after the data are readable, too. */
static uint64_t buckets_in(uint64_t bytes, unsigned width)
{
	return bytes * 8 / bits_each(width);
}

static uint64_t bucket_get(const uint8_t *bytes, unsigned width, uint64_t bucket)
{
	uint64_t at = bucket * bits_each(width), word;

	memcpy(&word, bytes + at / 8, sizeof(word));
	return word >> at % 8 & ((UINT64_C(1) << bits_each(width)) - 1);
}

static void bucket_put(uint8_t *bytes, unsigned width, uint64_t bucket, uint64_t value)
{
	uint64_t at = bucket * bits_each(width), word;
	uint64_t mask = ((UINT64_C(1) << bits_each(width)) - 1) << at % 8;

	memcpy(&word, bytes + at / 8, sizeof(word));
	word = (word & ~mask) | (value << at % 8);
	memcpy(bytes + at / 8, &word, sizeof(word));
}

/* What a filter needs of a key. */
struct probe {
	uint64_t bucket[2], mixed;
};

static struct probe probe_of(uint64_t seed, uint64_t buckets, uint64_t hash)
{
	uint64_t mixed = mix64(hash ^ seed);

	return (struct probe){ { reduce64(mixed, buckets), reduce64(mix64(mixed + 1), buckets) }, mixed };
}

static uint64_t fingerprint(const struct probe *probe, unsigned width, unsigned seed)
{
	return 1 + reduce64(mix64(probe->mixed + 2 + seed), (UINT64_C(1) << width) - 1);
}

static bool bucket_passes(uint64_t bucket, const struct probe *probe, unsigned width)
{
	uint64_t mask = (UINT64_C(1) << width) - 1;
	uint64_t wanted = fingerprint(probe, width, bucket >> CELLS * width & 1);

	for (unsigned c = 0; c < CELLS; c++)
		if ((bucket >> c * width & mask) == wanted)
			return true;
	return false;
}

bool cuckoo_passes(const uint8_t *bytes, uint64_t length, unsigned width, uint64_t seed, uint64_t hash)
{
	struct probe probe = probe_of(seed, buckets_in(length, width), hash);

	return bucket_passes(bucket_get(bytes, width, probe.bucket[0]), &probe, width) ||
	       bucket_passes(bucket_get(bytes, width, probe.bucket[1]), &probe, width);
}

double cuckoo_pass_rate(const uint8_t *bytes, uint64_t length, unsigned width)
{
	uint64_t buckets = buckets_in(length, width), mask = (UINT64_C(1) << width) - 1;
	double miss = 0, wrong = 1 - 1 / (double)mask;

	for (uint64_t b = 0; b < buckets; b++) {
		uint64_t bucket = bucket_get(bytes, width, b);
		double all = 1;

		for (unsigned c = 0; c < CELLS; c++)
			if (bucket >> c * width & mask)
				all *= wrong;
		miss += all;
	}
	miss /= (double)buckets;
	return 1 - miss * miss;
}

/* ---- building -------------------------------------------------------------------------------- */

struct building {
	const uint64_t *hashes;
	uint64_t seed, buckets;
	unsigned width;
	uint32_t *owner; /* the key in each cell, by its number; NOBODY */
};

/* Puts a key into a cell of that bucket; false: it is full. */
static bool put(struct building *b, uint64_t bucket, uint32_t key)
{
	uint32_t *owner = &b->owner[bucket * CELLS];

	for (unsigned c = 0; c < CELLS; c++)
		if (owner[c] == NOBODY) {
			owner[c] = key;
			return true;
		}
	return false;
}

/* Finds a cell for the key; others may have to go to their other bucket. False: too many of them had to. */
static bool place(struct building *b, uint32_t key)
{
	struct probe probe = probe_of(b->seed, b->buckets, b->hashes[key]);
	uint64_t bucket = probe.bucket[1];

	if (put(b, probe.bucket[0], key) || put(b, probe.bucket[1], key))
		return true;
	for (unsigned kick = 0; kick < KICKS_MOST; kick++) {
		uint32_t *cell = &b->owner[bucket * CELLS + mix64(probe.mixed + kick) % CELLS], out = *cell;

		*cell = key;
		key = out;
		struct probe other = probe_of(b->seed, b->buckets, b->hashes[key]);
		bucket = other.bucket[0] == bucket ? other.bucket[1] : other.bucket[0];
		if (put(b, bucket, key))
			return true;
	}
	return false;
}

static bool place_all(struct building *b, uint64_t n)
{
	memset(b->owner, 0xff, b->buckets * CELLS * sizeof(*b->owner));
	for (uint32_t i = 0; i < n; i++)
		if (!place(b, i))
			return false;
	return true;
}

/* Writes a bucket with this seed. */
static void write_bucket(const struct building *b, uint8_t *bytes, uint64_t bucket, unsigned seed)
{
	uint64_t value = (uint64_t)seed << CELLS * b->width;

	for (unsigned c = 0; c < CELLS; c++) {
		uint32_t key = b->owner[bucket * CELLS + c];

		if (key == NOBODY)
			continue;
		struct probe probe = probe_of(b->seed, b->buckets, b->hashes[key]);
		value |= fingerprint(&probe, b->width, seed) << c * b->width;
	}
	bucket_put(bytes, b->width, bucket, value);
}

static bool holds(const struct building *b, uint64_t bucket, uint64_t hash)
{
	for (unsigned c = 0; c < CELLS; c++)
		if (b->owner[bucket * CELLS + c] != NOBODY && b->hashes[b->owner[bucket * CELLS + c]] == hash)
			return true;
	return false;
}

/* Would the bucket pass the key with this seed? */
static bool would_pass(const struct building *b, uint64_t bucket, const struct probe *probe, unsigned seed)
{
	uint64_t wanted = fingerprint(probe, b->width, seed);

	for (unsigned c = 0; c < CELLS; c++) {
		uint32_t key = b->owner[bucket * CELLS + c];

		if (key == NOBODY)
			continue;
		struct probe other = probe_of(b->seed, b->buckets, b->hashes[key]);
		if (fingerprint(&other, b->width, seed) == wanted)
			return true;
	}
	return false;
}

/* Gives each bucket the seed with which it passes fewer warm keys that aren't in the filter. The latest of a set count
   most. Without memory all seeds stay 0. */
static void seed_buckets(const struct building *b, const struct warm *warm, uint8_t *bytes)
{
	int32_t *spared = mem_zalloc(b->buckets * sizeof(*spared)); /* by seed 1 */

	if (!spared)
		return;
	for (unsigned i = 0; i < WARM_SETS * WARM_WAYS; i++) {
		uint64_t hash = atomic_load_explicit(&warm->hash[i / WARM_WAYS][i % WARM_WAYS], memory_order_relaxed);
		struct probe probe = probe_of(b->seed, b->buckets, hash);

		if (!hash || holds(b, probe.bucket[0], hash) || holds(b, probe.bucket[1], hash))
			continue;
		for (unsigned k = 0; k < 2; k++)
			for (unsigned seed = 0; seed < 2; seed++)
				if (would_pass(b, probe.bucket[k], &probe, seed))
					spared[probe.bucket[k]] +=
						((int32_t)(WARM_WAYS - i % WARM_WAYS) * (seed ? -1 : 1));
	}
	for (uint64_t bucket = 0; bucket < b->buckets; bucket++)
		if (spared[bucket] > 0)
			write_bucket(b, bytes, bucket, 1);
	mem_free(spared);
}

unsigned cuckoo_build(const struct warm *warm, uint64_t seed, const uint64_t *hashes, uint64_t n, uint8_t *bytes,
		      uint64_t length)
{
	struct building b = { .hashes = hashes, .seed = seed, .width = CUCKOO_WIDTH_MAX };

	while (b.width >= CUCKOO_WIDTH_LEAST && buckets_in(length, b.width) * CELLS * LOAD_PERCENT < n * 100)
		b.width--;
	if (b.width < CUCKOO_WIDTH_LEAST || n >= NOBODY)
		return 0;
	b.owner = mem_alloc(buckets_in(length, CUCKOO_WIDTH_LEAST) * CELLS * sizeof(*b.owner));
	if (!b.owner)
		return 0;
	for (; b.width >= CUCKOO_WIDTH_LEAST; b.width--) {
		b.buckets = buckets_in(length, b.width);
		if (place_all(&b, n))
			break;
	}
	if (b.width < CUCKOO_WIDTH_LEAST) {
		mem_free(b.owner);
		return 0;
	}
	for (uint64_t bucket = 0; bucket < b.buckets; bucket++)
		write_bucket(&b, bytes, bucket, 0);
	if (warm)
		seed_buckets(&b, warm, bytes);
	mem_free(b.owner);
	return b.width;
}

/* ---- warm keys ------------------------------------------------------------------------------- */

int warm_create(struct warm **out)
{
	*out = mem_zalloc(sizeof(**out));
	return *out ? FS_OK : FS_ENOMEM;
}

void warm_destroy(struct warm *warm)
{
	mem_free(warm);
}

/* Least recently noted in each set of eight. Concurrent calls may lose or double a key of their set. */
void fidx_note_warm(struct fidx *index, const struct fidx_key *key)
{
	uint64_t next = key->hash;
	_Atomic uint64_t *set;

	if (!index->warm || next == 0)
		return;
	set = index->warm->hash[key->own % WARM_SETS];
	for (unsigned way = 0; way < WARM_WAYS; way++) {
		uint64_t old = atomic_load_explicit(&set[way], memory_order_relaxed);

		if (way == 0 && old == next)
			return;
		atomic_store_explicit(&set[way], next, memory_order_relaxed);
		if (old == key->hash || old == 0)
			return;
		next = old;
	}
}
