/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A number that stands for a key in reports that show no keys. The same key has the same number until the daemon ends; the
 * next start has others. The store's own hashes are never shown: from some of them its seed could be computed, by which a
 * client could choose keys that collide.
 *
 * Threads: any; key_hash_init runs alone.
 */
#ifndef FS_SERVER_COUNT_KEY_HASH_H
#define FS_SERVER_COUNT_KEY_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Draws a new secret, by which all numbers change. */
void key_hash_init(void);
/* Returns the number of a key of length bytes. */
uint64_t key_hash(const char *key, size_t length);

#endif
