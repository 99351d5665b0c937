/* SPDX-License-Identifier: BSD-3-Clause */
/* The block of a chain, for the files that make and read one. */
#ifndef FS_FRUGAL_CHAIN_INTERNAL_H
#define FS_FRUGAL_CHAIN_INTERNAL_H

#include "flashindex/frugal/frugal_internal.h"

/* Where the parts lie, in bytes from the block's beginning; columns come first. */
struct chain_layout {
	uint64_t segment, places, end;
};
struct chain_layout chain_layout(uint32_t partitions, uint32_t columns, uint32_t segments);
/* Fills in the process's part of the chain that a row names. False: its sizes don't fit into its block. */
FS_MUST_CHECK bool chain_fill(const struct frugal *frugal, struct chain_row *row, struct chain *out);
/* Do all places lie within their segments, in order? For a chain of an earlier process. */
FS_MUST_CHECK bool chain_is_sound(const struct frugal *frugal, const struct chain *chain);
/* Notes which segments the present chain is in; NULL: none. */
void chain_mark(struct frugal *frugal, const struct chain *chain);

#endif
