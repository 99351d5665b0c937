/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/session.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

#define READ_BYTES (256u << 10)
#define LINE_MOST (64u << 10) /* far more than any server's */

static void reserve(struct warm_buffer *buffer, size_t bytes)
{
	size_t room = buffer->room ? buffer->room : READ_BYTES;

	while (room - buffer->used < bytes)
		room *= 2;
	if (room == buffer->room)
		return;
	buffer->bytes = mem_realloc(buffer->bytes, room);
	if (!buffer->bytes)
		arg_die("no memory for %zu bytes", room);
	buffer->room = room;
}

void session_open(struct session *session, const struct access *access, const char *server, uint64_t timeout_us)
{
	char error[CLIENT_ERROR_BYTES];

	*session = (struct session){ .server = server, .timeout_us = timeout_us };
	if (client_open(&session->client, access, server, timeout_us, error) != FS_OK)
		arg_die("%s", error);
}

void session_close(struct session *session)
{
	client_close(&session->client);
	mem_free(session->in.bytes);
	mem_free(session->out.bytes);
}

void session_put(struct session *session, const void *bytes, size_t length)
{
	reserve(&session->out, length);
	memcpy(session->out.bytes + session->out.used, bytes, length);
	session->out.used += length;
}

/* Moves bytes in one direction. True: some were moved. */
static bool moved(struct session *session, ssize_t count)
{
	if (count < 0 && errno == EAGAIN)
		return false;
	if (count <= 0)
		arg_die("the server at %s: %s", session->server, client_why(&session->client));
	return true;
}

static bool send_some(struct session *session)
{
	struct warm_buffer *out = &session->out;
	ssize_t sent;

	if (session->out_start == out->used)
		return false;
	sent = client_send(&session->client, out->bytes + session->out_start, out->used - session->out_start);
	if (!moved(session, sent))
		return false;
	session->out_start += (size_t)sent;
	if (session->out_start == out->used)
		session->out_start = out->used = 0;
	return true;
}

static bool receive_some(struct session *session)
{
	struct warm_buffer *in = &session->in;
	ssize_t got;

	if (session->in_start > 0) {
		memmove(in->bytes, in->bytes + session->in_start, in->used - session->in_start);
		in->used -= session->in_start;
		session->in_start = 0;
	}
	reserve(in, READ_BYTES / 2);
	got = client_receive(&session->client, in->bytes + in->used, in->room - in->used);
	if (!moved(session, got))
		return false;
	in->used += (size_t)got;
	return true;
}

/* Waits until more of an answer is there. */
static void wait_for_more(struct session *session)
{
	for (bool received = false; !received;) {
		bool sent = send_some(session);
		struct pollfd pollfd = { .fd = session->client.fd, .events = POLLIN };

		received = receive_some(session);
		if (sent || received)
			continue;
		if (session->out_start < session->out.used)
			pollfd.events |= POLLOUT;
		if (poll(&pollfd, 1, (int)(session->timeout_us / 1000)) == 0)
			arg_die("the server at %s does not answer any more (--timeout)", session->server);
	}
}

char *session_line(struct session *session, size_t *length)
{
	size_t looked = 0;

	for (;;) {
		char *line = session->in.bytes + session->in_start, *end = NULL;
		size_t there = session->in.used - session->in_start;

		if (there > looked)
			end = memchr(line + looked, '\n', there - looked);
		if (end) {
			session->in_start += (size_t)(end - line) + 1;
			*length = (size_t)(end - line);
			*length -= *length > 0 && line[*length - 1] == '\r';
			line[*length] = 0;
			return line;
		}
		if (there > LINE_MOST)
			arg_die("the server at %s sends a line of more than %u bytes", session->server, LINE_MOST);
		looked = there;
		wait_for_more(session);
	}
}

const char *session_bytes(struct session *session, size_t length)
{
	while (session->in.used - session->in_start < length)
		wait_for_more(session);
	session->in_start += length;
	return session->in.bytes + session->in_start - length;
}

size_t wire_key(const char *key, size_t length, char out[WIRE_KEY_BYTES], const char **flag)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	bool plain = true;
	char *at = out;

	for (size_t i = 0; i < length; i++)
		plain = plain && (unsigned char)key[i] > ' ' && key[i] != 0x7f;
	*flag = plain ? "" : " b";
	if (plain) {
		memcpy(out, key, length);
		return length;
	}
	for (size_t i = 0; i < length; i += 3) {
		uint32_t three = 0;

		for (size_t n = 0; n < 3; n++)
			three = three << 8 | (i + n < length ? (unsigned char)key[i + n] : 0u);
		*at++ = digits[three >> 18];
		*at++ = digits[three >> 12 & 63];
		*at++ = i + 1 < length ? digits[three >> 6 & 63] : '=';
		*at++ = i + 2 < length ? digits[three & 63] : '=';
	}
	return (size_t)(at - out);
}

/* ---- tempo --------------------------------------------------------------------------------------- */

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void tempo_init(struct tempo *tempo, double objects_per_second, double bytes_per_second)
{
	*tempo = (struct tempo){ objects_per_second, bytes_per_second, now_seconds() };
}

void tempo_wait(struct tempo *tempo, double objects, double bytes)
{
	double now = now_seconds(), wait = tempo->due_s - now, takes = 0;

	if (tempo->objects_per_second > 0)
		takes = objects / tempo->objects_per_second;
	if (tempo->bytes_per_second > 0)
		takes = fmax(takes, bytes / tempo->bytes_per_second);
	if (wait > 0) {
		struct timespec time = { .tv_sec = (time_t)wait, .tv_nsec = (long)((wait - floor(wait)) * 1e9) };

		nanosleep(&time, NULL);
	}
	/* A server that was slower than the pace is not hurried afterwards. */
	tempo->due_s = fmax(tempo->due_s, now) + takes;
}
