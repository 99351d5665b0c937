/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The statistics that a trace reached, in the paper's accounting. Only gets of known size count: the
 * first get of a key is a write, a get with another size than before is an update, all others are
 * reads. A write that no read follows is unread. Hits are counted by an LRU at the scaled allocation,
 * after a seventh of the span.
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_TRACEGEN_TALLY_H
#define FS_TOOLS_TRACEGEN_TALLY_H

#include "tools/tracegen/lru.h"
#include "tools/tracegen/source.h"

struct tally {
	const struct plan *plan;
	uint64_t ops[EVENT_OPS];
	uint64_t requests;
	uint64_t keys;
	double value_bytes; /* over rows with a value */
	uint64_t value_rows;
	uint64_t reads, writes, updates, unread;
	double object_bytes; /* key + value of the writes */
	uint64_t small; /* writes of objects below 1 KB */
	uint64_t set_small; /* the same over all set rows */
	uint64_t lru_gets, lru_hits, lru_firsts; /* firsts: misses that no cache could avoid */
	struct lru lru;
	uint32_t *last_size; /* per key: key + value of the last get of known size, 0 = none */
	uint8_t *state; /* per key: bit 0 = seen, bit 1 = read after its write */
};

/* tally_init aborts when memory is out; tally_fini frees. tally_event counts one request. */
void tally_init(struct tally *tally, const struct plan *plan);
void tally_fini(struct tally *tally);
void tally_event(struct tally *tally, const struct event *event);

/* Returns the hit ratio in percent, or a negative number if nothing was counted. */
double tally_hit_percent(const struct tally *tally);

/* Returns whether the allocation holds enough objects at this scale for a meaningful hit ratio. */
bool tally_hit_counts(const struct plan *plan);

#endif
