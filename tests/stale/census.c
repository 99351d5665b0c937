/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A census: which keys has the daemon, and which of them did flash serve? The daemon's own count of flash hits tells, asked
 * before and behind each get that hits, while nothing else is under way.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stale/stale.h"

enum place { PLACE_NONE, PLACE_DRAM, PLACE_FLASH };

static uint8_t *noted; /* of each key: an enum place, by the last census_take */

void census_init(void)
{
	noted = calloc(keys_all(), 1);
	if (!noted)
		abort();
}

static void take_row(void *context, const char *name, const char *value)
{
	if (strcmp(name, "flash_hits") == 0)
		*(uint64_t *)context = strtoull(value, NULL, 10);
}

static uint64_t flash_hits(struct thread *thread)
{
	uint64_t hits = 0;

	thread->connected = thread->connected && wire_stats(&thread->wire, "stats flash\r\n", take_row, &hits);
	return hits;
}

/* Gets each key by itself, and tells where it was. False: the connection broke. */
static bool ask_all(uint8_t *place)
{
	struct thread *thread = &threads[THREADS_MOST];
	uint64_t flash;

	thread->connected = thread_connect(&thread->wire);
	flash = flash_hits(thread);
	for (uint32_t n = 0; n < keys_all() && thread->connected; n++) {
		uint64_t hits = thread->hits, flash_before = flash;
		char name[KEY_NAME_MOST];

		place[n] = PLACE_NONE;
		if (key_of(n)->family == FAMILY_OWNED && owned_may_expire(n))
			continue;
		key_name(n, name);
		batch_add(thread, OP_GET, n);
		wire_print(&thread->wire, "get %s\r\n", name);
		batch_run(thread);
		if (thread->hits > hits) {
			flash = flash_hits(thread);
			place[n] = flash > flash_before ? PLACE_FLASH : PLACE_DRAM;
		}
	}
	wire_fini(&thread->wire);
	return thread->connected;
}

static uint32_t count(const uint8_t *place, enum place least)
{
	uint32_t keys = 0;

	for (uint32_t n = 0; n < keys_all(); n++)
		keys += place[n] >= least;
	return keys;
}

void census_take(void)
{
	if (ask_all(noted))
		printf("census %" PRIu32 " %" PRIu32 "\n", count(noted, PLACE_DRAM), count(noted, PLACE_FLASH));
	else
		puts("census failed");
}

void census_compare(void)
{
	uint8_t *place = calloc(keys_all(), 1);
	uint32_t served = 0;

	if (!place)
		abort();
	if (ask_all(place)) {
		for (uint32_t n = 0; n < keys_all(); n++)
			served += noted[n] == PLACE_FLASH && place[n] != PLACE_NONE;
		printf("compare %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", served, count(noted, PLACE_FLASH),
		       count(place, PLACE_DRAM), count(place, PLACE_FLASH));
	} else {
		puts("compare failed");
	}
	free(place);
}
