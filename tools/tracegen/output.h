/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events to rows of Memcachier's columns or ours, plain or gzip (by the name's ".gz").
 * Threads: one. Errors end the program with a message.
 */
#ifndef FS_TOOLS_TRACEGEN_OUTPUT_H
#define FS_TOOLS_TRACEGEN_OUTPUT_H

#include "tools/common/trace.h"
#include "tools/tracegen/source.h"

struct output;

/* path "-" is standard output; format: TRACE_FLASHIELD or TRACE_MEMCACHIER. */
struct output *output_open(const char *path, enum trace_format format);

/* Whether the format has a word for it: our columns know get, set (an add is written as one) and
   delete only. */
bool output_takes(const struct output *output, enum event_op op);

/* One row, of an operation that it takes. */
void output_event(struct output *output, const struct event *event, uint32_t app_id, uint64_t key);

/* Flushes and closes. */
void output_close(struct output *output);

#endif
