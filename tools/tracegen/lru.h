/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An LRU cache of bytes over an application's keys. It counts like the paper's authors: a get of known
 * size is an access of key + value bytes, and a changed size is a miss.
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_TRACEGEN_LRU_H
#define FS_TOOLS_TRACEGEN_LRU_H

#include <stdbool.h>
#include <stdint.h>

struct lru {
	uint32_t *newer, *older, *size; /* per key; size 0 = not cached */
	uint32_t newest, oldest;
	uint64_t bytes, capacity;
};

/* init aborts when memory is out; fini frees. capacity in bytes; keys lie in 0 .. keys - 1. */
void lru_init(struct lru *lru, uint64_t keys, uint64_t capacity);
void lru_fini(struct lru *lru);

/* Returns true for a hit; a miss inserts the key. bytes > 0. */
bool lru_access(struct lru *lru, uint32_t key, uint32_t bytes);

#endif
