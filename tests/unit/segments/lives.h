/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and stops over one memory, and what each of them finds: for tests of what outlives a start. */
#ifndef FS_TESTS_SEGMENTS_LIVES_H
#define FS_TESTS_SEGMENTS_LIVES_H

#include "tests/unit/segments/fixture.h"

#define LIFE_SEGMENT (64u << 10)
#define LIFE_BYTES (LAYOUT_SUPER_BYTES + 2 * LIFE_SEGMENT)

struct life {
	uint8_t uuid[16];
	uint8_t secret[HASH_SECRET_BYTES];
	uint64_t hash_seed, first_cas, epoch, sequence;
};

/* One start and stop over LIFE_BYTES of memory, with so many CAS ids reserved. */
struct life live_once(uint8_t *memory, uint64_t cas_count);
/* Have both the same UUID? */
bool same_flash(const struct life *a, const struct life *b);

#endif
