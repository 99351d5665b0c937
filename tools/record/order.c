/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/order.h"

#include "base/alloc.h"
#include "base/assert.h"

#define FIRST_EVENTS 4096

void order_init(struct order *order)
{
	*order = (struct order){ .newest_us = INT64_MIN };
}

void order_fini(struct order *order)
{
	mem_free(order->events);
}

static void make_room(struct order *order)
{
	if (order->count < order->room)
		return;
	order->room = order->room ? 2 * order->room : FIRST_EVENTS;
	order->events = mem_realloc(order->events, order->room * sizeof(*order->events));
	must(order->events);
}

void order_add(struct order *order, const struct event *event)
{
	size_t at;

	make_room(order);
	at = order->count++;
	while (at > 0 && order->events[(at - 1) / 2].gid > event->gid) {
		order->events[at] = order->events[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	order->events[at] = *event;
	if (event->time_us > order->newest_us)
		order->newest_us = event->time_us;
}

/* Fills the hole at the top with the last event. */
static void close_top(struct order *order)
{
	const struct event *last = &order->events[--order->count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < order->count) {
		if (child + 1 < order->count && order->events[child + 1].gid < order->events[child].gid)
			child++;
		if (order->events[child].gid >= last->gid)
			break;
		order->events[at] = order->events[child];
		at = child;
	}
	if (at < order->count)
		order->events[at] = *last;
}

bool order_next(struct order *order, bool all, struct event *event)
{
	if (order->count == 0)
		return false;
	if (!all && order->count < ORDER_EVENTS_MAX && order->events[0].time_us > order->newest_us - ORDER_HOLD_US)
		return false;
	*event = order->events[0];
	close_top(order);
	return true;
}
