/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aged counts of keys: a bounded table of fingerprints with a count each.
 *
 * A count takes 5 bits: a power of the root of two, from 1/4 to 8192. It is rounded at random to one of its two
 * neighbours, so that the mean of many roundings is right. Ageing takes one step off each count, and forgets those that
 * fall below the least. A full bucket forgets its least count, and among equal ones the one that was changed longest
 * ago: keys that are seen once push each other out, not those that are seen often.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "classifier/classifier_internal.h"

#define CODE_BITS 5
#define CODE_MAX 31u
#define CODE_STEP 0.5 /* octaves */
#define CODE_LEAST (-2.0) /* code 1 stands for 2^CODE_LEAST */
#define CODE_ROUND_UP 0.7 /* a smaller part of the least count counts as nothing */
#define AGED_AT_ONCE 262144u /* buckets: some milliseconds; the rest waits for the next call */
#define FINGERPRINTS 2047 /* 1 to 2047; an entry of 0 is free */

int counts_init(struct counts *counts, size_t memory_bytes)
{
	counts->buckets = memory_bytes / sizeof(*counts->bucket);
	if (counts->buckets == 0)
		return FS_EINVAL;
	counts->bucket = mem_zaligned(64, counts->buckets * sizeof(*counts->bucket));
	if (!counts->bucket)
		return FS_ENOMEM;
	for (unsigned i = 0; i < COUNTS_LOCKS; i++)
		lock_init(&counts->lock[i], LOCK_LEAF);
	return FS_OK;
}

void counts_fini(struct counts *counts)
{
	if (!counts->bucket)
		return;
	for (unsigned i = 0; i < COUNTS_LOCKS; i++)
		lock_fini(&counts->lock[i]);
	mem_free(counts->bucket);
	counts->bucket = NULL;
}

/*
 * The sampler takes the keys with the lowest mixed hashes, so the bucket comes from a second mix: otherwise the sampled
 * keys would share few buckets, and those would forget at another pace than the rest.
 */
static size_t counts_bucket(const struct counts *counts, uint64_t key, unsigned *fingerprint)
{
	uint64_t mixed = mix64(key + 0x9e3779b97f4a7c15ull);
	size_t bucket = (size_t)reduce64(mixed, counts->buckets);

	*fingerprint = 1 + (unsigned)((mixed & UINT32_MAX) * FINGERPRINTS >> 32);
	must(bucket < counts->buckets && *fingerprint <= FINGERPRINTS);
	return bucket;
}

/* The position of the fingerprint in the bucket; COUNTS_ENTRIES if it isn't there. */
static unsigned counts_find(const uint16_t bucket[COUNTS_ENTRIES], unsigned fingerprint)
{
	unsigned at = 0;

	while (at < COUNTS_ENTRIES && bucket[at] >> CODE_BITS != fingerprint)
		at++;
	return at;
}

static double count_of(unsigned code)
{
	return code == 0 ? 0 : exp2(CODE_LEAST + CODE_STEP * (code - 1));
}

static unsigned code_of(struct counts *counts, double count)
{
	double exact, low, high, random;
	unsigned code;

	if (count < count_of(1) * CODE_ROUND_UP)
		return 0;
	exact = (log2(count) - CODE_LEAST) / CODE_STEP + 1;
	if (exact <= 1)
		return 1;
	if (exact >= CODE_MAX)
		return CODE_MAX;
	code = (unsigned)exact;
	low = count_of(code), high = count_of(code + 1);
	random = (double)(mix64(atomic_fetch_add_explicit(&counts->roundings, 1, memory_order_relaxed)) >> 11) *
		 0x1.0p-53;
	return random < (count - low) / (high - low) ? code + 1 : code;
}

double counts_get(struct counts *counts, uint64_t key)
{
	unsigned fingerprint, code = 0;
	size_t number = counts_bucket(counts, key, &fingerprint);
	struct lock *lock = &counts->lock[number % COUNTS_LOCKS];

	lock_acquire(lock);
	unsigned at = counts_find(counts->bucket[number], fingerprint);
	if (at < COUNTS_ENTRIES)
		code = counts->bucket[number][at] & CODE_MAX;
	lock_release(lock);
	return count_of(code);
}

/* The position of the least count, the last of several. Free entries are less than any. */
static unsigned counts_least(const uint16_t bucket[COUNTS_ENTRIES])
{
	unsigned least = 0;

	for (unsigned at = 1; at < COUNTS_ENTRIES; at++)
		if ((bucket[at] & CODE_MAX) <= (bucket[least] & CODE_MAX))
			least = at;
	return least;
}

/* The bucket keeps its entries in the order of their changes, the latest first. */
static void counts_put(struct counts *counts, uint64_t key, double count, bool add)
{
	unsigned fingerprint, code;
	size_t number = counts_bucket(counts, key, &fingerprint);
	uint16_t *bucket = counts->bucket[number];
	struct lock *lock = &counts->lock[number % COUNTS_LOCKS];

	lock_acquire(lock);
	unsigned at = counts_find(bucket, fingerprint);
	bool known = at < COUNTS_ENTRIES;
	if (known && add)
		count += count_of(bucket[at] & CODE_MAX);
	code = code_of(counts, count);
	if (known || code > 0) { /* a count of nothing pushes no other key out */
		if (!known)
			at = counts_least(bucket);
		memmove(bucket + 1, bucket, at * sizeof(*bucket));
		bucket[0] = code ? (uint16_t)(fingerprint << CODE_BITS | code) : 0;
	}
	lock_release(lock);
}

void counts_add(struct counts *counts, uint64_t key, double more)
{
	counts_put(counts, key, more, true);
}

void counts_set(struct counts *counts, uint64_t key, double count)
{
	counts_put(counts, key, count, false);
}

void counts_copy(struct counts *counts, size_t from, size_t count, void *out)
{
	for (size_t n = 0; n < count; n++) {
		struct lock *lock = &counts->lock[(from + n) % COUNTS_LOCKS];

		must(from + n < counts->buckets);
		lock_acquire(lock);
		memcpy((uint8_t *)out + n * sizeof(*counts->bucket), counts->bucket[from + n], sizeof(*counts->bucket));
		lock_release(lock);
	}
}

/* New entries are the latest, so the others go behind them. */
static void merge_bucket(uint16_t bucket[COUNTS_ENTRIES], const uint16_t saved[COUNTS_ENTRIES])
{
	unsigned at = 0;

	for (unsigned n = 0; n < COUNTS_ENTRIES; n++) {
		if (saved[n] == 0 || counts_find(bucket, saved[n] >> CODE_BITS) < COUNTS_ENTRIES)
			continue;
		while (at < COUNTS_ENTRIES && bucket[at] != 0)
			at++;
		if (at == COUNTS_ENTRIES)
			return;
		bucket[at] = saved[n];
	}
}

void counts_merge(struct counts *counts, size_t from, size_t count, const void *bytes)
{
	uint16_t saved[COUNTS_ENTRIES];

	for (size_t n = 0; n < count; n++) {
		struct lock *lock = &counts->lock[(from + n) % COUNTS_LOCKS];

		must(from + n < counts->buckets);
		memcpy(saved, (const uint8_t *)bytes + n * sizeof(saved), sizeof(saved));
		lock_acquire(lock);
		merge_bucket(counts->bucket[from + n], saved);
		lock_release(lock);
	}
}

static void age_bucket(uint16_t bucket[COUNTS_ENTRIES])
{
	for (unsigned at = 0; at < COUNTS_ENTRIES; at++)
		bucket[at] = (bucket[at] & CODE_MAX) > 1 ? bucket[at] - 1 : 0;
}

void counts_age(struct counts *counts, double half_lives)
{
	double due = counts->age_due + half_lives / CODE_STEP * (double)counts->buckets;

	/* After a full round for each step of a count nothing is left to age. */
	counts->age_due = fmin(due, (double)CODE_MAX * (double)counts->buckets);
	for (unsigned n = 0; n < AGED_AT_ONCE && counts->age_due >= 1; n++, counts->age_due--) {
		struct lock *lock = &counts->lock[counts->age_next % COUNTS_LOCKS];

		lock_acquire(lock);
		age_bucket(counts->bucket[counts->age_next]);
		lock_release(lock);
		counts->age_next = (counts->age_next + 1) % counts->buckets;
	}
}
