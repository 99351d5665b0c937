/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of flashield-record. */
#ifndef FS_TOOLS_RECORD_OPTIONS_H
#define FS_TOOLS_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/access.h"

enum record_apps { APPS_HASH, APPS_NAME, APPS_NONE };

struct record_options {
	struct access access; /* open */
	const char *server;
	const char *output;
	const char *salt; /* NULL: a random secret */
	int64_t duration_us; /* 0: no end */
	int64_t fill_window_us;
	int64_t timeout_us;
	uint64_t limit; /* requests */
	double sample; /* the share of the keys that is recorded, above 0, at most 1 */
	enum record_apps apps;
	char delimiter; /* behind the application's name in a key */
	bool quiet;
};

/* Fills in *options. Ends the program on --help, --version and on an error. */
void record_options_parse(int argc, char **argv, struct record_options *options);

#endif
