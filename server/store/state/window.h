/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was written over the last 5 minutes, hour and day: to the device, and by applications.
 *
 *   tick, once a second --> a reading of both totals, kept every 10 s | 1 min | 10 min, as many as the window takes
 *   read                --> the totals now, less those of the reading at the window's beginning
 *
 * A window is shorter than its name says by less than such a step; it begins at the start while that is shorter, and is longer
 * where no tick came for a time (the machine was suspended). Its true length is told with it.
 *
 * Memory: fixed, some 10 KiB. Threads: one ticks, any read; a leaf lock covers the readings.
 */
#ifndef FS_STORE_WINDOW_H
#define FS_STORE_WINDOW_H

#include <stdint.h>

#include "base/lock.h"
#include "server/store/store.h"

#define WINDOW_READINGS 147u /* of the longest: 144 steps, and some to be safe */

/* What the totals were. They never go back. */
struct window_reading {
	uint64_t now_ms, flash_bytes, app_bytes;
};

struct window_ring {
	struct window_reading readings[WINDOW_READINGS];
	unsigned first, count;
};

struct windows {
	struct lock lock; /* covers rings */
	struct window_ring rings[STORE_WINDOWS];
};

/* now: at the start. */
void windows_init(struct windows *windows, const struct window_reading *now);
void windows_fini(struct windows *windows);
/* now: not before the last one. */
void windows_tick(struct windows *windows, const struct window_reading *now);
void windows_read(struct windows *windows, const struct window_reading *now, struct store_window out[STORE_WINDOWS]);

#endif
