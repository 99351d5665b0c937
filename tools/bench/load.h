/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load generator: one thread, pinned, non-blocking sockets and epoll, the memcached text protocol.
 *
 * Each connection has one batch under way: `pipeline` commands in one write; the next batch goes out when
 * all answers of the last are there. So requests under way = connections x pipeline. A multiget is one
 * command of keys_per_get keys.
 *
 * Keys: "bench:" and the key's number in decimal with leading zeros, key_bytes long. Values: value_bytes
 * that are a function of the key's number and are checked in hits (first and last 8 bytes and the length
 * always; every byte of one in 64), so that a server which answers fast and wrong is found out.
 *
 * Latency: from the write that completes a batch to the read that completes the command's answer; for
 * pipeline = 1 that is a request's round trip. Recorded in nanoseconds.
 *
 * Threads: load_run makes and joins its thread. Cost: it is to be well below the server's; its own CPU
 * is reported.
 */
#ifndef FS_TOOLS_BENCH_LOAD_H
#define FS_TOOLS_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "tools/bench/server.h"

enum load_kind {
	LOAD_SET,
	LOAD_GET,
	LOAD_MIXED,	/* gets with a share of sets */
	LOAD_SET_GET,	/* each key is set, then read at once: "read after they are set" */
};

enum load_order {
	LOAD_SEQUENTIAL, /* first_key, +1, ... round and round, split over the connections */
	LOAD_UNIFORM,	 /* uniform random in [first_key, first_key + keys) */
	LOAD_ZIPF,	 /* skewed, exponent 0.99, scrambled over the range */
};

struct load_spec {
	enum load_kind kind;
	enum load_order order;
	uint64_t first_key, keys;
	unsigned key_bytes;	/* 20 .. 250, default 30 when 0 */
	uint32_t value_bytes;
	uint32_t value_bytes_most; /* > value_bytes: sizes log-uniform in between, by key number */
	double set_share;	/* LOAD_MIXED */
	unsigned connections, pipeline;
	unsigned keys_per_get;	/* 1, or a multiget */
	uint64_t operations;	/* keys asked for or set; 0: until seconds are over */
	double seconds;		/* 0: until operations are done */
	double warmup_share;	/* of operations or seconds: not in any count, CPU and latency included */
	double rate;		/* operations per second, evenly paced over the connections; 0: as fast as it goes */
	uint64_t seed;
	int cpu;		/* -1: unpinned */
	bool expect_misses;	/* keys are never set: a hit is an error */
};

struct load_result {
	double seconds;		/* of the measured part */
	uint64_t operations;	/* keys; of these */
	uint64_t gets, hits, sets, stored;
	uint64_t wrong;		/* values that are not the key's */
	uint64_t errors;	/* answers that are no success (SERVER_ERROR ...); the first one's text is kept */
	char first_error[120];
	struct hist *get_latency, *set_latency; /* ns per command */
	uint64_t server_cpu_ns; /* of the server's process, over the measured part */
	uint64_t server_instructions;
	bool has_instructions;
	uint64_t load_cpu_ns;	/* the generator's own */
};

/* Runs the load to its end. FS_ESYS or FS_ECORRUPT when a connection breaks or an answer
   is no answer, with a line on standard error. result's histograms are made by it; load_result_fini frees. */
FS_MUST_CHECK int load_run(const struct load_spec *spec, struct server *server, struct load_result *result);
void load_result_fini(struct load_result *result);

/* The same in the background: for studies that look at the server meanwhile. Join fills the result. */
struct load;
FS_MUST_CHECK int load_start(struct load **out, const struct load_spec *spec, struct server *server);
bool load_running(const struct load *load);
void load_stop(struct load *load); /* asks it to end early; join afterwards */
FS_MUST_CHECK int load_join(struct load *load, struct load_result *result);

#endif
