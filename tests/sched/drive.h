/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated drive under the engine: a device (segments/device_internal.h) in memory that outlives the process, with
 * latencies of its own and the faults of real ones.
 *
 *   submitted --latency--> done: it is in `now` --flush--> it is in `durable`
 *
 * A process that is killed leaves what it has submitted, as the drive finishes it. A power cut leaves `durable`, and each
 * sector that is not there yet by chance.
 *
 * Faults of reads and writes hit segments alone: with a superblock that lies no engine can tell what is true.
 */
#ifndef FS_TESTS_SCHED_DRIVE_H
#define FS_TESTS_SCHED_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

struct dev;

#define DRIVE_BAD_MOST 8u
#define DRIVE_HANGS_S 32u /* longer than a request that hangs takes */

/* Each of 1,000,000 requests. */
struct drive_options {
	uint32_t latency_ns, tail; /* tail: takes 50 times as long */
	uint32_t read_eio, read_flip, again;
	uint32_t write_eio, write_torn, write_lost, write_misdirected,
		write_bad; /* bad: a sector of it can't be read */
	uint32_t flush_eio;
	uint32_t hang; /* takes 2 to 30 s */
};

struct drive {
	uint64_t bytes, segments_from; /* where segments begin */
	uint8_t *now, *durable; /* shared with the processes of later lives */
	uint64_t *written; /* of each page: the number of its last write; 0: it is durable */
	uint64_t writes;
	struct drive_options options;
	bool armed; /* requests may have faults */
	struct rng rng;
	uint64_t bad[DRIVE_BAD_MOST]; /* offsets of sectors that can't be read; 0: none */
	uint64_t reads, faults; /* done; of them with a fault, writes too */
};

/* Makes an empty drive in shared memory. */
void drive_make(struct drive *drive, uint64_t bytes, uint64_t segments_from);
void drive_free(struct drive *drive);
/* Returns the device, for one life of the engine, which closes it. */
struct dev *drive_open(struct drive *drive);
/* From now on requests of this life may have faults. */
void drive_arm(struct drive *drive);
/* From now on they have none. Sectors that can't be read stay so until they are written. */
void drive_heal(struct drive *drive);
/* The process that has it open ends now: its requests are finished. */
void drive_outlives(struct drive *drive);
/* The power fails now. */
void drive_power_cut(struct drive *drive);
/* Has the drive requests that are not done? */
bool drive_is_busy(const struct drive *drive);

#endif
