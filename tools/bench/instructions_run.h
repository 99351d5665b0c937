/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server under callgrind: objects are stored, a load of so many operations runs, the server ends, and the
 * profile of its one worker is read. Two such runs with different counts differ by nothing but operations.
 *
 * The other threads are left out: what they do goes by the clock (memcached's crawls its lists, the cleaner
 * writes segments), and under valgrind the clock runs fifty times as fast for them.
 *
 * Threads: one (the load has its own).
 */
#ifndef FS_TOOLS_BENCH_INSTRUCTIONS_RUN_H
#define FS_TOOLS_BENCH_INSTRUCTIONS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/bench/instructions_profile.h"
#include "tools/bench/load.h"

struct instructions_case {
	const char *name;
	enum load_kind kind; /* LOAD_GET or LOAD_SET */
	unsigned connections, pipeline, keys_per_get;
	bool misses;
	bool flash; /* hits are to come from flash: flashield only */
};

struct instructions_counts {
	uint64_t gets, hits;
	double flash_hits; /* NaN: the server has no such figure */
};

/* FS_ENOTFOUND: there is no valgrind. FS_EINVAL: the directory's name can't be given to it. Else the codes
   of server_start, load_run and server_stop; FS_ECORRUPT: a wrong value. profile: profile_fini by the
   caller in any case. */
FS_MUST_CHECK int instructions_run(const struct bench *bench, enum server_kind kind,
				   const struct instructions_case *one, uint64_t operations, struct profile *profile,
				   struct instructions_counts *counts);

#endif
