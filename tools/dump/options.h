/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of flashield-dump. */
#ifndef FS_TOOLS_DUMP_OPTIONS_H
#define FS_TOOLS_DUMP_OPTIONS_H

#include <stdint.h>

#include "tools/common/access.h"

struct dump_options {
	struct access access; /* open */
	const char *server;
	const char *output; /* "-": standard output */
	uint64_t limit; /* objects */
	uint64_t limit_bytes; /* of keys and values */
	double rate, bandwidth; /* objects and bytes a second; 0: any */
	int64_t timeout_us;
	bool quiet;
};

/* Fills in *options. Ends the program on --help, --version and on an error. */
void dump_options_parse(int argc, char **argv, struct dump_options *options);

#endif
