/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applications: the prefix of a key up to the delimiter names one. The first 64 names get numbers
 * of their own, in the order in which they come; all others share number 0. Names are told apart
 * by their 64-bit hash only.
 */
#include <string.h>

#include "classifier/classifier_internal.h"

static unsigned apps_find(struct apps *apps, uint64_t hash, size_t *slot)
{
	for (*slot = hash % APPS_SLOTS;; *slot = (*slot + 1) % APPS_SLOTS) {
		uint64_t seen = atomic_load_explicit(&apps->hash[*slot], memory_order_acquire);
		if (seen == hash)
			return atomic_load_explicit(&apps->id[*slot], memory_order_relaxed);
		if (seen == 0)
			return 0; /* at most half of the slots are ever taken: this ends */
	}
}

static unsigned apps_add(struct apps *apps, uint64_t hash)
{
	size_t slot;

	lock_acquire(&apps->lock);
	unsigned id = apps_find(apps, hash, &slot);
	uint32_t count = atomic_load_explicit(&apps->count, memory_order_relaxed);
	if (id == 0 && count < CLF_APPS - 1) {
		id = count + 1;
		atomic_store_explicit(&apps->id[slot], id, memory_order_relaxed);
		atomic_store_explicit(&apps->hash[slot], hash, memory_order_release);
		atomic_store_explicit(&apps->count, id, memory_order_relaxed);
	}
	lock_release(&apps->lock);
	return id;
}

unsigned clf_app(struct clf *clf, const char *key, size_t key_length)
{
	struct apps *apps = &clf->apps;
	size_t slot;

	if (clf->config.app_delimiter == '\0' || key_length == 0)
		return 0;
	const char *end = memchr(key, clf->config.app_delimiter, key_length);
	if (!end)
		return 0;

	uint64_t hash = hash64(key, (size_t)(end - key), clf->config.seed);
	if (hash == 0)
		hash = 1;
	unsigned id = apps_find(apps, hash, &slot);
	if (id != 0 || atomic_load_explicit(&apps->count, memory_order_relaxed) == CLF_APPS - 1)
		return id;
	return apps_add(apps, hash);
}
