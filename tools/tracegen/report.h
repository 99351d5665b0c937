/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the statistics that the trace reached beside the published ones. */
#ifndef FS_TOOLS_TRACEGEN_REPORT_H
#define FS_TOOLS_TRACEGEN_REPORT_H

#include <stdio.h>

#include "tools/tracegen/options.h"
#include "tools/tracegen/tally.h"

/* Prints to out. tallies has one for each chosen application, in app_table's order; left_out is the number of rows that
   the format has no word for. */
void tracegen_report(const struct tracegen_options *options, const struct tally *tallies, uint32_t count,
		     uint64_t left_out, FILE *out);

#endif
