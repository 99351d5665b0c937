/* SPDX-License-Identifier: BSD-3-Clause */
/* What flashield-record says at its end. Threads: one. */
#ifndef FS_TOOLS_RECORD_REPORT_H
#define FS_TOOLS_RECORD_REPORT_H

#include <stdio.h>

#include "tools/record/recorder.h"

/* Prints the summary. tells_deletes: a memcached has lines for deletes. */
void report_summary(const struct recorder *recorder, bool tells_deletes, FILE *out);

/* Says on standard error what is missing from the trace, if anything is. dropped: lines that threads of the server have
   dropped meanwhile, -1: unknown. */
void report_lost(const struct recorder *recorder, int64_t dropped);

#endif
