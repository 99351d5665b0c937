/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that speaks as much of the protocol as the load generator does, and lies on demand.
 *
 * Threads: one of its own between fake_start and fake_join. Its counts are read after fake_join, but for
 * `served`, which may be waited on meanwhile. It ends by itself when all its connections are closed.
 */
#ifndef FS_TESTS_UNIT_BENCH_FAKE_SERVER_H
#define FS_TESTS_UNIT_BENCH_FAKE_SERVER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/bench/load.h"

#define FAKE_KEYS 4096

enum fake_lie {
	FAKE_HONEST,
	FAKE_FLIPS_BYTE, /* of the value, at lie_at */
	FAKE_SHORTENS, /* one byte less, announced as such */
	FAKE_TRUNCATES, /* one byte less than announced */
	FAKE_OTHER_VALUE, /* the value of the next key */
	FAKE_OTHER_KEY, /* an answer for the next key */
	FAKE_HAS_FLAGS, /* flags that nobody set */
	FAKE_REPEATS_VALUE,
	FAKE_SERVER_ERROR, /* instead of the answer, or of the rest of it */
	FAKE_ANSWERS_TWICE, /* a second END */
	FAKE_UNKNOWN_LINE,
	FAKE_ENDLESS_LINE,
	FAKE_BARE_NEWLINE, /* a line without CR */
	FAKE_CLOSES, /* in the middle of a value */
	FAKE_REFUSES_EARLY, /* a set: SERVER_ERROR before its value has come */
};

struct fake_server {
	/* what it does; set before fake_start */
	const struct load_spec *spec; /* whose values it has */
	uint64_t present_first, present_keys;
	enum fake_lie lie;
	uint64_t lie_key; /* the key that it lies about */
	uint32_t lie_at;
	unsigned piece; /* answers leave in pieces of so many bytes; 0: as a whole */
	/* what it saw */
	uint64_t gets, get_keys, sets, bad_sets;
	uint32_t asked[FAKE_KEYS], set[FAKE_KEYS]; /* times, by number - spec->first_key */
	uint64_t read_back; /* gets of a key that had been set before */
	uint64_t most_pipelined, longest_get;
	bool senseless; /* it met a line that is no command */
	sem_t served; /* posted for each command */
	/* private: */
	struct load_server server;
	int listener;
	pthread_t thread;
};

/* Listens and starts the thread; fake->server is then fit for load_run. Fails the test if it can't. */
void fake_start(struct fake_server *fake);
void fake_join(struct fake_server *fake);

#endif
