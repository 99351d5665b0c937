/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/window.h"

#include <stdbool.h>

#include "base/assert.h"

#define MINUTE_MS 60000ull

/* The length of each window, and the time between two readings that it keeps. */
static const struct {
	uint64_t span_ms, step_ms;
} kinds[STORE_WINDOWS] = {
	[STORE_WINDOW_5M] = { 5 * MINUTE_MS, 10000 },
	[STORE_WINDOW_1H] = { 60 * MINUTE_MS, MINUTE_MS },
	[STORE_WINDOW_1D] = { 24 * 60 * MINUTE_MS, 10 * MINUTE_MS },
};

static const struct window_reading *window_at(const struct window_ring *ring, unsigned number)
{
	return &ring->readings[(ring->first + number) % WINDOW_READINGS];
}

static void window_keep(struct window_ring *ring, const struct window_reading *reading)
{
	must(ring->count < WINDOW_READINGS);
	ring->readings[(ring->first + ring->count++) % WINDOW_READINGS] = *reading;
}

static void window_drop_first(struct window_ring *ring)
{
	must(ring->count > 1);
	ring->first = (ring->first + 1) % WINDOW_READINGS;
	ring->count--;
}

void windows_init(struct windows *windows, const struct window_reading *now)
{
	lock_init(&windows->lock, LOCK_LEAF);
	for (unsigned i = 0; i < STORE_WINDOWS; i++) {
		windows->rings[i].first = windows->rings[i].count = 0;
		window_keep(&windows->rings[i], now);
	}
}

void windows_fini(struct windows *windows)
{
	lock_fini(&windows->lock);
}

/* A window begins at its newest reading that is old in this sense; older ones have no use. */
static bool window_is_old(const struct window_reading *reading, unsigned kind, uint64_t now_ms)
{
	return reading->now_ms + kinds[kind].span_ms - kinds[kind].step_ms <= now_ms;
}

static void window_tick(struct window_ring *ring, unsigned kind, const struct window_reading *now)
{
	if (now->now_ms < window_at(ring, ring->count - 1)->now_ms + kinds[kind].step_ms)
		return;
	while (ring->count > 1 && window_is_old(window_at(ring, 1), kind, now->now_ms))
		window_drop_first(ring);
	window_keep(ring, now);
}

void windows_tick(struct windows *windows, const struct window_reading *now)
{
	lock_acquire(&windows->lock);
	for (unsigned i = 0; i < STORE_WINDOWS; i++)
		window_tick(&windows->rings[i], i, now);
	lock_release(&windows->lock);
}

/* The newest reading that is old enough, or else the oldest one. */
static const struct window_reading *window_beginning(const struct window_ring *ring, unsigned kind, uint64_t now_ms)
{
	unsigned number = 0;

	while (number + 1 < ring->count && window_is_old(window_at(ring, number + 1), kind, now_ms))
		number++;
	return window_at(ring, number);
}

static uint64_t window_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void windows_read(struct windows *windows, const struct window_reading *now, struct store_window out[STORE_WINDOWS])
{
	lock_acquire(&windows->lock);
	for (unsigned i = 0; i < STORE_WINDOWS; i++) {
		const struct window_reading *since = window_beginning(&windows->rings[i], i, now->now_ms);

		/* A tick may have come between the caller's reading and here. */
		out[i].flash_bytes = window_less(now->flash_bytes, since->flash_bytes);
		out[i].app_bytes = window_less(now->app_bytes, since->app_bytes);
		out[i].seconds = (double)window_less(now->now_ms, since->now_ms) / 1000;
	}
	lock_release(&windows->lock);
}
