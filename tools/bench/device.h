/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of the study "device" (device.c): what is written to, and the writing.
 *
 * After section 2.1 of the Flashield paper: the first `span_bytes` of the target are broken into regions
 * of one unit each. Sequential: regions in order of their addresses, and round again. Random: a region
 * is drawn each time. Each write overwrites one whole region with random data, O_DIRECT.
 *
 * Threads: one. Ownership: device_open's target is closed by device_close.
 */
#ifndef FS_TOOLS_BENCH_DEVICE_H
#define FS_TOOLS_BENCH_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define DEVICE_ERROR_BYTES 256

struct device_target {
	int fd;
	uint64_t bytes;
	dev_t number; /* of the block device that it is, or lies on */
	bool is_block;
};

/*
 * Opens path O_DIRECT for writing. A path that isn't there becomes a file of `size` bytes, which has no
 * name from the start, so that no end of the bench leaves it behind. What is there is touched only with
 * `overwrite`: a file, or a block device that nobody uses (it is held exclusively: EBUSY if mounted).
 * size 0: what the file or the device has, 4 GiB for a new file. An error is told in words: FS_EINVAL for
 * what isn't accepted, FS_EFULL when the file system has no such room, FS_ESYS.
 */
FS_MUST_CHECK int device_open(struct device_target *target, const char *path, uint64_t size, bool overwrite,
			      char error[DEVICE_ERROR_BYTES]);
void device_close(struct device_target *target);

enum device_pattern { DEVICE_SEQUENTIAL, DEVICE_RANDOM };

struct device_job {
	enum device_pattern pattern;
	uint64_t unit_bytes; /* a multiple of 4 KiB */
	uint64_t span_bytes; /* at least a unit; what is left over beyond whole units is not written */
	uint64_t total_bytes; /* rounded up to whole units */
	uint64_t seed;
};

struct device_written {
	uint64_t bytes;
	double seconds; /* in write calls and the closing fdatasync: making the data is not in it */
};

/* FS_EINVAL: a job that can't be. FS_ESYS, with errno: a write failed; EINTR: the run was interrupted. */
FS_MUST_CHECK int device_write(const struct device_target *target, const struct device_job *job,
			       struct device_written *written);

#endif
