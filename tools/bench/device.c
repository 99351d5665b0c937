/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "device": what a drive makes of sequential and random writes in units of 1 to 512 MiB (the
 * Flashield paper's figure 1): speed, and device-level write amplification by the drive's own counters.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "tools/bench/bench.h"
#include "tools/bench/device.h"
#include "tools/bench/smart.h"
#include "tools/common/args.h"
#include "tools/common/text.h"

#define STUDY "device"
#define MIB (1ull << 20)
#define FILL_BYTES (8 * MIB)
#define COUNTERS_AT_ALL "write counters that could be read"

static const unsigned units_mib[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 };
static const char *const pattern_names[] = {
	[DEVICE_SEQUENTIAL] = "sequential",
	[DEVICE_RANDOM] = "random",
};

struct run {
	struct bench *bench;
	struct device_target target;
	uint64_t span_bytes, total_bytes;
	char drive[SMART_NAME_BYTES]; /* "" if none is known */
	bool counts_host, counts_nand;
	double step_bytes;
};

/* ---- the drive's counters -------------------------------------------------------------------- */

static void note_no_counters(const struct run *run, const char *what, const char *why)
{
	figures_note(run->bench->figures, STUDY,
		     "This drive reports no %s%s%s%s: device-level write amplification can't be measured "
		     "here.",
		     what, *why ? " (" : "", why, *why ? ")" : "");
}

/* What the drive counts is found out once; when it tells nothing, it isn't asked again. */
static void look_at_drive(struct run *run)
{
	char why[SMART_WHY_BYTES];
	struct smart_counters counters;

	if (smart_find_drive("/sys", major(run->target.number), minor(run->target.number), run->drive) != FS_OK) {
		run->drive[0] = '\0';
		note_no_counters(run, COUNTERS_AT_ALL, "no single drive lies below");
		return;
	}
	if (smart_read(run->drive, &counters, why) != FS_OK) {
		figures_note(run->bench->figures, STUDY, "The drive is /dev/%s.", run->drive);
		note_no_counters(run, COUNTERS_AT_ALL, why);
		return;
	}
	figures_note(run->bench->figures, STUDY, "The drive is /dev/%s, %s.", run->drive,
		     counters.model[0] ? counters.model : "of an unknown model");
	run->counts_host = !isnan(counters.host_bytes);
	run->counts_nand = smart_counts_nand(&counters);
	run->step_bytes = counters.step_bytes;
	if (!run->counts_nand)
		note_no_counters(run, run->counts_host ? "NAND write counters" : COUNTERS_AT_ALL, why);
	else
		figures_note(run->bench->figures, STUDY, "The drive's counters: %s.", counters.source);
}

/* A count in steps of a GiB says little about a few of them. */
static void note_coarse_steps(const struct run *run)
{
	char step[TEXT_BYTES];

	if (run->counts_nand && run->step_bytes > 0.02 * (double)run->total_bytes)
		figures_note(run->bench->figures, STUDY,
			     "The drive counts in steps of %s: its figures are good to %.0f %%; a larger "
			     "--total is better.",
			     text_size(run->step_bytes, step), 100 * run->step_bytes / (double)run->total_bytes);
}

static void read_counters(const struct run *run, struct smart_counters *counters)
{
	char why[SMART_WHY_BYTES];

	smart_clear(counters);
	if ((run->counts_host || run->counts_nand) && smart_read(run->drive, counters, why) != FS_OK)
		smart_clear(counters);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int write_failed(const struct run *run)
{
	int error = errno;

	if (!bench_interrupted())
		fprintf(stderr, "flashield-bench: %s: %s\n", run->bench->options->device_path, strerror(error));
	errno = error;
	return FS_ESYS;
}

static int measure(const struct run *run, enum device_pattern pattern, unsigned unit_mib)
{
	struct figures *figures = run->bench->figures;
	struct device_job job = {
		.pattern = pattern,
		.unit_bytes = unit_mib * MIB,
		.span_bytes = run->span_bytes,
		.total_bytes = run->total_bytes,
		.seed = unit_mib,
	};
	struct smart_counters before, after;
	struct device_written written;
	char row[48];

	snprintf(row, sizeof(row), "%s, %u MiB", pattern_names[pattern], unit_mib);
	bench_progress(run->bench, "device: %s", row);
	read_counters(run, &before);
	if (device_write(&run->target, &job, &written) != FS_OK)
		return write_failed(run);
	read_counters(run, &after);
	figures_add(figures, STUDY, row, "mb_s", (double)written.bytes / 1e6 / written.seconds);
	if (run->counts_host)
		figures_add(figures, STUDY, row, "host_share",
			    smart_host_bytes(&before, &after) / (double)written.bytes);
	if (run->counts_nand)
		figures_add(figures, STUDY, row, "dlwa", smart_amplification(&before, &after));
	return FS_OK;
}

/* All of the used space holds data before anything is measured, as in a cache that is full. */
static int fill(const struct run *run)
{
	struct device_job job = {
		.unit_bytes = run->span_bytes % FILL_BYTES == 0 ? FILL_BYTES : MIB,
		.span_bytes = run->span_bytes,
		.total_bytes = run->span_bytes,
	};
	struct device_written written;
	char size[TEXT_BYTES];

	bench_progress(run->bench, "device: filling %s", text_size((double)run->span_bytes, size));
	return device_write(&run->target, &job, &written) == FS_OK ? FS_OK : write_failed(run);
}

static int measure_pattern(const struct run *run, enum device_pattern pattern)
{
	int rc = FS_OK;

	for (size_t i = 0; i < sizeof(units_mib) / sizeof(units_mib[0]) && rc == FS_OK; i++) {
		if (units_mib[i] * MIB > run->span_bytes) {
			figures_note(run->bench->figures, STUDY,
				     "Units of %u MiB and more are larger than the space that is used.", units_mib[i]);
			break;
		}
		rc = measure(run, pattern, units_mib[i]);
	}
	return rc;
}

static int write_all(const struct run *run)
{
	int rc = fill(run);

	if (rc == FS_OK)
		rc = measure_pattern(run, DEVICE_SEQUENTIAL);
	if (rc == FS_OK)
		rc = measure_pattern(run, DEVICE_RANDOM);
	return rc;
}

/* ---- the study ------------------------------------------------------------------------------- */

static void describe(const struct run *run)
{
	struct figures *figures = run->bench->figures;
	char explanation[768], size[TEXT_BYTES], total[TEXT_BYTES];

	snprintf(explanation, sizeof(explanation),
		 "%s: %.0f %% of its %s are broken into regions of one unit; each write overwrites one with "
		 "random data (O_DIRECT): in order and round again, or a random one. %s per row; --rounds "
		 "doesn't count here. Host: bytes written by the drive's count per byte written here (more than "
		 "1: others write too). NAND: bytes written to flash per byte of the host. The paper's drive "
		 "(Intel 535, 480 GB, 90 %% used, 4 TB per row): nearly 8 for random units of 1 MB, 1 from 8 MB "
		 "sequential and 512 MB random on.",
		 run->bench->options->device_path, 100 * run->bench->options->device_utilisation,
		 text_size((double)run->target.bytes, size), text_size((double)run->total_bytes, total));
	figures_study(figures, STUDY, "Writes of large units to the drive itself", explanation);
	figures_column(figures, "mb_s", "MB/s", -1);
	figures_column(figures, "host_share", "host", 3);
	figures_column(figures, "dlwa", "NAND", 3);
}

/* Whole units of what fills it, of the smallest unit when there is less than one. */
static uint64_t used_space(uint64_t bytes, double utilisation)
{
	uint64_t used = (uint64_t)((double)bytes * utilisation);

	return used - used % (used < FILL_BYTES ? MIB : FILL_BYTES);
}

int study_device(struct bench *bench)
{
	const struct bench_options *options = bench->options;
	struct run run = { .bench = bench };
	char error[DEVICE_ERROR_BYTES];
	int rc;

	if (!options->device_path)
		arg_die("device: --path names the file or block device that is overwritten; --size, "
			"--utilisation and --total say how much, --overwrite that what it holds may go");
	rc = device_open(&run.target, options->device_path, options->device_bytes, options->device_destroy, error);
	if (rc != FS_OK)
		arg_die("device: %s", error);
	run.span_bytes = used_space(run.target.bytes, options->device_utilisation);
	run.total_bytes = options->device_total ? options->device_total : run.target.bytes;
	if (run.span_bytes == 0)
		arg_die("device: %s: %.0f %% of it are less than the smallest unit, 1 MiB", options->device_path,
			100 * options->device_utilisation);
	describe(&run);
	look_at_drive(&run);
	note_coarse_steps(&run);
	rc = write_all(&run);
	device_close(&run.target);
	return rc;
}
