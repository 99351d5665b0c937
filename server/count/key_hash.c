/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/count/key_hash.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"

/* In the heap, which core dumps leave out. Made once, and kept until the process ends. */
static uint8_t *secret;

void key_hash_init(void)
{
	if (!secret)
		secret = mem_must_zalloc(HASH_SECRET_BYTES);
	rng_secret(secret, HASH_SECRET_BYTES);
}

uint64_t key_hash(const char *key, size_t length)
{
	return hash64_keyed(key, length, secret);
}
