/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that all connections increment. Each count starts, by add, above all that an earlier one can
 * have reached (its number in the upper half), and one add is under way at a time: so numbers only
 * grow. An answer to incr is above all answers that came before it was sent, and no two are equal.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/model/model.h"

#define RECENT 512

struct counter {
	pthread_mutex_t lock; /* covers all below */
	bool adding;
	uint64_t count; /* how many adds so far */
	uint64_t floor; /* highest number answered */
	uint64_t recent[RECENT], answers;
};

static struct counter *counters;

void counter_init(uint32_t count)
{
	counters = calloc(count, sizeof(*counters));
	if (!counters)
		abort();
	for (uint32_t i = 0; i < count; i++)
		pthread_mutex_init(&counters[i].lock, NULL);
}

static struct counter *acquire(uint32_t code)
{
	struct counter *counter = &counters[key_number(code)];

	pthread_mutex_lock(&counter->lock);
	return counter;
}

bool counter_begin(uint32_t code, uint64_t *first)
{
	struct counter *counter = acquire(code);
	bool free = !counter->adding;

	counter->adding = true;
	if (free)
		*first = ++counter->count << 32;
	pthread_mutex_unlock(&counter->lock);
	return free;
}

void counter_end(uint32_t code)
{
	struct counter *counter = acquire(code);

	counter->adding = false;
	pthread_mutex_unlock(&counter->lock);
}

uint64_t counter_floor(uint32_t code)
{
	struct counter *counter = acquire(code);
	uint64_t floor = counter->floor;

	pthread_mutex_unlock(&counter->lock);
	return floor;
}

void counter_number(struct conn *conn, const struct op *op, uint32_t code, uint64_t number, bool incremented)
{
	struct counter *counter = acquire(code);

	if (number < op->seen || (incremented && number == op->seen))
		violation(conn, op, code, "%" PRIu64 " was answered before the command was sent, now %" PRIu64,
			  op->seen, number);
	if (number >> 32 > counter->count)
		violation(conn, op, code, "%" PRIu64 " was never reached", number);
	if (incremented) {
		for (unsigned i = 0; i < RECENT; i++)
			if (counter->recent[i] == number)
				violation(conn, op, code, "%" PRIu64 " was answered to two increments", number);
		counter->recent[counter->answers++ % RECENT] = number;
	}
	if (number > counter->floor)
		counter->floor = number;
	pthread_mutex_unlock(&counter->lock);
}

void counter_print(uint32_t code)
{
	const struct counter *counter = &counters[key_number(code)];

	fprintf(stderr, "  counter %u: %" PRIu64 " adds, highest %" PRIu64 ", answers before:", key_number(code),
		counter->count, counter->floor);
	for (uint64_t i = counter->answers > 12 ? counter->answers - 12 : 0; i < counter->answers; i++)
		fprintf(stderr, " %" PRIu64, counter->recent[i % RECENT]);
	fprintf(stderr, "\n");
}
