/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From lines to the file, and what was counted on the way.
 *
 *   line ──> event with hashes, if the key is in the sample ──> order ──> rows ──> output
 *
 * Threads: one. Ownership: fini frees all but the output.
 */
#ifndef FS_TOOLS_RECORD_RECORDER_H
#define FS_TOOLS_RECORD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/record/distinct.h"
#include "tools/record/names.h"
#include "tools/record/options.h"
#include "tools/record/order.h"
#include "tools/record/output.h"
#include "tools/record/rows.h"

/* Requests are those in the file. */
struct recorder_counts {
	uint64_t lines; /* of the server, skipped ones not counted */
	uint64_t broken; /* lines that made no sense */
	uint64_t skipped; /* lines that the server said it had skipped */
	uint64_t outside; /* lines of keys outside of the sample */
	uint64_t gets, hits, sets, deletes;
	uint64_t unknown; /* gets that missed and whose size nothing told */
	int64_t first_us, last_us; /* of the first and the last request; first_us -1: there was none */
};

struct recorder {
	const struct record_options *options;
	struct output *output;
	struct names names;
	struct order order;
	struct rows rows;
	struct recorder_counts counts;
	struct distinct keys, apps;
	bool is_flashield; /* a line showed it */
	char last_broken[80]; /* the start of a line that made no sense; printable */
};

/* Borrows options and output. init ends the program with a message when the hash is missing. */
void recorder_init(struct recorder *recorder, const struct record_options *options, struct output *output);
void recorder_fini(struct recorder *recorder);

/* Takes a line of the server without its end. */
void recorder_line(struct recorder *recorder, const char *line, size_t length);

/* Writes all that has come so far: for a server that is quiet, and for the end. */
void recorder_settle(struct recorder *recorder);

/* Returns the requests in the file. */
uint64_t recorder_requests(const struct recorder *recorder);

#endif
