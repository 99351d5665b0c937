/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/intern.h"

#include "base/alloc.h"
#include "base/assert.h"

#define FIRST_PLACES 4096

static void allocate(struct intern *intern, uint64_t places)
{
	intern->mask = places - 1;
	intern->hashes = mem_must_zalloc(places * sizeof(*intern->hashes));
	intern->ids = mem_must_zalloc(places * sizeof(*intern->ids));
}

void intern_init(struct intern *intern)
{
	allocate(intern, FIRST_PLACES);
	intern->count = 0;
}

void intern_fini(struct intern *intern)
{
	mem_free(intern->hashes);
	mem_free(intern->ids);
}

static uint64_t place_of(const struct intern *intern, uint64_t hash)
{
	uint64_t place = hash & intern->mask;

	while (intern->hashes[place] && intern->hashes[place] != hash)
		place = (place + 1) & intern->mask;
	return place;
}

static void grow(struct intern *intern)
{
	struct intern old = *intern;

	allocate(intern, (old.mask + 1) * 2);
	for (uint64_t i = 0; i <= old.mask; i++) {
		uint64_t place;

		if (!old.hashes[i])
			continue;
		place = place_of(intern, old.hashes[i]);
		intern->hashes[place] = old.hashes[i];
		intern->ids[place] = old.ids[i];
	}
	intern_fini(&old);
}

uint32_t intern_id(struct intern *intern, uint64_t hash)
{
	uint64_t place;

	if (!hash)
		hash = 1;
	place = place_of(intern, hash);
	if (intern->hashes[place])
		return intern->ids[place];
	must(intern->count < UINT32_MAX);
	if (intern->count >= (intern->mask + 1) / 10 * 7) {
		grow(intern);
		place = place_of(intern, hash);
	}
	intern->hashes[place] = hash;
	intern->ids[place] = intern->count;
	return intern->count++;
}
