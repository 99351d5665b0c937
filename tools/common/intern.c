/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/intern.h"

#include "base/alloc.h"
#include "base/assert.h"

#define FIRST_SLOTS 4096

static void intern_allocate(struct intern *intern, uint64_t slots)
{
	intern->mask = slots - 1;
	intern->hashes = mem_must_zalloc(slots * sizeof(*intern->hashes));
	intern->ids = mem_must_zalloc(slots * sizeof(*intern->ids));
}

void intern_init(struct intern *intern)
{
	intern_allocate(intern, FIRST_SLOTS);
	intern->count = 0;
}

void intern_fini(struct intern *intern)
{
	mem_free(intern->hashes);
	mem_free(intern->ids);
}

static uint64_t intern_slot_of(const struct intern *intern, uint64_t hash)
{
	uint64_t slot = hash & intern->mask;

	while (intern->hashes[slot] && intern->hashes[slot] != hash)
		slot = (slot + 1) & intern->mask;
	return slot;
}

static void intern_grow(struct intern *intern)
{
	struct intern old = *intern;

	intern_allocate(intern, (old.mask + 1) * 2);
	for (uint64_t i = 0; i <= old.mask; i++) {
		uint64_t slot;

		if (!old.hashes[i])
			continue;
		slot = intern_slot_of(intern, old.hashes[i]);
		intern->hashes[slot] = old.hashes[i];
		intern->ids[slot] = old.ids[i];
	}
	intern_fini(&old);
}

uint32_t intern_id(struct intern *intern, uint64_t hash)
{
	uint64_t slot;

	if (!hash)
		hash = 1;
	slot = intern_slot_of(intern, hash);
	if (intern->hashes[slot])
		return intern->ids[slot];
	must(intern->count < UINT32_MAX);
	if (intern->count >= (intern->mask + 1) / 10 * 7) {
		intern_grow(intern);
		slot = intern_slot_of(intern, hash);
	}
	intern->hashes[slot] = hash;
	intern->ids[slot] = intern->count;
	return intern->count++;
}
