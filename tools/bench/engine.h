/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measurements of the engine without a server. Figures and notes go out by report.h.
 *
 * Threads: the calling one; engine_store starts threads of its own. Errors: FS_ENOMEM, FS_EINVAL, FS_ESYS: the
 * measurement failed; FS_ECORRUPT: a wrong value, or fewer matches than there must be.
 */
#ifndef FS_TOOLS_BENCH_ENGINE_H
#define FS_TOOLS_BENCH_ENGINE_H

#include <stdint.h>

#include "base/error.h"
#include "tools/bench/ablation_run.h"
#include "tools/bench/chain_run.h"
#include "tools/bench/elastic_run.h"
#include "tools/bench/index_run.h"

/* Measures gets and sets of objects in DRAM by 1, 2, 4 and 8 threads on a store, in rounds, without network and
   protocol. */
FS_MUST_CHECK int engine_store(unsigned rounds, uint64_t keys, uint64_t operations);

/* Measures how full segments of three sizes get, for each placement, by candidates, functions and sizes of objects. */
FS_MUST_CHECK int engine_placement(unsigned rounds, uint64_t full_bytes, uint64_t steady_bytes, uint64_t table_bytes);

/* Measures the cost of operations on an index of a shape, as one row. */
FS_MUST_CHECK int engine_index(const char *row, const struct index_shape *shape, unsigned rounds, uint64_t operations);

/* Measures lookups in an index of a shape, as one row, once the flash has been full and was written so many times over
   (at least once). */
FS_MUST_CHECK int engine_ablation(const char *row, const struct ablation_shape *shape, unsigned turns, unsigned rounds,
				  uint64_t lookups);

/* Measures the reads of so many gets through filters of a shape, as one row; reads are given for a million gets. */
FS_MUST_CHECK int engine_elastic(const char *row, const struct elastic_shape *shape, uint64_t gets);

/* Measures searches in records of a chain of a shape, as one row. */
FS_MUST_CHECK int engine_chain(const char *row, const struct chain_shape *shape, uint64_t searches);

#endif
