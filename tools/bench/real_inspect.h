/* SPDX-License-Identifier: BSD-3-Clause */
/* "flashield-inspect FILE verify" from a study: the tool beside the daemon, in a process of its own. */
#ifndef FS_TOOLS_BENCH_REAL_INSPECT_H
#define FS_TOOLS_BENCH_REAL_INSPECT_H

#include "tools/bench/bench.h"

struct inspection {
	bool passed; /* every check */
	double seconds;
	char summary[240]; /* its last line */
};

/* Blocks until it has ended. FS_ENOTFOUND: there is no such tool; FS_ESYS: it could not do its work. */
FS_MUST_CHECK int inspect_verify(const struct bench *bench, const char *flash_path, struct inspection *out);

#endif
