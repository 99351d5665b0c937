/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The name of a key's application, read by words of eight bytes: each set looks for it while there are limits, so that
 * calls of memchr and memcmp would be a tenth of the set.
 *
 *   key   s h o p - e u - 2 : c a r t : 1 7        delimiter ':'
 *         |--- first ---| |-last- ...              last = "2:" and zeros, length = 9
 *
 *   key   s h o p : c a r t : 1 7                  first = last = "shop:" and zeros, length = 4
 *
 * The delimiter is in the last word, so that zeros in a key are no end. No byte behind the key is read.
 *
 * Threads: the functions are pure.
 */
#ifndef FS_STORE_APP_NAME_H
#define FS_STORE_APP_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a word's first byte is its lowest");

#define APP_NAME_WORD sizeof(uint64_t)
#define APP_NAME_EACH_BYTE 0x0101010101010101ull
#define APP_NAME_HASH_FACTOR 0x9e3779b97f4a7c15ull

struct app_name {
	size_t length; /* bytes; 0: the key has no name */
	uint64_t first; /* its first word */
	uint64_t
		last; /* the bytes behind its whole words, the delimiter and zeros; the first word of names of 0 .. 7 bytes */
	uint64_t hash; /* the upper bits are the better ones */
};

/* Returns the whole word at text. */
static inline uint64_t app_name_load(const char *text)
{
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	return word;
}

/* Returns a hash of words: of what came before, and one more. Names come from the operator, so nobody can choose
   collisions. */
static inline uint64_t app_name_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * APP_NAME_HASH_FACTOR;
	return hash ^ hash >> 32;
}

/* Returns the highest bit of each byte of the word that is a byte of this repeated word. Only the lowest one is sure. */
static inline uint64_t app_name_matches(uint64_t word, uint64_t repeated)
{
	uint64_t zero_where = word ^ repeated;

	return (zero_where - APP_NAME_EACH_BYTE) & ~zero_where & 0x80 * APP_NAME_EACH_BYTE;
}

/* Returns the name whose last word begins at `at` of its text, and has these matches. */
static inline struct app_name app_name_ends(uint64_t first, uint64_t word, size_t at, uint64_t matches, uint64_t hash)
{
	uint64_t last = word & (matches ^ (matches - 1)); /* up to and with the lowest match */

	return (struct app_name){ .length = at + (unsigned)__builtin_ctzll(matches) / 8,
				  .first = at == 0 ? last : first,
				  .last = last,
				  .hash = (hash ^ last) * APP_NAME_HASH_FACTOR };
}

/* Does the same for a key whose bytes from `at` on, fewer than a word, may have the delimiter. For app_name_of alone. */
struct app_name app_name_at_end(const char *key, size_t key_length, size_t at, uint64_t delimiters, uint64_t hash);

/* Returns the name that ends before the key's first delimiter, which is not 0. delimiters: eight of them; longest: names
   of more bytes are of no interest, and may come out as none. */
static inline struct app_name app_name_of(const char *key, size_t key_length, uint64_t delimiters, size_t longest)
{
	uint64_t hash = 0, word, matches;

	for (size_t at = 0; at + APP_NAME_WORD <= key_length; at += APP_NAME_WORD) {
		word = app_name_load(key + at);
		matches = app_name_matches(word, delimiters);
		if (matches)
			return app_name_ends(app_name_load(key), word, at, matches, hash);
		if (at + APP_NAME_WORD > longest)
			return (struct app_name){ .length = 0 };
		hash = app_name_mix(hash, word);
	}
	return app_name_at_end(key, key_length, key_length - key_length % APP_NAME_WORD, delimiters, hash);
}

/* Have the texts of a name of this length, which agree in first and last, the same words between these? */
static inline bool app_name_same_middle(size_t length, const char *a, const char *b)
{
	for (size_t at = APP_NAME_WORD; at + APP_NAME_WORD <= length; at += APP_NAME_WORD)
		if (app_name_load(a + at) != app_name_load(b + at))
			return false;
	return true;
}

#endif
