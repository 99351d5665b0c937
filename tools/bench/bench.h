/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flashield-bench: studies that measure the daemon, its parts, and memcached beside it.
 *
 *   main ──> studies (a row each in STUDY_TABLE) ──> figures ──> tables, targets, JSON
 *                │
 *                ├─ server.h   starts flashield, memcached, memcached + extstore, pinned; CPU by pid
 *                ├─ load.h     the same load for each of them, from one pinned thread
 *                └─ raw.h      the device without a cache: libaio reads
 *
 * A study measures, adds figures (figures.h) and returns; it prints nothing itself but progress.
 * What is compared is measured in turns (A B C, A B C, ...) within one run, and reported as
 * medians over the rounds, with ratios taken within a round: a machine that slows down slows all.
 *
 * Threads: studies run one after the other in the main thread; what they start has ended when they
 * return. Errors: a study that can't be done here (no memory, no disk, no memcached) says so by
 * figures_note and returns 0; FS_* codes are for what should have worked.
 */
#ifndef FS_TOOLS_BENCH_BENCH_H
#define FS_TOOLS_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/bench/figures.h"

/* What the command line says; constant while studies run. */
struct bench_options {
	const char *flashield; /* path of the daemon: --daemon, else beside this program */
	const char *memcached; /* --memcached, else "memcached" in PATH */
	const char *slowdrive; /* --slowdrive, else slowdrive.so beside this program: the emulated drive */
	const char *directory; /* --dir: where flash files go; not on tmpfs (O_DIRECT) */
	const char *json_path; /* --json FILE: figures are written there; NULL */
	const char *base_path; /* --base FILE: an earlier run's figures to compare with; NULL */
	int server_cpu, load_cpu; /* --cpus S,L: default the first two this process may run on; -1 = unpinned */
	unsigned rounds; /* --rounds: of alternating measurements, default 3 */
	double scale; /* --scale: 1 = as the README's figures; 0.05 = a quick look. Scales
				      operations, objects and sizes where that keeps the meaning */
	bool quiet;
	/* of "device": */
	const char *device_path; /* --path: file or block device that is OVERWRITTEN; NULL */
	uint64_t device_bytes; /* --size; 0 when it isn't given */
	double device_utilisation; /* --utilisation, of device_bytes: default 0.9 */
	uint64_t device_total; /* --total: bytes written per pattern and unit; 0 when it isn't given */
	bool device_destroy; /* --overwrite: needed before a block device is touched */
};

struct bench {
	const struct bench_options *options;
	struct figures *figures;
};

/*
 * The studies, in the order they run. STUDY(name, in a plain run?, what it measures). "make bench" runs
 * the plain ones. Each is int study_<name>(struct bench *) in <name>.c.
 */
#define STUDY_TABLE(STUDY) \
	STUDY(ops, true, "sets, DRAM hits, misses, multigets, a mix: CPU, latency and rate beside memcached") \
	STUDY(flash, true, "hits from flash beside DRAM hits, raw reads and extstore") \
	STUDY(pause, true, "latency of DRAM hits while segments are written and reclaimed") \
	STUDY(capacity, true, "objects kept with little memory and much flash, extstore beside") \
	STUDY(memory, true, "resident memory while object sizes shift from 100 B to 1 KiB and back, memcached beside") \
	STUDY(threads, true, "CPU per operation and rate with 1, 2, 4, 8 worker threads, memcached beside") \
	STUDY(placement, true, "segment fill by candidates, functions and sizes, and what planning costs") \
	STUDY(index, true, "index operations, memory and false matches, 10 M to 1 G slots") \
	STUDY(instructions, false, "instructions per operation by callgrind, memcached beside") \
	STUDY(real, false, "4 GiB of DRAM, 16 GiB of flash in 512 MiB segments, filled twice over and verified") \
	STUDY(stress_overload, false, "a drive that does fewer reads than are asked for, extstore beside") \
	STUDY(stress_hang, false, "a drive that answers nothing for a while, extstore beside") \
	STUDY(stress_memory, false, "what of -m is items, small and large memories, memcached and extstore beside") \
	STUDY(stress_clwa, false, "bytes written per byte set, large objects set once, extstore beside") \
	STUDY(stress_hot, false, "one object on flash that everybody asks for, extstore beside") \
	STUDY(stress_index, false, "a guess of the objects' size far from the truth") \
	STUDY(device, false, "sequential and random writes of 1 to 512 MiB to a drive, and its counters: --path")

#define STUDY_DECLARE(name, plain, text) FS_MUST_CHECK int study_##name(struct bench *bench);
STUDY_TABLE(STUDY_DECLARE)
#undef STUDY_DECLARE

/* count * options->scale, at least low. */
uint64_t bench_scaled(const struct bench *bench, uint64_t count, uint64_t low);

/*
 * SIGINT or SIGTERM has come: by then each server has got a SIGTERM, so that loads on them break off. A
 * study that is told FS_ESYS by what it called just returns; one that works without servers asks here at
 * least once a second and returns. What was added until then is printed and kept.
 */
bool bench_interrupted(void);

/* A line on standard error unless --quiet: what is going on now. */
void bench_progress(const struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
