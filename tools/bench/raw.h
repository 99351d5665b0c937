/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device without a cache: libaio reads with O_DIRECT at random aligned offsets of a file. A flash hit is compared with
 * such a read.
 *
 * Threads: one, pinned to the CPU given, whose CPU time is reported.
 */
#ifndef FS_TOOLS_BENCH_RAW_H
#define FS_TOOLS_BENCH_RAW_H

#include <stdint.h>

#include "base/error.h"
#include "base/hist.h"

struct raw_spec {
	const char *path;
	uint64_t offset, bytes; /* the part of the file that is read from */
	uint32_t unit; /* of a read's offset and length: 512 to 4096, a power of two */
	uint32_t read_bytes; /* of each read, a multiple of unit */
	unsigned depth; /* reads in flight; reads that complete together are replaced together */
	uint64_t reads;
	int cpu; /* -1: unpinned */
	uint64_t seed;
};

struct raw_result {
	double seconds;
	uint64_t reads, cpu_ns; /* user and system of the thread */
	struct hist *latency; /* ns, from the submission to the moment when the completion is seen */
};

/* Reads as spec says. FS_EINVAL: the spec is impossible (no unit, no bytes, no depth, a part smaller than a read or not at
   a page). FS_ESYS with errno: a system call or the file failed (EINVAL: its file system knows no O_DIRECT). result is
   set in any case; fini frees its parts after FS_OK. */
FS_MUST_CHECK int raw_read(const struct raw_spec *spec, struct raw_result *result);
void raw_result_fini(struct raw_result *result);

#endif
