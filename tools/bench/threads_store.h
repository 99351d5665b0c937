/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of study "threads" that drives the store in this process: no network, no protocol. */
#ifndef FS_TOOLS_BENCH_THREADS_STORE_H
#define FS_TOOLS_BENCH_THREADS_STORE_H

#include "tools/bench/bench.h"

/* Gets and sets of objects in DRAM from each number of threads, in rounds; adds rows "store get, N threads" to
   the study. counts are ascending. FS_ENOMEM, FS_ESYS: it can't be done; FS_ECORRUPT: a wrong value. */
FS_MUST_CHECK int threads_store(struct bench *bench, const char *study, const unsigned *counts, size_t count);

#endif
