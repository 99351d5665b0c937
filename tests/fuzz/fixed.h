/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs from run to run in the daemon, and doesn't here: the wall clock, and the bytes that rng_secret takes from
 * the kernel (they choose hashes, and so the places of objects). So an input has the same outcome whenever it is run. And
 * contexts of libaio are used again, as the kernel takes 20 ms to end one. Targets are linked with --wrap for all of these.
 */
#ifndef FS_TESTS_FUZZ_FIXED_H
#define FS_TESTS_FUZZ_FIXED_H

#include <stdbool.h>
#include <stdint.h>

/* The same wall seconds and the same bytes from here on. */
void fixed_reset(void);
void fixed_pass(unsigned seconds);

#endif
