/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of --once. */
#ifndef FS_TOOLS_TOP_ONCE_H
#define FS_TOOLS_TOP_ONCE_H

#include <stdio.h>

#include "tools/top/model.h"

/* All that is known, a line for each figure; see --help. */
void once_print(const struct model *model, FILE *out);

/* For each server that doesn't answer a line on standard error. Returns the exit status. */
int once_status(const struct model *model);

#endif
