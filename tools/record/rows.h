/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns events, in the server's order, into the requests of a trace.
 *
 *   rows_add ──> [ rows of the last window ] ──> rows_next
 *                  ^ changed by later events
 *
 * A row waits for a time, the window, as what follows tells what it was:
 *
 * - memcached writes a look-up before each store and each delete. That "get" is no request, and is left out.
 * - A get that misses is given size and TTL of the set that follows within the window, and that set is left out: a trace
 *   is replayed so that a get of known size that misses is followed by a set. So the trace tells nothing of how large the
 *   recorded cache was. A miss that nothing follows keeps the size -1.
 *
 * Threads: one. Ownership: fini frees all. Memory: at most ROWS_MAX rows wait; beyond them the oldest leaves early.
 */
#ifndef FS_TOOLS_RECORD_ROWS_H
#define FS_TOOLS_RECORD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/record/order.h"

#define ROWS_MAX (1u << 19) /* a power of two */

enum row_op { ROW_GET, ROW_SET, ROW_DELETE };

struct row {
	uint64_t key;
	uint64_t older; /* number of an older row of the same bucket, + 1; 0: none */
	int64_t time_us; /* never less than the row's before */
	uint32_t ttl_s;
	int32_t size; /* -1: unknown */
	int32_t connection;
	uint8_t op; /* enum row_op */
	uint8_t key_size;
	bool found; /* of gets */
	bool look_up; /* a get that may be the server's own */
	bool left_out; /* it is no request; it stays for those that look back */
	bool aside; /* a look-up of the server's: it says nothing of the object to those that look back */
	char app[APP_BYTES];
};

/* What became of the events. */
struct rows_counts {
	uint64_t look_ups; /* gets that were the server's own */
	uint64_t fills; /* sets that became part of a get */
	uint64_t refused; /* stores without effect */
	uint64_t updates; /* incr, decr and touch, which are written as gets */
};

struct rows {
	struct row *ring;
	uint64_t *newest; /* by bucket: number of its newest row, + 1 */
	uint64_t head, tail; /* numbers of the rows that wait: tail .. head - 1 */
	int64_t window_us;
	int64_t newest_us;
	struct rows_counts counts;
};

/* window_us: 0 writes each set as it came. init aborts when memory is out. */
void rows_init(struct rows *rows, int64_t window_us);
void rows_fini(struct rows *rows);

/* Takes the next event. rows_next must have been called until it was false. */
void rows_add(struct rows *rows, const struct event *event);

/* Stores the oldest request in *row if nothing can change it any more, or if all is true. False if there is none. */
FS_MUST_CHECK bool rows_next(struct rows *rows, bool all, struct row *row);

#endif
