/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"

#include <stdlib.h>

#include "base/log.h"

void assert_failed(const char *expression, const char *file, int line)
{
	log_error("assertion failed: %s (%s:%d)", expression, file, line);
	abort();
}
