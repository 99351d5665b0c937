/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/changed.h"

#include "base/alloc.h"

#define BITS_EACH 8u
#define LEAST_BITS 15u /* a power of two: 4 KiB */

struct changed_keys *changed_make(uint64_t objects, uint64_t most_bytes)
{
	struct changed_keys *changed;
	unsigned bits = LEAST_BITS;
	uint64_t bytes;

	while (bits < 63 && (1ull << bits) / BITS_EACH < objects && (1ull << bits) / 4 <= most_bytes)
		bits++;
	bytes = sizeof(*changed) + (1ull << bits) / 8;
	changed = mem_zalloc(bytes);
	if (!changed)
		return NULL;
	changed->shift = 64 - bits;
	changed->bytes = bytes;
	return changed;
}
