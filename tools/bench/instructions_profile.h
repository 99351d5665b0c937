/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What callgrind counted: instructions of the whole program, and of each function by itself.
 *
 * Its file gives every function a number at its first mention, then a line per source line with the cost
 * there; a line after "calls=" is the cost of what was called and belongs to the callee's own lines.
 *
 * Threads: none of its own. Ownership: profile_read fills what profile_fini frees, whatever it returned.
 */
#ifndef FS_TOOLS_BENCH_INSTRUCTIONS_PROFILE_H
#define FS_TOOLS_BENCH_INSTRUCTIONS_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct profile_function {
	char *name;
	double self; /* instructions, without those of functions that it calls */
};

struct profile {
	double total;
	struct profile_function *functions; /* one for each name, in order of name */
	size_t count;
};

/* FS_ESYS with errno: the file can't be read. FS_ECORRUPT: it isn't callgrind's, or has no total. Aborts
   when memory is out (a tool). */
FS_MUST_CHECK int profile_read(struct profile *profile, const char *path);
void profile_fini(struct profile *profile);

/* As long as it is as it was read. 0: no function has that name. */
double profile_self(const struct profile *profile, const char *name);

/* Takes off what less has, and divides by operations (> 0): what one operation costs in all, and in which
   functions, which are in order of cost then, the most expensive first. */
void profile_per_operation(struct profile *more, const struct profile *less, double operations);

#endif
