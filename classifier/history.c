/* SPDX-License-Identifier: BSD-3-Clause */
/* The history: which keys were in the cache lately, in a bounded table of fingerprints. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "classifier/classifier_internal.h"

#define BUCKET_ENTRIES 32u
#define COUNT_BITS 4
#define COUNT_MAX 15u
#define FINGERPRINTS 4095 /* 1 to 4095; an entry of 0 is free */

int history_init(struct history *history, size_t memory_bytes)
{
	history->buckets = memory_bytes / sizeof(*history->bucket);
	if (history->buckets == 0)
		return FS_EINVAL;
	history->bucket = mem_aligned(64, history->buckets * sizeof(*history->bucket));
	if (!history->bucket)
		return FS_ENOMEM;
	memset(history->bucket, 0, history->buckets * sizeof(*history->bucket));
	for (unsigned i = 0; i < HISTORY_LOCKS; i++)
		lock_init(&history->lock[i], LOCK_LEAF);
	return FS_OK;
}

void history_fini(struct history *history)
{
	if (!history->bucket)
		return;
	for (unsigned i = 0; i < HISTORY_LOCKS; i++)
		lock_fini(&history->lock[i]);
	mem_free(history->bucket);
	history->bucket = NULL;
}

/*
 * The sampler takes the keys with the lowest mixed hashes, so the bucket comes from a second mix: otherwise the sampled
 * keys would share few buckets, and those would forget at another pace than the rest.
 */
static size_t history_bucket(const struct history *history, uint64_t key, unsigned *fingerprint)
{
	uint64_t mixed = mix64(key + 0x9e3779b97f4a7c15ull);
	size_t bucket = (size_t)reduce64(mixed, history->buckets);

	*fingerprint = 1 + (unsigned)((mixed & UINT32_MAX) * FINGERPRINTS >> 32);
	must(bucket < history->buckets && *fingerprint <= FINGERPRINTS);
	return bucket;
}

/* The position of the fingerprint in the bucket; BUCKET_ENTRIES if it isn't there. */
static unsigned history_find(const uint16_t bucket[BUCKET_ENTRIES], unsigned fingerprint)
{
	unsigned at = 0;

	while (at < BUCKET_ENTRIES && bucket[at] >> COUNT_BITS != fingerprint)
		at++;
	return at;
}

void history_add(struct history *history, uint64_t key)
{
	unsigned fingerprint, count = 1;
	size_t number = history_bucket(history, key, &fingerprint);
	uint16_t *bucket = history->bucket[number];
	struct lock *lock = &history->lock[number % HISTORY_LOCKS];

	lock_acquire(lock);
	unsigned at = history_find(bucket, fingerprint);
	if (at < BUCKET_ENTRIES) {
		count = (bucket[at] & COUNT_MAX) + 1;
		if (count > COUNT_MAX)
			count = COUNT_MAX;
	} else {
		at = BUCKET_ENTRIES - 1;
	}
	memmove(bucket + 1, bucket, at * sizeof(*bucket));
	bucket[0] = (uint16_t)(fingerprint << COUNT_BITS | count);
	lock_release(lock);
}

unsigned history_stays(struct history *history, uint64_t key, bool *recent)
{
	unsigned fingerprint, count = 0;
	size_t number = history_bucket(history, key, &fingerprint);
	struct lock *lock = &history->lock[number % HISTORY_LOCKS];

	lock_acquire(lock);
	unsigned at = history_find(history->bucket[number], fingerprint);
	if (at < BUCKET_ENTRIES)
		count = history->bucket[number][at] & COUNT_MAX;
	lock_release(lock);
	*recent = at < BUCKET_ENTRIES / 2;
	return count;
}
