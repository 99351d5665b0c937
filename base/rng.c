/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rng.h"

#include <errno.h>
#include <sys/random.h>

#include "base/assert.h"

void rng_secret(void *bytes, size_t length)
{
	uint8_t *cursor = bytes;

	while (length > 0) {
		ssize_t got = getrandom(cursor, length, 0);

		if (got < 0) {
			must(errno == EINTR);
			continue;
		}
		must((size_t)got <= length);
		cursor += got;
		length -= (size_t)got;
	}
}
