/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names for keys that tell nothing of them: SipHash-2-4 of the key under a secret. Whoever lacks the secret can neither
 * find the key nor test a guess. hash64() of base/hash.h wouldn't do: a known key would give its seed away.
 *
 * Threads: one. Ownership: fini frees all.
 */
#ifndef FS_TOOLS_RECORD_NAMES_H
#define FS_TOOLS_RECORD_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct names {
	struct evp_mac_ctx_st *context;
};

/* salt NULL: a random secret, which is forgotten with the names. A salt makes the secret, so that equal salts give equal
   names. Ends the program when the library lacks the hash. */
void names_init(struct names *names, const char *salt);
void names_fini(struct names *names);

/* Returns the 64-bit name of the bytes. Two of 100 million keys share one with a chance of 1 in 3700. */
uint64_t names_of(const struct names *names, const void *bytes, size_t length);

#endif
