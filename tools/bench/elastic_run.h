/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters of fixed size beside filter units that come and go (ElasticBF), at equal memory, by gets of which half are for
 * keys that were never written. Two kinds of segments:
 *
 *   levels   sorted tables of an LSM tree, as in the paper: levels of which each is ten times the one before, no tags. A get
 *            asks the filter of one table in each level, the smallest level first, until it has met its key.
 *   slots    our index, full to 0.95: a get asks the filters of the slots that have its tag.
 *
 * A filter that passes is a read; flash itself is not there. The units are the engine's own, and the queues that choose
 * them too. Of levels each access of a table counts, as in the paper; of slots those in vain, as in the daemon.
 *
 * Threads: the calling one.
 */
#ifndef FS_TOOLS_BENCH_ELASTIC_RUN_H
#define FS_TOOLS_BENCH_ELASTIC_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct elastic_shape {
	bool levels; /* else slots */
	uint32_t segments; /* or tables: 2 .. 16383 */
	uint64_t keys_each; /* at least 1 */
	unsigned tag_bits; /* of slots: 2 .. as many as segments leave */
	unsigned bits; /* of filters, per key on average; 0: none */
	unsigned units; /* of a filter: 0, or 2 .. 8 */
	double exponent; /* of the Zipf distribution of keys, not 1; 0: uniform */
	bool learns; /* known collisions are kept (slots) */
};

struct elastic_cost {
	uint64_t gets;
	uint64_t reads; /* of records, those in vain included */
	uint64_t in_vain; /* of other keys' records */
	uint64_t in_vain_absent; /* of these, by gets of keys that were never written */
	uint64_t loads; /* of units */
	double filter_bits; /* in memory per key, at the end */
};

/* Builds segments of the shape and makes so many gets. FS_EINVAL, FS_ENOMEM. FS_ECORRUPT: a key that was written was not
   found. */
FS_MUST_CHECK int elastic_run(const struct elastic_shape *shape, uint64_t gets, struct elastic_cost *out);

#endif
