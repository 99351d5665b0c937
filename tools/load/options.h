/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of flashield-load. */
#ifndef FS_TOOLS_LOAD_OPTIONS_H
#define FS_TOOLS_LOAD_OPTIONS_H

#include <stdint.h>

#include "tools/common/access.h"

struct load_options {
	struct access access; /* open */
	const char *server;
	const char *input; /* "-": standard input */
	double rate, bandwidth; /* objects and bytes a second; 0: any */
	int64_t timeout_us;
	int64_t max_ttl_us; /* 0: as the objects have */
	bool overwrite; /* set, where otherwise add */
	bool verify; /* the file is read, and no server */
	bool quiet;
};

/* Fills in *options. Ends the program on --help, --version and on an error. */
void load_options_parse(int argc, char **argv, struct load_options *options);

#endif
