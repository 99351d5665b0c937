/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes written over the last 5 minutes, hour and day: to the device, and by applications.
 *
 *   tick, once a second --> a reading of both totals, kept every 10 s | 1 min | 10 min, as many as the window takes
 *   read                --> the totals now, less those of the reading at the window's beginning
 *
 * A window is shorter than its name says by less than one such step. While the daemon has run for less than that, the
 * window begins at the start. After a time without ticks (the machine was suspended) it is longer. Its true length is
 * reported with it.
 *
 * Memory: fixed, some 10 KiB. Threads: one thread ticks, any may read; a leaf lock covers the readings.
 */
#ifndef FS_STORE_WINDOW_H
#define FS_STORE_WINDOW_H

#include <stdint.h>

#include "base/lock.h"
#include "server/store/store.h"

#define WINDOW_READINGS 147u /* of the longest: 144 steps, and some to be safe */

/* The totals at a time. They never go back. */
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

/* Begins all windows with the reading at the start. */
void windows_init(struct windows *windows, const struct window_reading *now);
/* Frees the lock, when no thread uses the windows any more. */
void windows_fini(struct windows *windows);
/* Keeps the reading where it is due; its time is not before the last one's. */
void windows_tick(struct windows *windows, const struct window_reading *now);
/* Fills out with the bytes between each window's beginning and now, and with its length. */
void windows_read(struct windows *windows, const struct window_reading *now, struct store_window out[STORE_WINDOWS]);

#endif
