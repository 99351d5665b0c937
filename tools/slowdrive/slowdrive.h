/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A slow, hanging or failing drive under an unmodified program: build/slowdrive.so, loaded by LD_PRELOAD.
 *
 *   LD_PRELOAD=build/slowdrive.so SLOWDRIVE_FILE=/cache/flash SLOWDRIVE_CONTROL=/tmp/control flashield ...
 *
 *   the program ── io_submit, pread, pwrite ... ──> a queue per direction ──> one thread ──> the real call
 *                                                        ▲                       │
 *   a test or the bench ── maps the control file ──> struct slowdrive  <── counters
 *
 * Only I/O on the file SLOWDRIVE_FILE is affected. A request waits in the shim until the emulated drive would
 * complete it. Then an asynchronous request goes to the kernel, and a synchronous caller goes on. So a request
 * takes the emulated time plus the time of the real drive.
 *
 * The emulated drive serves each direction in order of arrival. A request takes 1/rate in its direction's only
 * server, and then the latency, during which the server works on the next requests. At most `parallel` requests
 * are in server and latency at a time. A flush (fsync, fdatasync) is a write of no bytes.
 *
 * The creator of the control file writes SLOWDRIVE_MAGIC and zeros, of sizeof(struct slowdrive) bytes in all,
 * before the program starts. Zeros change nothing. A program whose control file can't be mapped, or has another
 * size or magic, ends with status 127. The struct has the same layout for other languages: 64-bit words in the
 * order given here.
 *
 * Threads: each field is atomic; the creator writes the settings, the shim the counters. A change of the
 * settings reaches waiting requests within SLOWDRIVE_LOOK_MS. Requests that are in service by then keep their time.
 *
 * Limits: asynchronous requests other than IOCB_CMD_PREAD, PREADV, PWRITE and PWRITEV are not affected, nor are
 * read, write, mmap and io_uring. A descriptor that dup2 puts over an open one counts as its predecessor. A program
 * that waits for held requests before it ends waits until the hang is off. The thread's CPU time counts as the
 * program's: about 5 us per request.
 */
#ifndef FS_TOOLS_SLOWDRIVE_SLOWDRIVE_H
#define FS_TOOLS_SLOWDRIVE_SLOWDRIVE_H

#include <stdint.h>

#define SLOWDRIVE_MAGIC 0x31767264776f6c73ull /* "slowdrv1", little-endian */
#define SLOWDRIVE_LOOK_MS 5
/* Requests held per direction. With a full queue io_submit takes no more, and other callers wait for room. */
#define SLOWDRIVE_QUEUE 8192

/* One direction. All durations and rates are the emulated drive's. */
struct slowdrive_side {
	/* Settings, by the creator of the file: */
	_Atomic uint64_t per_second; /* of reads: requests; of writes: bytes. 1 .. 10^9; 0: no limit */
	_Atomic uint64_t latency_us; /* 0 .. 10^9 */
	_Atomic uint64_t parallel; /* 1 .. SLOWDRIVE_QUEUE / 2; 0: no limit */
	_Atomic uint64_t hang; /* 1: no request completes until it is 0 again; no request is lost */
	_Atomic uint64_t fail_per_mille; /* of requests that fail with EIO when they are due, 0 .. 1000 */
	/* Counters, by the shim: */
	_Atomic uint64_t done; /* requests that went on to the real drive, or failed */
	_Atomic uint64_t bytes; /* of the requests in done */
	_Atomic uint64_t failed; /* by fail_per_mille; among done */
	_Atomic uint64_t held; /* requests in the shim now */
	_Atomic uint64_t held_most; /* the largest `held` so far; the creator may reset it */
};

struct slowdrive {
	uint64_t magic; /* SLOWDRIVE_MAGIC */
	_Atomic uint64_t attached; /* the program's pid, set by the shim when it is loaded */
	struct slowdrive_side reads, writes;
};

_Static_assert(sizeof(struct slowdrive) == 22 * sizeof(uint64_t), "as other languages know it");

#endif
