/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of a replay, as text for an operator and as JSON. Threads: one, after the workers have ended. */
#ifndef FS_TOOLS_REPLAY_REPORT_H
#define FS_TOOLS_REPLAY_REPORT_H

#include <stdio.h>

#include "tools/common/spool.h"
#include "tools/replay/measure.h"
#include "tools/replay/options.h"
#include "tools/replay/server_stats.h"

/* A figure that the server may not give. */
struct known {
	bool is_known;
	double value;
};

/* Figures from the server's stats: differences over the measured window, or the state at the end. */
struct server_report {
	char version[80];
	struct known cpu_us_per_request; /* user and system time of the server process */
	struct known evictions, items, bytes_used, memory_limit,
		resident_bytes; /* items and bytes_used: of both tiers */
	struct known dram_bytes_used; /* the part of bytes_used that memory_limit bounds */
	bool has_flash;
	struct known clwa, flash_bytes_written, app_bytes_written;
	struct known reads_per_hit, reads_per_miss, pages_per_read;
	struct known flash_hit_share; /* of the get hits */
	struct known flash_bytes_used, flash_limit; /* of objects; of the file */
	struct known dram_bytes_per_flash_item, flash_items, segment_fill, index_load;
	struct known read_errors, checksum_errors;
	char model[192]; /* "" = the server has no classifier */
	struct known precision, recall, trainings;
	struct known training_window_s, horizon_s;
};

struct report {
	const struct replay_options *options;
	const struct spool *spool;
	const struct measure *measure;
	struct server_report server;
	uint64_t played; /* requests with their answer, warm-up included */
	double run_seconds; /* start to end */
	double measured_seconds;
	double tool_cpu_us; /* of this tool, per request */
	double behind_seconds; /* paced: the farthest it fell behind */
	double trace_seconds; /* of trace time that were played */
	bool interrupted;
};

/* Fills in report->server from two readings, one at the start of the measured window and one at the end. */
void report_read_server(struct report *report, const struct server_stats *before, const struct server_stats *after);
/* Prints the whole report as text. */
void report_print(const struct report *report, FILE *out);

/* Prints lines on the daemon's training window and horizon. run_seconds is the run's length; an estimate of it, made
   before the end, is printed as one. */
void report_advice(const struct report *report, double run_seconds, FILE *out);

/* Writes the report as JSON. path "-" is standard output. Returns 0, or -1 with errno set. */
FS_MUST_CHECK int report_json(const struct report *report, const char *path);

#endif
