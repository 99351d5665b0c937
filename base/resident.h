/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the process has of the machine's memory, and what it is: the kernel's figures beside the allocator's, so that an
 * account of all parts can be checked against what is resident.
 *
 * Threads: any.
 */
#ifndef FS_BASE_RESIDENT_H
#define FS_BASE_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

/* In bytes. What the kernel doesn't tell is 0. */
struct resident {
	uint64_t all; /* of the process: VmRSS */
	uint64_t files; /* programs and libraries, with their own data, and what else is mapped from files */
	uint64_t stacks; /* of threads */
};

/* The first of them alone: some microseconds. */
uint64_t resident_bytes(void);

/* Does it tell what the program's own memory takes? Not under a sanitizer, whose shadow and quarantine are resident too. */
bool resident_is_exact(void);

/* Reads the list of mappings: some hundred microseconds, whatever the process holds. */
void resident_read(struct resident *out);

/* Of private memory, the bytes in whole pages that were never touched, so that they are not resident. Asks for
   each page; of more than 2 GiB, for some of them. */
uint64_t resident_untouched(const void *memory, uint64_t bytes);

#endif
