/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that are unique per (copy, application, key), and values that prove themselves.
 *
 *   key    "app" number ":" base-62 of (key * copies + copy), padded with '-' to the key size
 *   value  bytes 0-3   version, little-endian
 *          bytes 4-11  proof: a mix of the key's hash, the version and the value's length
 *          the rest    a window of a fixed pattern of 65 521 bytes; the proof says where it starts
 *
 * A shorter value is cut off at its length: below 12 bytes the proof is weaker, below 4 bytes only
 * the low bytes of the version are there. The pattern's period is a prime, so that a value whose
 * parts were moved by any power of two is found out.
 *
 * Threads: constant after value_init.
 */
#ifndef FS_TOOLS_COMMON_VALUE_H
#define FS_TOOLS_COMMON_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KEY_MAX_BYTES 250

enum value_verdict {
	VALUE_GOOD,
	VALUE_OLDER, /* this key's, but of an earlier version */
	VALUE_NEWER, /* this key's, but of a version not written yet */
	VALUE_WRONG, /* another key's, of another length, or damaged */
};

/* Builds the pattern; call it before any other thread uses values. */
void value_init(void);

/* Writes the key's text into out (no NUL). Returns its length: key_size, or more if the text needs more. */
size_t trace_key_write(char out[KEY_MAX_BYTES], uint64_t app_number, uint64_t ordinal, uint32_t key_size);

/* Returns the hash of a key, which goes into its values. */
uint64_t trace_key_hash(const char *key, size_t length);

/* Writes the value of a key and version, of the given length. */
void value_write(char *out, uint32_t length, uint64_t hash, uint32_t version);

/* Compares a value with the one that the key should have. version 0 accepts any version (this run has not written the
   key yet). */
FS_MUST_CHECK enum value_verdict value_check(const char *value, uint32_t length, uint64_t hash, uint32_t version);

#endif
