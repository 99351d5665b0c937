/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy of the trace with 24 bytes per request, in an unlinked temporary file ($TMPDIR, else /var/tmp)
 * that is mapped read-only. Every copy and every thread reads it at its own position, the kernel drops
 * its pages at will, and the text is parsed and its keys are numbered only once.
 *
 * Threads: one thread makes it; then it is constant, and any thread reads it.
 */
#ifndef FS_TOOLS_COMMON_SPOOL_H
#define FS_TOOLS_COMMON_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/common/text.h"
#include "tools/common/trace.h"

struct spool_record {
	uint64_t time_app; /* microseconds since the trace's start << 16 | app */
	uint32_t key;
	uint32_t value_size; /* SPOOL_UNKNOWN_SIZE = unknown */
	uint32_t ttl_s;
	uint16_t repeat;
	uint8_t key_size;
	uint8_t op; /* enum trace_op: get, set, add, delete */
};

_Static_assert(sizeof(struct spool_record) == 24, "a spooled request takes 24 bytes");

#define SPOOL_UNKNOWN_SIZE UINT32_MAX

struct spool_app {
	char name[24];
	uint64_t number; /* in keys: app<number>: */
};

struct spool {
	const struct spool_record *records;
	struct spool_app *apps;
	uint64_t count; /* records */
	uint64_t requests; /* repeats counted */
	uint64_t left_out; /* rows that the mode doesn't play (stats, incr, unknown sizes) */
	uint64_t backward; /* rows with an earlier time than the row above, whose time they got */
	uint64_t broken;
	uint64_t broken_line;
	const char *broken_why;
	int64_t span_us; /* from the first request to one mean gap after the last */
	uint32_t keys;
	uint32_t app_count;
	bool timeless; /* the trace has no times, so its requests are spread evenly over a week */
	enum trace_format format;
	uint64_t mapped_bytes;
};

struct spool_options {
	const char *path; /* "-": standard input */
	enum trace_format format;
	bool gets_only; /* nothing but gets of known size */
	uint64_t limit; /* ends after so many requests, unless the span depends on all rows; UINT64_MAX: none */
	uint32_t default_key_size, default_value_size; /* where the trace doesn't know */
};

/* load reads the whole trace; it ends the program with a message if the trace is unreadable or has no request to
   play. unload frees the spool and its file. */
void spool_load(struct spool *spool, const struct spool_options *options, struct progress *progress);
void spool_unload(struct spool *spool);

static inline int64_t spool_time_us(const struct spool *spool, uint64_t index)
{
	if (spool->timeless)
		return (int64_t)((unsigned __int128)index * (uint64_t)TRACE_WEEK_US / spool->count);
	return (int64_t)(spool->records[index].time_app >> 16);
}

#endif
