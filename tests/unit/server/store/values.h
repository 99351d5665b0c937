/* SPDX-License-Identifier: BSD-3-Clause */
/* Values made from a few numbers, and what their hashes are; seed and length of a random test. */
#ifndef FS_TESTS_STORE_VALUES_H
#define FS_TESTS_STORE_VALUES_H

#include "base/rng.h"
#include "harness.h"

#define VALUE_MAX 24000

static inline uint64_t number_in_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* Of a length that is small most of the time; no two are the same. */
static inline uint32_t make_value(struct rng *rng, unsigned key, char value[VALUE_MAX])
{
	uint64_t dice = rng_below(rng, 100);
	uint32_t length = dice < 90   ? 1 + (uint32_t)rng_below(rng, 500)
			  : dice < 98 ? (uint32_t)rng_below(rng, 6000)
				      : (uint32_t)rng_below(rng, VALUE_MAX);
	char head[40];

	memset(value, 'a' + (int)(key % 26), length);
	snprintf(head, sizeof(head), "v%u:%llx:", key, (unsigned long long)rng_next(rng));
	memcpy(value, head, length < strlen(head) ? length : strlen(head));
	return length;
}

/* Numbers as incr and decr leave them: digits, and spaces where there were more. */
static inline uint64_t hash_number(uint64_t number, uint32_t length)
{
	char text[24];
	int digits = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);

	while ((uint32_t)digits < length)
		text[digits++] = ' ';
	return hash64(text, (size_t)digits, 0);
}

static inline uint32_t digits_of(uint64_t number)
{
	uint32_t digits = 1;

	while (number /= 10)
		digits++;
	return digits;
}

#endif
