/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The filter in a segment's footer (segments/FORMAT.md, Filter). The tool asks it for keys that must be in it.
 *
 * Threads: any, read only. Ownership: a filter points into the footer's bytes.
 */
#ifndef FS_TOOLS_INSPECT_FILTER_H
#define FS_TOOLS_INSPECT_FILTER_H

#include "tools/inspect/format.h"

struct filter {
	const uint8_t *blocks;
	uint64_t block_count;
	/* Of a Bloom filter the probes, of a cuckoo filter the width. Both 0: there is no filter, or its kind is unknown and a
	   daemon ignores it. */
	unsigned probes, width;
	unsigned units; /* 0: it is whole; else blocks and probes are of each unit */
	uint64_t unit_bytes; /* from one unit to the next */
	uint64_t seed;
	uint64_t hash_seed;
};

/* Reads a filter from bytes, which is the filter's part of the footer, length bytes long. */
void filter_init(struct filter *filter, const struct format_super *super, const uint8_t *bytes, uint64_t length);

/* Returns whether the filter lets this key pass. Filters of an unknown kind let every key pass. */
bool filter_has_key(const struct filter *filter, const uint8_t *key, uint32_t length);

#endif
