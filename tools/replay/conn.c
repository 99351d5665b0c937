/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/replay/conn.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define READ_BYTES (128u << 10)
#define OUT_BYTES (32u << 10)

void conn_init(struct conn *conn, const struct client *client, uint32_t depth)
{
	uint32_t ring_room = 2;

	/* A miss's fill may go out before its get has left the ring. */
	while (ring_room < depth + 2)
		ring_room *= 2;
	*conn = (struct conn){ .client = *client, .ring_mask = ring_room - 1 };
	conn->ring = mem_must_zalloc(ring_room * sizeof(*conn->ring));
	buffer_reserve(&conn->in, READ_BYTES);
	buffer_reserve(&conn->out, OUT_BYTES);
}

void conn_fini(struct conn *conn)
{
	client_close(&conn->client);
	mem_free(conn->ring);
	mem_free(conn->in.bytes);
	mem_free(conn->out.bytes);
}

char *buffer_reserve(struct buffer *buffer, size_t bytes)
{
	if (buffer->start && (buffer->start == buffer->end || buffer->capacity - buffer->end < bytes)) {
		memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->end - buffer->start);
		buffer->end -= buffer->start;
		buffer->start = 0;
	}
	if (buffer->capacity - buffer->end < bytes) {
		size_t capacity = buffer->capacity ? buffer->capacity : bytes;

		while (capacity - buffer->end < bytes)
			capacity *= 2;
		buffer->bytes = mem_realloc(buffer->bytes, capacity);
		must(buffer->bytes);
		buffer->capacity = capacity;
	}
	return buffer->bytes + buffer->end;
}

int conn_flush(struct conn *conn)
{
	struct buffer *out = &conn->out;

	while (out->start < out->end) {
		ssize_t sent = client_send(&conn->client, out->bytes + out->start, out->end - out->start);

		if (sent <= 0)
			return sent < 0 && errno == EAGAIN ? FS_OK : FS_ESYS;
		out->start += (size_t)sent;
	}
	out->start = out->end = 0;
	return FS_OK;
}

int conn_read(struct conn *conn)
{
	struct buffer *in = &conn->in;
	ssize_t got;

	if (in->start == in->end)
		in->start = in->end = 0;
	/* Compacting for a few bytes of room would copy more bytes than a read brings. */
	if (in->capacity - in->end < READ_BYTES / 4)
		buffer_reserve(in, READ_BYTES / 2);
	got = client_receive(&conn->client, in->bytes + in->end, in->capacity - in->end);
	if (got > 0) {
		in->end += (size_t)got;
		return FS_OK;
	}
	if (got < 0 && errno == EAGAIN)
		return FS_EAGAIN;
	return FS_ESYS;
}
