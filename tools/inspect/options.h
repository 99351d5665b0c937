/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line. Threads: the main thread, at start-up. */
#ifndef FS_TOOLS_INSPECT_OPTIONS_H
#define FS_TOOLS_INSPECT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum inspect_command { COMMAND_LIST, COMMAND_VERIFY, COMMAND_FIND, COMMAND_DUMP, COMMAND_SEGMENT, COMMAND_STATE };

/* Options of the daemon that decide how it would start. */
struct inspect_start {
	const char *state_dir;
	const char *region_dir; /* NULL: none */
	uint64_t memory_bytes;
	uint64_t flash_bytes, segment_bytes; /* 0: auto */
	uint64_t object_bytes;
	int64_t max_downtime_us;
	uint32_t tag_bits; /* 0: auto */
	uint32_t functions;
	int journal; /* 0: off, 1: sync */
	int clock_mode; /* 0: lru, 1: mfu */
	int index; /* 0: slots, 1: frugal */
};

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
	struct inspect_start start; /* of state */
};

/* Fills in *options. Ends the program with 0 on --help and --version, with EXIT_TROUBLE on an error. */
void inspect_options_parse(int argc, char **argv, struct inspect_options *options);

#endif
