/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker's answers: one JSON object per line on standard output, each flushed at once.
 *
 *   {"trace": {...}}                       what was read
 *   {"progress": share, "done": n}         of all runs together
 *   {"result": {"run": n, ...}}            of a run, the names in tools/sim/README.md
 *   {"error": text, "run": n}              why a run could not be played
 *
 * Threads: one. Aborts when memory is out (a tool).
 */
#ifndef FS_TOOLS_SIM_REPORT_H
#define FS_TOOLS_SIM_REPORT_H

#include <jansson.h>

#include "tools/sim/spec.h"

/* Prints {kind: value} and takes the reference. */
void report_line(const char *kind, json_t *value);
void report_trace(const struct spool *spool, const struct spec_working_set *set);
void report_progress(double share, size_t done);

/* Prints the object of a run as it came from its process; text is JSON. */
void report_run(const char *text);
void report_error(size_t number, const char *text);

/* The result as one object, which the caller owns. */
json_t *report_result(const struct sim_run *run, const struct sim_result *result, const char *policy, size_t number);

#endif
