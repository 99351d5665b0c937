/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/events.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/lock.h"

#define RING_BYTES_DEFAULT (64u << 10)
#define RING_BYTES_LEAST (2u * EVENT_LINE_MAX)

/* Precedes each line in a ring, at a multiple of its own size. */
struct head {
	uint64_t number;
	uint32_t length;
	uint32_t stream;
};

/* The lines of one thread, in its order, from 0 to used. The consumer empties it as a whole. */
struct ring {
	struct ring *next; /* in the list of all rings; constant */
	struct lock lock; /* covers bytes[] and used */
	size_t capacity;
	size_t used;
	char bytes[];
};

/* A line that was taken out, for sorting. */
struct taken {
	const struct head *head;
};

_Atomic unsigned events_wanted;

static struct {
	struct ring *_Atomic rings; /* a list that only grows, at its head */
	_Atomic size_t ring_bytes;
	_Atomic uint64_t number, written, dropped;
} events = { .ring_bytes = RING_BYTES_DEFAULT };

static _Thread_local struct ring *own; /* the calling thread's */

static const char *const names[EVENT_STREAMS] = {
#define EVENT_STREAM_NAME(id, name, text) name,
	EVENT_STREAM_TABLE(EVENT_STREAM_NAME)
#undef EVENT_STREAM_NAME
};

enum event_stream events_find(const char *name, size_t length)
{
	for (unsigned i = 0; i < EVENT_STREAMS; i++)
		if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
			return (enum event_stream)i;
	return EVENT_STREAMS;
}

const char *events_key(const char *key, size_t length, char *out)
{
	static const char digits[] = "0123456789ABCDEF";
	char *at = out;

	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)key[i];
		bool plain = (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'z') ||
			     byte == '-' || byte == '.' || byte == '_' || byte == '~';

		if (plain) {
			*at++ = (char)byte;
		} else {
			*at++ = '%';
			*at++ = digits[byte >> 4];
			*at++ = digits[byte & 15];
		}
	}
	*at = 0;
	return out;
}

void events_set_ring_bytes(size_t bytes)
{
	atomic_store(&events.ring_bytes, bytes < RING_BYTES_LEAST ? RING_BYTES_LEAST : bytes);
}

void events_want(unsigned streams)
{
	atomic_store(&events_wanted, streams);
}

/* ---- emitting -------------------------------------------------------------------------------- */

/* The calling thread's ring; NULL when memory is out. */
static struct ring *own_ring(void)
{
	size_t capacity = atomic_load(&events.ring_bytes);
	struct ring *ring;

	if (own)
		return own;
	ring = mem_alloc(sizeof(*ring) + capacity);
	if (!ring)
		return NULL;
	lock_init(&ring->lock, LOCK_LEAF);
	ring->capacity = capacity;
	ring->used = 0;
	ring->next = atomic_load(&events.rings);
	while (!atomic_compare_exchange_weak(&events.rings, &ring->next, ring))
		;
	own = ring;
	return ring;
}

static size_t ring_padded(size_t length)
{
	return (length + sizeof(struct head) - 1) / sizeof(struct head) * sizeof(struct head);
}

/* False if the line finds no room. */
static FS_MUST_CHECK bool ring_put(struct ring *ring, enum event_stream stream, uint64_t number, const char *line,
				   size_t length)
{
	struct head head = { .number = number, .length = (uint32_t)length, .stream = stream };
	bool fits;

	lock_acquire(&ring->lock);
	must(ring->used <= ring->capacity);
	fits = ring->used + sizeof(head) + ring_padded(length) <= ring->capacity;
	if (fits) {
		memcpy(ring->bytes + ring->used, &head, sizeof(head));
		memcpy(ring->bytes + ring->used + sizeof(head), line, length);
		ring->used += sizeof(head) + ring_padded(length);
	}
	lock_release(&ring->lock);
	return fits;
}

void events_emit(enum event_stream stream, const char *format, ...)
{
	uint64_t number = atomic_fetch_add(&events.number, 1) + 1;
	struct ring *ring = own_ring();
	char line[EVENT_LINE_MAX];
	struct timespec now;
	va_list arguments;
	size_t length;
	int text;

	must((unsigned)stream < EVENT_STREAMS);
	clock_gettime(CLOCK_REALTIME, &now);
	length = (size_t)snprintf(line, sizeof(line), "ts=%lld.%06ld gid=%" PRIu64 " ", (long long)now.tv_sec,
				  now.tv_nsec / 1000, number);
	va_start(arguments, format);
	text = vsnprintf(line + length, sizeof(line) - length, format, arguments);
	va_end(arguments);
	if (text < 0)
		text = 0;
	length += (size_t)text;
	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length++] = '\n';
	if (ring && ring_put(ring, stream, number, line, length))
		atomic_fetch_add(&events.written, 1);
	else
		atomic_fetch_add(&events.dropped, 1);
}

/* ---- draining -------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint64_t one = ((const struct taken *)a)->head->number, other = ((const struct taken *)b)->head->number;

	return one < other ? -1 : one > other;
}

/* The bytes of all rings, one after the other, for the caller to free. NULL if there are none. *lost tells that memory
   was out for some. */
static char *take_all(size_t *length, bool *lost)
{
	char *bytes = NULL;

	*length = 0;
	*lost = false;
	for (struct ring *ring = atomic_load(&events.rings); ring; ring = ring->next) {
		char *more;

		lock_acquire(&ring->lock);
		if (ring->used > 0) {
			more = mem_realloc(bytes, *length + ring->used);
			if (more) {
				memcpy(more + *length, ring->bytes, ring->used);
				*length += ring->used;
				bytes = more;
			} else {
				*lost = true;
			}
			ring->used = 0;
		}
		lock_release(&ring->lock);
	}
	return bytes;
}

/* Counts the lines in bytes, and lists them if out isn't NULL. */
static unsigned list_lines(const char *bytes, size_t length, struct taken *out)
{
	unsigned count = 0;

	for (size_t at = 0; at < length; count++) {
		const struct head *head = (const struct head *)(const void *)(bytes + at);

		if (out)
			out[count].head = head;
		at += sizeof(*head) + ring_padded(head->length);
	}
	return count;
}

int events_drain(void (*see)(void *context, enum event_stream stream, const char *line, size_t length), void *context)
{
	struct taken *lines;
	unsigned count;
	size_t length;
	bool lost;
	char *bytes = take_all(&length, &lost);

	if (!bytes)
		return lost ? FS_ENOMEM : 0;
	count = list_lines(bytes, length, NULL);
	lines = mem_alloc(count * sizeof(*lines));
	if (!lines) {
		mem_free(bytes);
		return FS_ENOMEM;
	}
	(void)list_lines(bytes, length, lines); /* as many as it has just counted */
	qsort(lines, count, sizeof(*lines), by_number);
	for (unsigned i = 0; i < count; i++)
		see(context, (enum event_stream)lines[i].head->stream, (const char *)(lines[i].head + 1),
		    lines[i].head->length);
	mem_free(lines);
	mem_free(bytes);
	return lost ? FS_ENOMEM : (int)count;
}

void events_get_status(struct events_status *out)
{
	*out = (struct events_status){ .written = atomic_load(&events.written),
				       .dropped = atomic_load(&events.dropped) };
}

void events_fini(void)
{
	struct ring *ring = atomic_exchange(&events.rings, NULL);

	while (ring) {
		struct ring *next = ring->next;

		lock_fini(&ring->lock);
		mem_free(ring);
		ring = next;
	}
	own = NULL;
}
