/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dense ids for 64-bit hashes: the first hash gets 0, the next new one 1, and so on.
 * The table takes 12 bytes per slot at a load of at most 0.7. Two keys with equal hashes would share
 * an id; the chance of one such pair among 100 million keys is 1 in 3700.
 *
 * Threads: one. Ownership: fini frees all.
 */
#ifndef FS_TOOLS_COMMON_INTERN_H
#define FS_TOOLS_COMMON_INTERN_H

#include <stdbool.h>
#include <stdint.h>

struct intern {
	uint64_t *hashes; /* 0 marks an empty slot */
	uint32_t *ids;
	uint64_t mask;
	uint32_t count;
};

/* init aborts when memory is out. fini frees the tables. */
void intern_init(struct intern *intern);
void intern_fini(struct intern *intern);

/* Returns the id of a hash. A new hash gets the next free id. Aborts when memory is out. */
uint32_t intern_id(struct intern *intern, uint64_t hash);

#endif
