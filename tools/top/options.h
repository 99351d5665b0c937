/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of flashield-top. Ends the program on bad usage, --help and --version. */
#ifndef FS_TOOLS_TOP_OPTIONS_H
#define FS_TOOLS_TOP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/access.h"
#include "tools/top/screen.h"

/* The range of intervals, also of those chosen by keys. */
#define INTERVAL_LEAST_US 100000
#define INTERVAL_MOST_US 60000000

struct top_options {
	const char *servers[SERVERS_MAX]; /* borrowed from argv */
	unsigned server_count;
	struct access access; /* open */
	int64_t interval_us;
	int64_t timeout_us;
	enum view view;
	enum app_column sort;
	bool once;
	bool ascii;
};

/* Fills in *options. */
void top_options_parse(int argc, char **argv, struct top_options *options);

#endif
