/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/dram/app_name.h"

struct app_name app_name_at_end(const char *key, size_t key_length, size_t at, uint64_t delimiters, uint64_t hash)
{
	uint64_t word = 0, matches;

	memcpy(&word, key + at, key_length - at);
	matches = app_name_matches(word, delimiters);
	if (!matches)
		return (struct app_name){ .length = 0 };
	return app_name_ends(at == 0 ? 0 : app_name_load(key), word, at, matches, hash);
}
