/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What restart.c (a state file) and recount.c (the region of a killed process) share: counts by segment.
 */
#ifndef FS_FLASHINDEX_RESTART_INTERNAL_H
#define FS_FLASHINDEX_RESTART_INTERNAL_H

#include "flashindex/index_internal.h"

#define TABLE_CLOSED FIDX_TABLES /* slots of a closed segment: they are dropped */
#define TABLE_UNKNOWN (FIDX_TABLES + 1u) /* there is no such segment */

/* By a slot's segment field: what is known of the segment, and what was counted. */
struct slot_count {
	uint32_t slots, ghosts;
	uint32_t table; /* that its slots lie in; or one of these two */
};

/* restart.c. Makes counts of zero, for the segments that are open now. The caller frees. NULL: memory is out. */
FS_MUST_CHECK struct slot_count *counts_create(const struct fidx *index);

#endif
