/* SPDX-License-Identifier: BSD-3-Clause */
/* The paper's table 9 beside this run's figures. */
#ifndef FS_TOOLS_BENCH_TABLE9_H
#define FS_TOOLS_BENCH_TABLE9_H

#include "tools/bench/figures.h"

/* Adds the study "table9" from what the studies ops and flash have measured; nothing when neither has. The
   caller prints it like a study. */
void table9(struct figures *figures);

#endif
