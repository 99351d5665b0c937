/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/fuzz.h"

void require_failed(const char *expression, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, expression);
	abort();
}

char *fuzz_copy(const void *bytes, size_t length)
{
	char *copy = malloc(length + (length == 0));

	if (!copy)
		abort();
	if (length > 0)
		memcpy(copy, bytes, length);
	return copy;
}

uint64_t take_number(struct taking *from, unsigned bytes)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < bytes && from->at < from->end; i++)
		number |= (uint64_t)*from->at++ << (8 * i);
	return number;
}
