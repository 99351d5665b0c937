/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace's file: rows in the format "flashield" of tools/common/trace.h, plain, or compressed if the name ends with
 * ".gz". A compressed file is a sequence of gzip members, each of which is written when it is complete. So the file is
 * whole at any time: when a write fails, what it wrote in part is cut off again.
 *
 * Threads: one. Errors: the first failure is kept; rows after it are dropped.
 */
#ifndef FS_TOOLS_RECORD_OUTPUT_H
#define FS_TOOLS_RECORD_OUTPUT_H

#include "base/error.h"
#include "tools/record/rows.h"

struct output;

/* Opens the file and empties it. path "-" is standard output. Ends the program with a message if it can't. close writes
   what is left, closes the file and frees the output; FS_OK, or FS_ESYS with a message in error. */
struct output *output_open(const char *path);
int output_close(struct output *output, char error[256]) FS_MUST_CHECK;

/* Writes a row. start_us is the time that the trace calls 0. Blocks for I/O. */
void output_row(struct output *output, const struct row *row, int64_t start_us);

/* Writes what it has, so that a reader of the file finds it. Blocks for I/O. */
void output_flush(struct output *output);

/* Returns whether a write has failed. */
bool output_failed(const struct output *output);

#endif
