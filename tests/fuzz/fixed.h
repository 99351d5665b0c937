/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs from run to run in the daemon, and doesn't here: the wall clock, and the bytes that rng_secret takes from
 * the kernel (they choose hashes, and so the places of objects). So an input has the same outcome whenever it is run. And
 * contexts of libaio are used again, as the kernel takes 20 ms to end one. A target whose input names files says which
 * of them may go. Targets are linked with --wrap for all of these.
 */
#ifndef FS_TESTS_FUZZ_FIXED_H
#define FS_TESTS_FUZZ_FIXED_H

#include <stdbool.h>
#include <stdint.h>

/* The same wall seconds and the same bytes from here on. */
void fixed_reset(void);
/* Other bytes than behind a reset, and other ones for each seed above 0: those of a run that comes after another. */
void fixed_reseed(uint64_t seed);
void fixed_pass(unsigned seconds);

/* From now on unlink() asks whether it may remove a path; if not, it only says that it has done so. NULL: it asks nobody. */
void fixed_on_unlink(bool (*may_unlink)(const char *path));

#endif
