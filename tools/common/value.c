/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/value.h"

#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"

#define PERIOD 65521u
#define HEAD_BYTES 12u

static unsigned char pattern[2 * PERIOD + 8];

void value_init(void)
{
	struct rng rng;

	rng_init(&rng, 0x666c617368u);
	for (uint32_t i = 0; i < PERIOD; i += 8) {
		uint64_t word = rng_next(&rng);

		memcpy(pattern + i, &word, 8);
	}
	memcpy(pattern + PERIOD, pattern, PERIOD);
}

size_t trace_key_write(char out[KEY_MAX_BYTES], uint64_t app_number, uint64_t ordinal, uint32_t key_size)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	char number[20];
	size_t used = 3, length = 0;

	memcpy(out, "app", 3);
	do
		number[length++] = digits[app_number % 10];
	while ((app_number /= 10) > 0);
	while (length > 0)
		out[used++] = number[--length];
	out[used++] = ':';
	do
		out[used++] = digits[ordinal % 62];
	while ((ordinal /= 62) > 0);
	if (used < key_size) {
		memset(out + used, '-', key_size - used);
		used = key_size;
	}
	return used;
}

uint64_t trace_key_hash(const char *key, size_t length)
{
	return hash64(key, length, 0);
}

static uint64_t proof_of(uint32_t length, uint64_t hash, uint32_t version)
{
	return mix64(hash ^ ((uint64_t)version << 32 | length));
}

static void write_head(unsigned char head[HEAD_BYTES], uint32_t version, uint64_t proof)
{
	memcpy(head, &version, 4);
	memcpy(head + 4, &proof, 8);
}

void value_write(char *out, uint32_t length, uint64_t hash, uint32_t version)
{
	uint64_t proof = proof_of(length, hash, version);
	const unsigned char *window = pattern + proof % PERIOD;
	unsigned char head[HEAD_BYTES];
	uint32_t at = length < HEAD_BYTES ? length : HEAD_BYTES;

	write_head(head, version, proof);
	memcpy(out, head, at);
	while (at < length) {
		uint32_t part = length - at < PERIOD ? length - at : PERIOD;

		memcpy(out + at, window, part);
		at += part;
	}
}

static bool body_matches(const char *value, uint32_t length, uint64_t proof)
{
	const unsigned char *window = pattern + proof % PERIOD;

	for (uint32_t at = HEAD_BYTES; at < length;) {
		uint32_t part = length - at < PERIOD ? length - at : PERIOD;

		if (memcmp(value + at, window, part) != 0)
			return false;
		at += part;
	}
	return true;
}

enum value_verdict value_check(const char *value, uint32_t length, uint64_t hash, uint32_t version)
{
	uint32_t head_length = length < HEAD_BYTES ? length : HEAD_BYTES, found = 0;
	unsigned char head[HEAD_BYTES];
	uint64_t proof;

	/* Below 4 bytes a version can't be read back, only compared. */
	if (length < 4) {
		write_head(head, version, 0);
		return !version || memcmp(value, head, length) == 0 ? VALUE_GOOD : VALUE_WRONG;
	}
	memcpy(&found, value, 4);
	proof = proof_of(length, hash, found);
	write_head(head, found, proof);
	if (memcmp(value, head, head_length) != 0 || !body_matches(value, length, proof))
		return VALUE_WRONG;
	if (!version || found == version)
		return VALUE_GOOD;
	return found < version ? VALUE_OLDER : VALUE_NEWER;
}
