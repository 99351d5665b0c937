/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of flashield-tracegen. */
#ifndef FS_TOOLS_TRACEGEN_OPTIONS_H
#define FS_TOOLS_TRACEGEN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/apps.h"
#include "tools/common/trace.h"

struct tracegen_options {
	double scale; /* of the published requests, keys and allocations */
	uint64_t seed;
	double span_s;
	enum trace_format format;
	const char *output;
	bool chosen[APP_COUNT];
	bool fit;
	bool quiet;
};

/* Fills in *options. Ends the program on --help, --version and on an error. */
void tracegen_options_parse(int argc, char **argv, struct tracegen_options *options);

#endif
