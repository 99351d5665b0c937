/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash64(): the one hash of keys, seeded. xxHash (XXH3) behind one header.
 * Threads: all functions are pure, and none can fail.
 */
#ifndef FS_BASE_HASH_H
#define FS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The seed is a secret that keeps clients from choosing collisions. It is no second key: XXH3 mixes it into inputs of
   up to 16 bytes so simply that hash64(x, seed 1) may equal hash64(y, seed 2). To hash a pair, mix64() one hash with
   the other value. */
uint64_t hash64(const void *data, size_t length, uint64_t seed);

#define HASH_SECRET_BYTES 192

/* Returns a keyed check: nobody can make bytes that pass it without the secret. */
uint64_t hash64_keyed(const void *data, size_t length, const uint8_t secret[HASH_SECRET_BYTES]);

/* Mixes 64 bits: different x give different results (splitmix64's finaliser). */
static inline uint64_t mix64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	x ^= x >> 31;
	return x;
}

/* Maps a uniform 64-bit hash to [0, n) without a division. n > 0. */
static inline uint64_t reduce64(uint64_t hash, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)hash * n) >> 64);
}

#endif
