/* SPDX-License-Identifier: BSD-3-Clause */
/* The ghost list: which keys were here lately, in a bounded table of fingerprints. */
#include <string.h>

#include "base/alloc.h"
#include "classifier/classifier_internal.h"

#define WAYS 32
#define COUNT_BITS 4
#define COUNT_MAX 15u
#define FINGERPRINTS 4095 /* 1 to 4095; an entry of 0 is free */

int ghost_init(struct ghost *ghost, size_t memory_bytes)
{
	ghost->buckets = memory_bytes / sizeof(*ghost->bucket);
	if (ghost->buckets == 0)
		return FS_EINVAL;
	ghost->bucket = mem_aligned(64, ghost->buckets * sizeof(*ghost->bucket));
	if (!ghost->bucket)
		return FS_ENOMEM;
	memset(ghost->bucket, 0, ghost->buckets * sizeof(*ghost->bucket));
	for (unsigned i = 0; i < GHOST_LOCKS; i++)
		lock_init(&ghost->lock[i], LOCK_LEAF);
	return FS_OK;
}

void ghost_fini(struct ghost *ghost)
{
	if (!ghost->bucket)
		return;
	for (unsigned i = 0; i < GHOST_LOCKS; i++)
		lock_fini(&ghost->lock[i]);
	mem_free(ghost->bucket);
	ghost->bucket = NULL;
}

/*
 * The sampler takes the keys with the lowest mixed hashes, so the bucket comes from a second mix:
 * otherwise sampled keys would share few buckets and see a younger list than the others.
 */
static size_t ghost_place(const struct ghost *ghost, uint64_t key, unsigned *fingerprint)
{
	uint64_t mixed = mix64(key + 0x9e3779b97f4a7c15ull);

	*fingerprint = 1 + (unsigned)((mixed & UINT32_MAX) * FINGERPRINTS >> 32);
	return (size_t)reduce64(mixed, ghost->buckets);
}

static unsigned ghost_find(const uint16_t bucket[WAYS], unsigned fingerprint)
{
	unsigned way = 0;

	while (way < WAYS && bucket[way] >> COUNT_BITS != fingerprint)
		way++;
	return way;
}

void ghost_add(struct ghost *ghost, uint64_t key)
{
	unsigned fingerprint, count = 1;
	size_t place = ghost_place(ghost, key, &fingerprint);
	uint16_t *bucket = ghost->bucket[place];
	struct lock *lock = &ghost->lock[place % GHOST_LOCKS];

	lock_acquire(lock);
	unsigned way = ghost_find(bucket, fingerprint);
	if (way < WAYS) {
		count = (bucket[way] & COUNT_MAX) + 1;
		if (count > COUNT_MAX)
			count = COUNT_MAX;
	} else {
		way = WAYS - 1;
	}
	memmove(bucket + 1, bucket, way * sizeof(*bucket));
	bucket[0] = (uint16_t)(fingerprint << COUNT_BITS | count);
	lock_release(lock);
}

unsigned ghost_stays(struct ghost *ghost, uint64_t key, bool *recent)
{
	unsigned fingerprint, count = 0;
	size_t place = ghost_place(ghost, key, &fingerprint);
	struct lock *lock = &ghost->lock[place % GHOST_LOCKS];

	lock_acquire(lock);
	unsigned way = ghost_find(ghost->bucket[place], fingerprint);
	if (way < WAYS)
		count = ghost->bucket[place][way] & COUNT_MAX;
	lock_release(lock);
	*recent = way < WAYS / 2;
	return count;
}
