/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes events as rows of Memcachier's columns or ours, plain, or gzip if the name ends with ".gz".
 * Threads: one. Errors end the program with a message.
 */
#ifndef FS_TOOLS_TRACEGEN_OUTPUT_H
#define FS_TOOLS_TRACEGEN_OUTPUT_H

#include "tools/common/trace.h"
#include "tools/tracegen/source.h"

struct output;

/* Opens the output; output_close frees it. path "-" is standard output; format: TRACE_FLASHIELD or TRACE_MEMCACHIER. */
struct output *output_open(const char *path, enum trace_format format);

/* Returns whether the format has a word for the operation. Our columns know only get, set (an add is written as a set)
   and delete. */
bool output_takes(const struct output *output, enum event_op op);

/* Writes one row. output_takes must be true of its operation. */
void output_event(struct output *output, const struct event *event, uint32_t app_id, uint64_t key);

/* Flushes and closes. */
void output_close(struct output *output);

#endif
