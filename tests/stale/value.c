/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stale/stale.h"

uint32_t value_flags(uint64_t version)
{
	return (uint32_t)mix64(version) & 0xffff;
}

uint32_t value_length(struct rng *rng)
{
	uint64_t turn = rng_below(rng, 100);
	uint32_t most = turn < 50 ? 400 : turn < 78 ? 2000 : turn < 93 ? 9000 : options.value_max;

	return VALUE_LEAST + (uint32_t)rng_below(rng, most - VALUE_LEAST);
}

/* The word of the filler at an offset: another one for each key, version, length and offset. */
static inline uint64_t filler(uint64_t seed, uint32_t offset)
{
	return mix64(seed + offset);
}

static uint64_t filler_seed(uint32_t number, uint64_t version, uint32_t length)
{
	return mix64(mix64(version) + number) + ((uint64_t)length << 32);
}

/* What each value begins with; VALUE_LEAST bytes are enough for it. */
static uint32_t make_head(uint32_t number, uint64_t version, uint32_t length, char out[VALUE_LEAST])
{
	return (uint32_t)snprintf(out, VALUE_LEAST, "%" PRIu32 " %" PRIu64 " %" PRIu32 " ", number, version, length);
}

void value_make(uint32_t number, uint64_t version, uint32_t length, char *out)
{
	char head[VALUE_LEAST];
	uint32_t at = make_head(number, version, length, head);
	uint64_t seed = filler_seed(number, version, length);

	memcpy(out, head, at);
	for (; at < length; at += 8) {
		uint64_t word = filler(seed, at);

		memcpy(out + at, &word, length - at < 8 ? length - at : 8);
	}
}

uint64_t value_read(const struct op *op, uint32_t number, const struct shown *shown)
{
	char head[VALUE_LEAST];
	const char *space = shown->length >= VALUE_LEAST ? memchr(shown->data, ' ', 12) : NULL;
	uint32_t length = (uint32_t)shown->length, at;
	uint64_t version, seed;

	if (!space)
		violation(op, number, "torn: %zu bytes: %.40s", shown->length, shown->data);
	version = strtoull(space + 1, NULL, 10);
	at = make_head(number, version, length, head);
	if (memcmp(shown->data, head, at) != 0)
		violation(op, number, "torn, or another key's: %zu bytes: %.40s", shown->length, shown->data);
	if (shown->flags != value_flags(version))
		violation(op, number, "version %" PRIu64 " has the flags %" PRIu32, version, shown->flags);
	seed = filler_seed(number, version, length);
	for (; at < length; at += 8) {
		uint64_t word = filler(seed, at);

		if (memcmp(shown->data + at, &word, length - at < 8 ? length - at : 8) != 0)
			violation(op, number,
				  "version %" PRIu64 ": byte %" PRIu32 " or one of the next 7 of %" PRIu32 " is wrong",
				  version, at, length);
	}
	return version;
}
