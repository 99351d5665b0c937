/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of flashield-replay. */
#ifndef FS_TOOLS_REPLAY_OPTIONS_H
#define FS_TOOLS_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/access.h"
#include "tools/common/trace.h"

enum replay_mode {
	MODE_LOOK_ASIDE, /* the trace's gets, sets and deletes; a get that misses is followed by a set */
	MODE_LITERAL, /* exactly what the trace says */
	MODE_GETS_ONLY, /* gets of known size alone, filling on a miss: the paper's accounting */
};

enum replay_ttl { TTL_AUTO, TTL_NONE, TTL_SCALED, TTL_REAL };

struct replay_options {
	struct access access; /* open */
	const char *trace_path;
	const char *server; /* HOST:PORT, or a path of a unix socket */
	const char *json_path;
	enum trace_format format;
	enum replay_mode mode;
	enum replay_ttl ttl;
	uint32_t copies;
	uint32_t connections;
	uint32_t threads;
	uint32_t depth; /* requests under way per connection */
	uint64_t skip; /* requests at the start that are not played */
	uint64_t limit; /* requests to play, UINT64_MAX = all */
	double speed; /* trace seconds per second; 0 = as fast as it can */
	double warmup_fraction; /* of the requests */
	int64_t warmup_us; /* of trace time; when > 0 it counts in place of the fraction */
	uint64_t timeout_us; /* for an answer of the server */
	uint32_t default_key_size; /* where the trace doesn't know */
	uint32_t default_value_size;
	bool check_values;
	bool flush_first;
	bool quiet;
};

/* Fills in *options. Ends the program on --help, --version and on an error. */
void replay_options_parse(int argc, char **argv, struct replay_options *options);

#endif
