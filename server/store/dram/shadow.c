/* SPDX-License-Identifier: BSD-3-Clause */

#include "server/store/dram/shadow.h"
#include "base/alloc.h"
#include "base/assert.h"

#define GRAIN_BYTES 64u
#define KEY_SHIFT 16 /* the bits below choose the sampled keys, the upper ones the bucket */

void shadow_init(struct shadow *shadow, uint32_t buckets)
{
	must(buckets > 0);
	*shadow = (struct shadow){ .entries = mem_must_zalloc(shadow_bytes(buckets)), .buckets = buckets };
}

void shadow_fini(struct shadow *shadow)
{
	mem_free(shadow->entries);
	shadow->entries = NULL;
}

void shadow_empty(struct shadow *shadow)
{
	for (uint64_t i = 0; i < (uint64_t)shadow->buckets * SHADOW_WAYS; i++)
		atomic_store_explicit(&shadow->entries[i], 0, memory_order_relaxed);
	atomic_store_explicit(&shadow->left_bytes, 0, memory_order_relaxed);
}

static _Atomic uint64_t *shadow_bucket(const struct shadow *shadow, uint64_t key)
{
	return &shadow->entries[reduce64(key, shadow->buckets) * SHADOW_WAYS];
}

/* An entry is never 0: its fingerprint is 1 at least. */
static uint32_t fingerprint_of(uint64_t key)
{
	return (uint32_t)(key >> KEY_SHIFT) | 1;
}

static uint32_t grains_of(uint64_t bytes)
{
	return (uint32_t)(bytes / GRAIN_BYTES);
}

void shadow_note(struct shadow *shadow, uint64_t key, uint64_t bytes)
{
	_Atomic uint64_t *bucket = shadow_bucket(shadow, key), *to = bucket;
	uint64_t left = atomic_fetch_add_explicit(&shadow->left_bytes, bytes, memory_order_relaxed) + bytes;
	uint32_t now = grains_of(left), oldest = 0;

	for (unsigned way = 0; way < SHADOW_WAYS; way++) {
		uint64_t entry = atomic_load_explicit(&bucket[way], memory_order_relaxed);
		uint32_t age = entry == 0 ? UINT32_MAX : now - (uint32_t)entry;

		if ((uint32_t)(entry >> 32) == fingerprint_of(key)) {
			to = &bucket[way];
			break;
		}
		if (age > oldest) {
			oldest = age;
			to = &bucket[way];
		}
	}
	atomic_store_explicit(to, (uint64_t)fingerprint_of(key) << 32 | now, memory_order_relaxed);
}

uint64_t shadow_since(const struct shadow *shadow, uint64_t key)
{
	const _Atomic uint64_t *bucket = shadow_bucket(shadow, key);
	uint32_t now = grains_of(atomic_load_explicit(&shadow->left_bytes, memory_order_relaxed));

	for (unsigned way = 0; way < SHADOW_WAYS; way++) {
		uint64_t entry = atomic_load_explicit(&bucket[way], memory_order_relaxed);

		if ((uint32_t)(entry >> 32) == fingerprint_of(key))
			return (uint64_t)(now - (uint32_t)entry) * GRAIN_BYTES;
	}
	return SHADOW_NEVER;
}
