/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What fuzz targets share. A target is fuzz_<name>.c with LLVMFuzzerTestOneInput: it hands the bytes to the code as its
 * users would and aborts where a property doesn't hold. libFuzzer calls it, or replay.c, once for each file of a corpus.
 *
 * Threads: one. State that outlives a call must not show in the next one's result.
 */
#ifndef FS_TESTS_FUZZ_FUZZ_H
#define FS_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

_Noreturn void require_failed(const char *expression, const char *file, int line);

/* A property of the code under test, whatever the input. */
#define require(expression) \
	(__builtin_expect(!!(expression), 1) ? (void)0 : require_failed(#expression, __FILE__, __LINE__))

/* A block of exactly this size, so that a sanitizer sees a byte too many. The caller frees it. Never NULL. */
char *fuzz_copy(const void *bytes, size_t length);

/* Input taken piece by piece from the front; zeros when it is used up. */
struct taking {
	const uint8_t *at, *end;
};
uint64_t take_number(struct taking *from, unsigned bytes);
static inline size_t left_of(const struct taking *from)
{
	return (size_t)(from->end - from->at);
}

#endif
