/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush_all. What was carried out before it was sent is gone once it is acknowledged; with a delay, once that is over too.
 * A flush_all takes the place of one that is pending, so that one thread makes them, one after the other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/stale/stale.h"

#define SECOND_NS 1000000000ull

_Atomic uint64_t flushes;

static uint64_t *over; /* of each key, at the last look */

static void look(uint64_t *out)
{
	for (uint32_t n = 0; n < keys_all(); n++)
		out[n] = atomic_load(&key_of(n)->over);
}

static void all_gone(void)
{
	for (uint32_t n = 0; n < keys_all(); n++)
		key_gone(n, over[n]);
	atomic_fetch_add(&flushes, 1);
}

/* Waits in small steps. False: the end. */
static bool wait_until(uint64_t ns)
{
	while (now_ns() < ns) {
		if (!pause_point())
			return false;
		usleep(5000);
	}
	return pause_point();
}

/* What is carried out until shortly before the delayed flush is gone with it: its second may begin up to 1 s early. */
static bool look_again_until(uint64_t ns, uint64_t *scratch)
{
	while (now_ns() + SECOND_NS / 10 < ns) {
		look(scratch);
		if (now_ns() < ns) {
			uint64_t *swap = over;

			memcpy(swap, scratch, keys_all() * sizeof(*over));
		}
		if (!pause_point())
			return false;
		usleep(20000);
	}
	return true;
}

static bool flush(struct wire *wire, unsigned delay, uint64_t *scratch)
{
	uint64_t sent_ns = now_ns();
	const char *line;

	look(over);
	if (delay)
		wire_print(wire, "flush_all %u\r\n", delay);
	else
		wire_print(wire, "flush_all\r\n");
	line = wait_line(wire);
	if (!line)
		return false; /* carried out or not: nothing follows */
	if (strcmp(line, "OK") != 0)
		violation(NULL, UINT32_MAX, "flush_all was answered with \"%s\"", line);
	if (delay) {
		uint64_t over_ns = now_ns() + delay * SECOND_NS + SLACK_NS;

		if (!look_again_until(sent_ns + (delay - 1) * SECOND_NS, scratch) || !wait_until(over_ns))
			return true;
	}
	all_gone();
	return true;
}

void *flush_run(void *context)
{
	struct wire wire = { .fd = -1 };
	uint64_t *scratch = calloc(keys_all() + 1, sizeof(*scratch));
	bool connected = false;
	struct rng rng;

	over = calloc(keys_all() + 1, sizeof(*over));
	if (!over || !scratch)
		abort();
	rng_init(&rng, options.seed ^ 0xf1);
	while (wait_until(now_ns() + rng_below(&rng, 2ull * options.flush_ms * 1000000 + 1))) {
		unsigned delay = rng_below(&rng, 4) ? 0 : 1 + (unsigned)rng_below(&rng, 3);

		while (!connected && pause_point()) {
			connected = thread_connect(&wire);
			if (!connected)
				usleep(10000);
		}
		if (connected && !flush(&wire, delay, scratch)) {
			wire_fini(&wire);
			connected = false;
		}
	}
	wire_fini(&wire);
	free(scratch);
	return context;
}
