/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts events back into the order in which the server wrote them. A server collects lines from its threads one after the
 * other, so that lines of one thread stand before older lines of the next; memcached does so after up to a second.
 *
 *   order_add ──> [ events of the last ORDER_HOLD_US, a heap by gid ] ──> order_next
 *
 * Threads: one. Ownership: fini frees all.
 */
#ifndef FS_TOOLS_RECORD_ORDER_H
#define FS_TOOLS_RECORD_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/record/line.h"

#define ORDER_HOLD_US 1500000
#define ORDER_EVENTS_MAX (1u << 19) /* beyond them the oldest leaves early */
#define APP_BYTES 24

/* A line, reduced to what a trace needs. */
struct event {
	uint64_t gid;
	int64_t time_us;
	uint64_t key; /* its name */
	char app[APP_BYTES];
	uint32_t ttl_s;
	int32_t size; /* -1: unknown */
	int32_t connection;
	uint8_t key_size;
	uint8_t kind; /* enum line_kind, GET to DELETED */
	bool found, fills, tells_tier;
	bool expired; /* it had when it came in */
};

struct order {
	struct event *events; /* a binary heap */
	size_t count, room;
	int64_t newest_us;
};

/* init allocates nothing yet. */
void order_init(struct order *order);
void order_fini(struct order *order);

/* Takes an event. Aborts when memory is out. */
void order_add(struct order *order, const struct event *event);

/* Stores the first event in *event if nothing older is to be expected, or if all is true. False if there is none. */
FS_MUST_CHECK bool order_next(struct order *order, bool all, struct event *event);

#endif
