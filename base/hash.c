/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hash.h"

/* Inlined, so that short keys don't pay for a call through the library's dispatch. */
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(HASH_SECRET_BYTES >= XXH3_SECRET_SIZE_MIN, "XXH3 needs a secret of at least this size");

uint64_t hash64(const void *data, size_t length, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, length, seed);
}

uint64_t hash64_keyed(const void *data, size_t length, const uint8_t secret[HASH_SECRET_BYTES])
{
	return XXH3_64bits_withSecret(data, length, secret, HASH_SECRET_BYTES);
}
