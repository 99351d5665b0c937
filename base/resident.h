/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process's resident memory by the kernel's figures. An account of all parts can be checked against them, beside
 * the allocator's figures (base/alloc.h).
 *
 * Threads: any, but not for a request: each function reads from /proc. Errors: a figure that the kernel does not give
 * is 0.
 */
#ifndef FS_BASE_RESIDENT_H
#define FS_BASE_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

/* In bytes. */
struct resident {
	uint64_t all; /* VmRSS */
	uint64_t files; /* program and libraries with their data, and all other mappings of files */
	uint64_t stacks; /* the threads' stacks */
};

/* Returns the figure `all` alone. Takes some microseconds. */
uint64_t resident_bytes(void);

/* Is the resident memory the program's own? Under a sanitizer it isn't, as shadow and quarantine are resident too. */
bool resident_is_exact(void);

/* Reads all three figures. They come from the list of mappings, which takes some hundred microseconds, however much the
   process holds. */
void resident_read(struct resident *out);

/* Returns the bytes of private memory that lie in whole pages that were never touched, and so are not resident. Asks
   the kernel about each page, and about a part of them if there are more than 2 GiB. */
uint64_t resident_untouched(const void *memory, uint64_t bytes);

#endif
