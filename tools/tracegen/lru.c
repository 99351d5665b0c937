/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tracegen/lru.h"

#include "base/alloc.h"

#define NONE UINT32_MAX

void lru_init(struct lru *lru, uint64_t keys, uint64_t capacity)
{
	*lru = (struct lru){ .newest = NONE, .oldest = NONE, .capacity = capacity };
	lru->newer = mem_must_zalloc(keys * sizeof(*lru->newer));
	lru->older = mem_must_zalloc(keys * sizeof(*lru->older));
	lru->size = mem_must_zalloc(keys * sizeof(*lru->size));
}

void lru_fini(struct lru *lru)
{
	mem_free(lru->newer);
	mem_free(lru->older);
	mem_free(lru->size);
}

static void take_out(struct lru *lru, uint32_t key)
{
	uint32_t newer = lru->newer[key], older = lru->older[key];

	*(newer == NONE ? &lru->newest : &lru->older[newer]) = older;
	*(older == NONE ? &lru->oldest : &lru->newer[older]) = newer;
}

static void put_in_front(struct lru *lru, uint32_t key)
{
	lru->newer[key] = NONE;
	lru->older[key] = lru->newest;
	*(lru->newest == NONE ? &lru->oldest : &lru->newer[lru->newest]) = key;
	lru->newest = key;
}

static void evict(struct lru *lru, uint32_t key)
{
	take_out(lru, key);
	lru->bytes -= lru->size[key];
	lru->size[key] = 0;
}

bool lru_access(struct lru *lru, uint32_t key, uint32_t bytes)
{
	if (lru->size[key] == bytes) {
		take_out(lru, key);
		put_in_front(lru, key);
		return true;
	}
	if (lru->size[key])
		evict(lru, key);
	if (bytes > lru->capacity)
		return false;
	while (lru->bytes + bytes > lru->capacity)
		evict(lru, lru->oldest);
	lru->size[key] = bytes;
	lru->bytes += bytes;
	put_in_front(lru, key);
	return false;
}
