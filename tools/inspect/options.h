/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line. Threads: the main thread, at start-up. */
#ifndef FS_TOOLS_INSPECT_OPTIONS_H
#define FS_TOOLS_INSPECT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum inspect_command { COMMAND_LIST, COMMAND_VERIFY, COMMAND_FIND, COMMAND_DUMP, COMMAND_SEGMENT };

struct inspect_options {
	const char *path;
	enum inspect_command command;
	const char *key; /* of find and dump; NULL: dump by segment and offset */
	uint32_t key_length;
	uint32_t segment; /* of dump and segment */
	uint64_t offset; /* of dump */
	bool live; /* list: look through all keys */
	bool records; /* segment: list them */
	bool raw; /* dump: the value alone */
	bool json, quiet;
	unsigned threads;
	int64_t uptime_s; /* of the daemon; -1: not given */
};

/* Fills in *options. Ends the program with 0 on --help and --version, with EXIT_TROUBLE on an error. */
void inspect_options_parse(int argc, char **argv, struct inspect_options *options);

#endif
