/* SPDX-License-Identifier: BSD-3-Clause */
/* What the test is asked to do. Constant once it runs. */
#ifndef MODEL_OPTIONS_H
#define MODEL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define THREADS_MAX 64
#define CONNECTIONS_MAX 256 /* of a thread */

struct options {
	char host[64];
	unsigned port;
	unsigned threads, connections; /* connections of each thread */
	uint32_t keys; /* owned ones, over all connections */
	uint32_t shared_keys, counters;
	uint32_t item_limit; /* the server's -I */
	uint32_t large; /* sizes from here on are "large" */
	uint32_t value_max; /* largest that is to be stored */
	uint64_t seed;
	double seconds;
	double wait; /* seconds more, while what is required was not reached */
	unsigned ttl_percent; /* of writes that expire within a second, beside the usual few */
	unsigned rmw_percent; /* of commands on shared keys that never are a get or a set */
	double rate; /* commands per second of each thread, 0 = all it can */
	double flush_every; /* seconds between flush_alls, 0 = none */
	double patience; /* seconds without an answer that are a failure */
	bool drops; /* connections break now and then */
	bool strict_miss; /* a value that was missed must not come back */
	const char *require; /* "flash_hits,segments_reclaimed": must be above 0 at the end */
	const char *name; /* of the configuration, for the summary */
};

extern struct options options;

/* Exits on --help and on what it does not know. */
void options_parse(int argc, char **argv);

#endif
