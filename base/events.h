/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events: lines about what the daemon does, for clients that "watch". While nobody watches, an event costs one load and
 * a branch that isn't taken.
 *
 *   events_on(stream)? --> events_emit --> ring of the thread --+
 *                                          ring of the thread --+-- events_drain --> lines in order
 *
 * Model: each thread that emits has a ring of its own. A line that finds no room in it is dropped and counted, so that
 * a worker never waits for a client that watches. One consumer drains all rings and gets the lines in the order of
 * their numbers.
 *
 *   ts=1795194721.106508 gid=3 type=item_get key=a status=found clsid=1 cfd=25 size=1
 *
 * Locks: each ring has a leaf lock. So events may be emitted under a key stripe, but neither under a leaf lock nor from
 * a signal handler.
 *
 * Threads: any may call events_on*, events_emit, events_key, events_find and events_get_status; the consumer's thread
 * calls the others, or any thread before there is a consumer. Nothing here does I/O.
 */
#ifndef FS_BASE_EVENTS_H
#define FS_BASE_EVENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define EVENT_LINE_MAX 2048 /* with the line feed; a longer line is cut */

/* EVENT_STREAM(ID, name in "watch", text). All but the last two are memcached's. */
#define EVENT_STREAM_TABLE(EVENT_STREAM) \
	EVENT_STREAM(FETCHERS, "fetchers", "keys that were asked for") \
	EVENT_STREAM(MUTATIONS, "mutations", "objects that were stored, counted, touched or deleted") \
	EVENT_STREAM(EVICTIONS, "evictions", "objects that were evicted from DRAM") \
	EVENT_STREAM(CONNEVENTS, "connevents", "connections that were opened and closed") \
	EVENT_STREAM(SYSEVENTS, "sysevents", "what the daemon does by itself") \
	EVENT_STREAM(RAWCMDS, "rawcmds", "command lines as they came in") \
	EVENT_STREAM(DELETIONS, "deletions", "objects that clients deleted") \
	EVENT_STREAM(PROXYREQS, "proxyreqs", "nothing: there is no proxy here") \
	EVENT_STREAM(PROXYEVENTS, "proxyevents", "nothing: there is no proxy here") \
	EVENT_STREAM(PROXYUSER, "proxyuser", "nothing: there is no proxy here") \
	EVENT_STREAM(FLASH, "flash", "segments that were written and reclaimed") \
	EVENT_STREAM(CLASSIFIER, "classifier", "models that were trained, taken into use or turned down")

enum event_stream {
#define EVENT_STREAM_ENUM(id, name, text) EVENT_##id,
	EVENT_STREAM_TABLE(EVENT_STREAM_ENUM)
#undef EVENT_STREAM_ENUM
		EVENT_STREAMS
};

/* Bit n is set while somebody watches stream n. events_want alone writes it. */
extern _Atomic unsigned events_wanted;

/* Is the stream watched? */
static inline bool events_on(enum event_stream stream)
{
	return __builtin_expect(atomic_load_explicit(&events_wanted, memory_order_relaxed) >> stream & 1, 0);
}

/* Is any of these streams watched? streams: bits as in events_want. */
static inline bool events_on_any(unsigned streams)
{
	return __builtin_expect((atomic_load_explicit(&events_wanted, memory_order_relaxed) & streams) != 0, 0);
}

/* Emits a line. format makes "type=... name=value ..."; the time and the number are put before that. Call it only if
   events_on() is true. Takes a leaf lock; the first call of a thread allocates its ring. */
void events_emit(enum event_stream stream, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Writes a key as it stands in a line into out: letters, digits and "-._~" as they are, any other byte as %XX. Returns
   out, which has room for 3 * length + 1 bytes. */
const char *events_key(const char *key, size_t length, char *out);

/* Returns the stream of this name, or EVENT_STREAMS if there is none. */
enum event_stream events_find(const char *name, size_t length);

/* Sets the size of rings made from now on (-o worker_logbuf_size), at least two lines; 64 KiB before any call. */
void events_set_ring_bytes(size_t bytes);

/* Sets the streams that are watched: bit n stands for stream n. */
void events_want(unsigned streams);

/* Empties the rings and calls see() for each line in the order of the numbers, without a lock held; the line is valid
   during the call. Returns the number of lines, or FS_ENOMEM if some are lost. */
FS_MUST_CHECK int events_drain(void (*see)(void *context, enum event_stream stream, const char *line, size_t length),
			       void *context);

struct events_status {
	uint64_t written; /* lines that went into a ring */
	uint64_t dropped; /* lines that found no room */
};
/* Fills out with the counts since the start. */
void events_get_status(struct events_status *out);

/* Frees the rings. No thread may emit any more. */
void events_fini(void);

#endif
