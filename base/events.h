/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events: what happens in the daemon, as lines that whoever watches is sent ("watch"). Nobody watching, an
 * event costs one load and a branch that isn't taken.
 *
 *   events_on(stream)? --> events_emit --> ring of the thread --+
 *                                          ring of the thread --+-- events_drain --> lines in order
 *
 * Model: each thread that emits has a ring of its own; a line that finds no room in it is dropped and counted:
 * whoever serves requests never waits for who watches. One consumer drains all rings and gets what is
 * there in the order of the numbers.
 *
 *   ts=1795194721.106508 gid=3 type=item_get key=a status=found clsid=1 cfd=25 size=1
 *
 * Locks: a leaf lock for each ring, one for their list. So events may be emitted under a key stripe, but
 * under no leaf lock; not from a signal handler.
 *
 * Threads: events_emit and events_status from any; the others from the consumer's, or before there is one.
 */
#ifndef FS_BASE_EVENTS_H
#define FS_BASE_EVENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define EVENT_LINE_MAX 2048 /* with its line feed; a longer one is cut */

/* EVENT_STREAM(ID, name in "watch", text). The first six are memcached's. */
#define EVENT_STREAM_TABLE(EVENT_STREAM) \
	EVENT_STREAM(FETCHERS, "fetchers", "keys that were asked for") \
	EVENT_STREAM(MUTATIONS, "mutations", "objects that were stored, counted, touched or deleted") \
	EVENT_STREAM(EVICTIONS, "evictions", "objects that were evicted from DRAM") \
	EVENT_STREAM(CONNEVENTS, "connevents", "connections that were opened and closed") \
	EVENT_STREAM(SYSEVENTS, "sysevents", "what the daemon does by itself") \
	EVENT_STREAM(RAWCMDS, "rawcmds", "command lines as they came in") \
	EVENT_STREAM(FLASH, "flash", "segments that were written and reclaimed") \
	EVENT_STREAM(CLASSIFIER, "classifier", "models that were trained, taken into use or turned down")

enum event_stream {
#define EVENT_STREAM_ENUM(id, name, text) EVENT_##id,
	EVENT_STREAM_TABLE(EVENT_STREAM_ENUM)
#undef EVENT_STREAM_ENUM
		EVENT_STREAMS
};

/* Bit n: somebody watches stream n. Written by events_want alone. */
extern _Atomic unsigned events_wanted;

static inline bool events_on(enum event_stream stream)
{
	return __builtin_expect(atomic_load_explicit(&events_wanted, memory_order_relaxed) >> stream & 1, 0);
}

/* Is any of these watched? streams: bits as in events_want. */
static inline bool events_on_any(unsigned streams)
{
	return __builtin_expect((atomic_load_explicit(&events_wanted, memory_order_relaxed) & streams) != 0, 0);
}

/* "type=... name=value ...", without the time and the number, which are put before it. Call it only where
   events_on() said so. */
void events_emit(enum event_stream stream, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* A key in a line: what is no printable ASCII, and '%' and '=', as %XX. out has room for 3 * length + 1. */
const char *events_key(const char *key, size_t length, char *out);

/* The stream of this name; EVENT_STREAMS if there is none. */
enum event_stream events_find(const char *name, size_t length);

/* Size of a ring from now on (threads that have one keep it): -o worker_logbuf_size; 64 KiB unless told. */
void events_set_ring_bytes(size_t bytes);

/* What is watched, as bits. */
void events_want(unsigned streams);

/* Calls see() for each line that is there, in the order of the numbers. How many there were, or FS_ENOMEM:
   some are lost. */
FS_MUST_CHECK int events_drain(void (*see)(void *context, enum event_stream stream, const char *line, size_t length),
			       void *context);

struct events_status {
	uint64_t written; /* lines that went into a ring ... */
	uint64_t dropped; /* ... and that found no room */
};
void events_get_status(struct events_status *out);

/* Frees the rings; no thread may emit any more. */
void events_fini(void);

#endif
