/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applications: the prefix of a key up to the delimiter names its application. The first 64 names get numbers of their
 * own, in the order in which they come; all others share number 0. Names with equal 64-bit hashes count as one.
 */
#include <string.h>

#include "base/assert.h"
#include "classifier/classifier_internal.h"

/* The number of the application, or 0 with *slot the free slot where its name would go. Takes no lock. */
static unsigned apps_find(struct apps *apps, uint64_t hash, size_t *slot)
{
	for (*slot = hash % APPS_SLOTS;; *slot = (*slot + 1) % APPS_SLOTS) {
		uint64_t seen = atomic_load_explicit(&apps->hash[*slot], memory_order_acquire);
		if (seen == hash)
			return atomic_load_explicit(&apps->id[*slot], memory_order_relaxed);
		if (seen == 0)
			return 0; /* this ends, as at most half of the slots are ever taken */
	}
}

/* The number of the application, which gets one if there is one left; else 0. */
static unsigned apps_add(struct apps *apps, uint64_t hash)
{
	size_t slot;

	lock_acquire(&apps->lock);
	unsigned id = apps_find(apps, hash, &slot);
	uint32_t count = atomic_load_explicit(&apps->count, memory_order_relaxed);
	if (id == 0 && count < CLF_APPS - 1) {
		id = count + 1;
		must(id < CLF_APPS && atomic_load_explicit(&apps->hash[slot], memory_order_relaxed) == 0);
		atomic_store_explicit(&apps->id[slot], id, memory_order_relaxed);
		atomic_store_explicit(&apps->hash[slot], hash, memory_order_release);
		atomic_store_explicit(&apps->count, id, memory_order_release);
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
	/* Asked before the look: if no name could come any more, a name that isn't found has no number. */
	bool full = atomic_load_explicit(&apps->count, memory_order_acquire) == CLF_APPS - 1;
	unsigned id = apps_find(apps, hash, &slot);
	return id != 0 || full ? id : apps_add(apps, hash);
}
