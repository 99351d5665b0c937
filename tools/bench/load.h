/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load generator: one thread, pinned, non-blocking sockets and epoll, the memcached text protocol.
 *
 * Each connection has one batch under way: `pipeline` commands in one write. The next batch goes out when all answers
 * of the last one have come. So connections x pipeline requests are under way. A multiget is one command of
 * keys_per_get keys.
 *
 * A key is "bench:" and its number in decimal with leading zeros, key_bytes long. A value has value_bytes bytes, which
 * are a function of the key's number. Hits are checked (the first and last 8 bytes and the length always, every byte
 * for one key in 64), so that fast but wrong answers are found.
 *
 * Latency runs from the batch's first write (nearly always its only one) to the read that completes the command's
 * answer, in nanoseconds; for pipeline = 1 that is a request's round trip. With a rate, if no connection was free when
 * a batch became due, it runs from that moment (but see timed_from_sending): a server that stands still can't hide the
 * requests that it delayed.
 *
 * The phases are warm-up and then the measured part. All answers are awaited in between and at the end, so that the
 * server's CPU time over the measured part belongs to its operations only.
 *
 * Threads: load_run starts and joins its thread; the calling thread opens the connections, each with a
 * "version" and its answer. Cost: no allocation per operation, one read per turn of a connection and one
 * write per batch; values over 2 KiB are sent without a copy. The result has the generator's own CPU time.
 */
#ifndef FS_TOOLS_BENCH_LOAD_H
#define FS_TOOLS_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/hist.h"

/* The server under load, on a loopback port. The CPU time of process pid is read; 0: it is not read. */
struct load_server {
	uint16_t port;
	pid_t pid;
};

enum load_kind {
	LOAD_SET,
	LOAD_GET,
	LOAD_MIXED, /* gets with a share of sets */
	LOAD_SET_GET, /* each key is set, then read at once: "read after they are set" */
};

enum load_order {
	LOAD_SEQUENTIAL, /* first_key, +1, ... round and round, split over the connections */
	LOAD_UNIFORM, /* uniform random in [first_key, first_key + keys) */
	LOAD_ZIPF, /* skewed by zipf_exponent, scrambled over the range */
};

struct load_spec {
	enum load_kind kind;
	enum load_order order;
	uint64_t first_key, keys;
	unsigned key_bytes; /* 16 .. 250, 0 is 30; numbers must fit its last key_bytes - 6 digits */
	uint32_t value_bytes; /* below 16 a value has less than two stamps, below 8 less than one */
	uint32_t value_bytes_most; /* > value_bytes: sizes log-uniform in between, by key number */
	double set_share; /* LOAD_MIXED: of the commands */
	double zipf_exponent; /* LOAD_ZIPF: above 0, not 1; 0 is 0.99 */
	unsigned connections, pipeline; /* 0 is 1 */
	unsigned keys_per_get; /* 1 (or 0), or a multiget */
	uint64_t operations; /* keys asked for or set, warm-up included, exactly these (LOAD_SET_GET:
				rounded up to even); 0: until seconds are over */
	double seconds; /* 0: until operations are done */
	double warmup_share; /* of operations or seconds: not in any count, CPU and latency included; only
				`wrong` counts from the start */
	double rate; /* operations per second, evenly paced over the connections; 0: as fast as it goes.
			Operations / seconds and the latencies show a server that is too slow for it */
	bool timed_from_sending; /* with a rate: latency never runs from an earlier moment. Of a server that can't
				    ever keep the rate, the wait for a free connection says how long the load has
				    run, and no more */
	uint64_t seed;
	int cpu; /* -1: unpinned */
	bool urgent; /* its thread goes before others of its CPU, where this process may ask for that: a few
			       requests that are to be timed beside a heavy load */
	double silence_seconds; /* a server without any answer for so long has failed; 0: 60 */
	bool expect_misses; /* keys were never set, so a hit is wrong */
};

struct load_result {
	double seconds; /* of the measured part */
	uint64_t operations; /* keys; of these */
	uint64_t gets, hits, sets, stored; /* misses: gets - hits - those of errors */
	uint64_t wrong; /* hits whose value isn't the key's; among hits */
	uint64_t errors; /* commands answered by SERVER_ERROR ..., which is how a multiget ends then too.
			    The text of the first one, or what was wrong first, is kept */
	char first_error[120];
	struct hist *get_latency, *set_latency; /* ns per command */
	struct hist *hit_latency; /* ns per get of which at least one key was a hit */
	uint64_t server_cpu_ns; /* of the server's process, over the measured part */
	uint64_t load_cpu_ns; /* the generator's own */
};

/* Runs the load to its end. FS_EINVAL: the spec contradicts itself (no operations and no seconds, no keys, numbers that
   don't fit the key, an exponent of 1 or below 0). FS_ESYS: a connection can't be made or breaks, or nothing was answered for silence_seconds.
   FS_ECORRUPT: an answer is no answer. Both come with a line on standard error; result then holds the counts up to
   there. It makes result's histograms; load_result_fini frees them, whatever was returned. */
FS_MUST_CHECK int load_run(const struct load_spec *spec, const struct load_server *server, struct load_result *result);
void load_result_fini(struct load_result *result);

/* load_start runs a load in the background, for studies that look at the server meanwhile. load_join waits for its end,
   fills the result and frees the load. The caller calls it exactly once, before it stops the server. */
struct load;
FS_MUST_CHECK int load_start(struct load **out, const struct load_spec *spec, const struct load_server *server);
bool load_running(const struct load *load);
/* Resets all counts like the end of the warm-up, but amid the load: requests under way continue and count when they are
   answered. It serves servers whose queues must be full when the count begins. Takes effect within a second. */
void load_forget(struct load *load);
void load_stop(struct load *load); /* ends the load early, within a second; call load_join afterwards */
/* Waits for the end of the load. Signals may still stop it or reset its counts meanwhile. */
void load_wait(struct load *load);
FS_MUST_CHECK int load_join(struct load *load, struct load_result *result);

#endif
