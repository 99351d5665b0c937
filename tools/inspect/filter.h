/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Bloom filter in a segment's footer (segments/FORMAT.md, Filter): asked for keys that must be in it.
 *
 * Threads: any, read only. Ownership: points into the footer's bytes.
 */
#ifndef FS_TOOLS_INSPECT_FILTER_H
#define FS_TOOLS_INSPECT_FILTER_H

#include "tools/inspect/format.h"

struct filter {
	const uint8_t *blocks;
	uint64_t block_count;
	unsigned probes; /* 0: none is there, or of a kind that isn't known, which a daemon does without */
	uint64_t seed;
	uint64_t hash_seed;
};

void filter_init(struct filter *filter, const struct format_super *super, const uint8_t *bytes, uint64_t length);

/* Does it let this key pass? Filters of no known kind let every key pass. */
bool filter_passes(const struct filter *filter, const uint8_t *key, uint32_t length);

#endif
