/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/source.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int attach(struct source *source, const struct access *access, const char *server, uint64_t timeout_us,
		  char error[CLIENT_ERROR_BYTES])
{
	*source = (struct source){ .client = CLIENT_CLOSED };
	return client_open(&source->client, access, server, timeout_us, error);
}

void source_close(struct source *source)
{
	client_close(&source->client);
	mem_free(source->buffer);
}

const char *source_line(struct source *source, size_t *length)
{
	char *line = source->buffer + source->start;
	char *stop = source->end > source->start ? memchr(line, '\n', source->end - source->start) : NULL;

	if (!stop)
		return NULL;
	*length = (size_t)(stop - line);
	source->start += *length + 1;
	if (*length > 0 && line[*length - 1] == '\r')
		--*length;
	return line;
}

int source_read(struct source *source, int wait_ms)
{
	struct pollfd pollfd = { .fd = source->client.fd, .events = POLLIN };
	ssize_t got;

	if (source->start > 0) {
		memmove(source->buffer, source->buffer + source->start, source->end - source->start);
		source->end -= source->start;
		source->start = 0;
	}
	if (source->end == SOURCE_BYTES)
		source->end = 0; /* no line is as long as that */
	if (!client_has_more(&source->client) && poll(&pollfd, 1, wait_ms) <= 0)
		return FS_EAGAIN;
	got = client_receive(&source->client, source->buffer + source->end, SOURCE_BYTES - source->end);
	if (got < 0 && errno == EAGAIN)
		return FS_EAGAIN;
	if (got <= 0)
		return FS_ESYS;
	source->end += (size_t)got;
	return FS_OK;
}

/* The first line of the answer; NULL: none came in time. */
static const char *ask(struct source *source, const char *command, uint64_t timeout_us, size_t *length)
{
	int64_t deadline_us = now_us() + (int64_t)timeout_us;
	const char *line = NULL;

	if (!source->buffer)
		source->buffer = mem_must_zalloc(SOURCE_BYTES);
	if (client_send(&source->client, command, strlen(command)) != (ssize_t)strlen(command))
		return NULL;
	while (!(line = source_line(source, length))) {
		if (now_us() >= deadline_us || source_read(source, 100) == FS_ESYS)
			return NULL;
	}
	return line;
}

static bool is(const char *line, size_t length, const char *text)
{
	return strlen(text) == length && memcmp(line, text, length) == 0;
}

static void note_refusal(const char *server, const char *line, size_t length, char error[SOURCE_ERROR_BYTES])
{
	char said[201];

	client_quote(line, length, said, sizeof(said));
	snprintf(error, SOURCE_ERROR_BYTES, "the server at %s refuses \"watch\": %s", server, said);
}

int source_open(struct source *source, const struct access *access, const char *server, uint64_t timeout_us,
		char error[SOURCE_ERROR_BYTES])
{
	const char *line;
	size_t length;
	int code = attach(source, access, server, timeout_us, error);

	if (code != FS_OK)
		return code;
	line = ask(source, "watch fetchers mutations deletions\r\n", timeout_us, &length);
	source->tells_deletes = line && is(line, length, "OK");
	if (line && length >= 5 && memcmp(line, "ERROR", 5) == 0)
		line = ask(source, "watch fetchers mutations\r\n", timeout_us, &length);
	if (line && is(line, length, "OK"))
		return FS_OK;
	if (line)
		note_refusal(server, line, length, error);
	else if (client_why(&source->client)[0])
		snprintf(error, SOURCE_ERROR_BYTES, "the server at %s does not answer \"watch\": %s", server,
			 client_why(&source->client));
	else
		snprintf(error, SOURCE_ERROR_BYTES,
			 "the server at %s does not answer \"watch\": is it a memcached server?", server);
	source_close(source);
	return FS_EINVAL;
}

int64_t source_dropped(const struct access *access, const char *server, uint64_t timeout_us)
{
	static const char name[] = "STAT log_worker_dropped ";
	int64_t deadline_us = now_us() + (int64_t)timeout_us, dropped = -1;
	struct source control;
	const char *line = NULL;
	char error[256];
	size_t length;

	if (attach(&control, access, server, timeout_us, error) != FS_OK)
		return -1;
	line = ask(&control, "stats\r\n", timeout_us, &length);
	while (line && length > 5 && memcmp(line, "STAT ", 5) == 0) {
		if (length > sizeof(name) - 1 && memcmp(line, name, sizeof(name) - 1) == 0)
			dropped = strtoll(line + sizeof(name) - 1, NULL, 10);
		while (!(line = source_line(&control, &length)))
			if (now_us() >= deadline_us || source_read(&control, 100) == FS_ESYS)
				break;
	}
	source_close(&control);
	return dropped;
}
