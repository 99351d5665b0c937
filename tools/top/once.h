/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of --once. */
#ifndef FS_TOOLS_TOP_ONCE_H
#define FS_TOOLS_TOP_ONCE_H

#include <stdio.h>

#include "base/error.h"
#include "tools/top/model.h"

/* Prints all known figures, one line each; see --help. */
void once_print(const struct model *model, FILE *out);

/* Prints a line on standard error for each server that doesn't answer. Returns the exit status. */
FS_MUST_CHECK int once_status(const struct model *model);

#endif
