/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the lines of a plain or gzip file into requests with dense ids. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tools/common/intern.h"
#include "tools/common/trace.h"

#define BUFFER_BYTES (1u << 18)
#define APP_NAME_BYTES 24

struct app {
	uint64_t number;
	bool known;
	char name[APP_NAME_BYTES];
};

struct trace_reader {
	gzFile file;
	enum trace_format format;
	struct trace_columns columns;
	struct intern keys;
	struct intern app_ids;
	struct app *apps;
	uint32_t app_room;
	uint64_t line;
	uint64_t broken;
	uint64_t broken_line;
	const char *broken_why;
	size_t start, end; /* of the unread bytes in buffer */
	bool at_end;
	char error[256];
	char path[128];
	char buffer[BUFFER_BYTES];
};

/* Reads more bytes behind the unread ones. FS_ECORRUPT for a truncated or damaged gzip file. */
static int fill(struct trace_reader *reader)
{
	int got, code = Z_OK;

	memmove(reader->buffer, reader->buffer + reader->start, reader->end - reader->start);
	reader->end -= reader->start;
	reader->start = 0;
	got = gzread(reader->file, reader->buffer + reader->end, (unsigned)(BUFFER_BYTES - reader->end));
	if (got > 0) {
		reader->end += (size_t)got;
		return FS_OK;
	}
	gzerror(reader->file, &code);
	if (got == 0 && code != Z_BUF_ERROR) {
		reader->at_end = true;
		return FS_OK;
	}
	snprintf(reader->error, sizeof(reader->error), "%s: %s after line %llu", reader->path,
		 code == Z_ERRNO       ? strerror(errno)
		 : code == Z_BUF_ERROR ? "the compressed data ends too early (truncated file)"
				       : "the compressed data is damaged",
		 (unsigned long long)reader->line);
	return code == Z_ERRNO ? FS_EIO : FS_ECORRUPT;
}

/* The next line without its end. 1, 0 at the end, or an error. It stays valid until the next call. */
static int next_line(struct trace_reader *reader, const char **line, size_t *length)
{
	for (;;) {
		char *start = reader->buffer + reader->start;
		size_t unread = reader->end - reader->start;
		char *newline = memchr(start, '\n', unread);
		int code;

		if (newline || (reader->at_end && unread)) {
			*line = start;
			*length = newline ? (size_t)(newline - start) : unread;
			reader->start += *length + (newline ? 1 : 0);
			if (*length && start[*length - 1] == '\r')
				--*length;
			reader->line++;
			return 1;
		}
		if (reader->at_end)
			return 0;
		if (unread == BUFFER_BYTES) {
			snprintf(reader->error, sizeof(reader->error), "%s: line %llu is longer than 256 KiB",
				 reader->path, (unsigned long long)reader->line + 1);
			return FS_ECORRUPT;
		}
		code = fill(reader);
		if (code != FS_OK)
			return code;
	}
}

/* Settles the format by the first line, and steps over it if it is a header. */
static int start_format(struct trace_reader *reader, enum trace_format wanted)
{
	const char *line;
	size_t length;
	bool is_header = false;
	int code = next_line(reader, &line, &length);

	reader->columns = trace_meta_columns;
	reader->format = wanted == TRACE_AUTO ? TRACE_FLASHIELD : wanted;
	if (code <= 0)
		return code;
	reader->format = trace_detect(line, length, &is_header);
	if (wanted != TRACE_AUTO)
		reader->format = wanted;
	if (reader->format == TRACE_AUTO) {
		snprintf(reader->error, sizeof(reader->error),
			 "%s: the first line is of no known format (give --format): \"%.*s\"", reader->path,
			 (int)(length < 80 ? length : 80), line);
		return FS_EINVAL;
	}
	if (!is_header) {
		/* The line is still whole in the buffer: reading ahead moves unread bytes only. */
		reader->start = (size_t)(line - reader->buffer);
		reader->line--;
	} else if (reader->format == TRACE_META) {
		return trace_parse_meta_header(line, length, &reader->columns);
	}
	return FS_OK;
}

int trace_reader_open(const char *path, enum trace_format format, struct trace_reader **out, char error[256])
{
	struct trace_reader *reader = mem_must_zalloc(sizeof(*reader));
	bool is_stdin = strcmp(path, "-") == 0;
	int code;

	snprintf(reader->path, sizeof(reader->path), "%s", is_stdin ? "standard input" : path);
	reader->file = is_stdin ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path, "rb");
	if (!reader->file) {
		snprintf(error, 256, "%s: %s", reader->path, strerror(errno));
		mem_free(reader);
		return FS_EIO;
	}
	gzbuffer(reader->file, BUFFER_BYTES);
	intern_init(&reader->keys);
	intern_init(&reader->app_ids);
	code = start_format(reader, format);
	if (code < 0) {
		snprintf(error, 256, "%s", reader->error[0] ? reader->error : fs_strerror(code));
		trace_reader_close(reader);
		return code;
	}
	*out = reader;
	return FS_OK;
}

void trace_reader_close(struct trace_reader *reader)
{
	gzclose(reader->file);
	intern_fini(&reader->keys);
	intern_fini(&reader->app_ids);
	mem_free(reader->apps);
	mem_free(reader);
}

/* The id of an application; beyond TRACE_MAX_APPS all share the last. */
static uint32_t app_id(struct trace_reader *reader, const struct trace_row *row)
{
	uint64_t hash = hash64(row->app, row->app_length, 1);
	uint32_t id = intern_id(&reader->app_ids, hash);
	struct app *app;
	char *rest;

	if (id >= TRACE_MAX_APPS)
		return TRACE_MAX_APPS - 1;
	if (id < reader->app_room && reader->apps[id].known)
		return id;
	if (id >= reader->app_room) {
		uint32_t room = reader->app_room ? reader->app_room * 2 : 64;

		reader->apps = mem_realloc(reader->apps, room * sizeof(*reader->apps));
		memset(reader->apps + reader->app_room, 0, (room - reader->app_room) * sizeof(*reader->apps));
		reader->app_room = room;
	}
	app = &reader->apps[id];
	snprintf(app->name, sizeof(app->name), "%.*s", (int)row->app_length, row->app);
	app->number = strtoull(app->name, &rest, 10);
	app->known = true;
	if (*rest || rest == app->name || app->number > UINT32_MAX)
		app->number = id + 1;
	return id;
}

/* The application is mixed in after the hash. As the hash's seed it would fail: XXH3 of up to three bytes only xors
   the seed in, so (key 5, app 1) would collide with (key 6, app 2). */
static uint64_t key_hash_of(const struct trace_row *row, uint32_t app)
{
	return mix64(hash64(row->key, row->key_length, 0) + (app + 1) * 0x9e3779b97f4a7c15ull);
}

static void to_request(struct trace_reader *reader, const struct trace_row *row, struct trace_request *request)
{
	uint32_t app = app_id(reader, row);

	*request = (struct trace_request){
		.time_us = row->time_us,
		.app = app,
		.key = intern_id(&reader->keys, key_hash_of(row, app)),
		.key_size = row->key_size,
		.value_size = row->value_size,
		.ttl_s = row->ttl_s,
		.repeat = row->repeat,
		.op = row->op,
	};
}

int trace_reader_next(struct trace_reader *reader, struct trace_request *request)
{
	for (;;) {
		struct trace_row row;
		const char *line, *why;
		size_t length;
		int code = next_line(reader, &line, &length);

		if (code <= 0)
			return code;
		if (length == 0)
			continue;
		if (trace_parse_row(reader->format, &reader->columns, line, length, &row, &why) == FS_OK) {
			to_request(reader, &row, request);
			return 1;
		}
		if (reader->broken++ == 0) {
			reader->broken_line = reader->line;
			reader->broken_why = why;
		}
	}
}

enum trace_format trace_reader_format(const struct trace_reader *reader)
{
	return reader->format;
}

const char *trace_reader_error(const struct trace_reader *reader)
{
	return reader->error;
}

uint64_t trace_reader_broken(const struct trace_reader *reader, const char **why, uint64_t *line)
{
	*why = reader->broken_why;
	*line = reader->broken_line;
	return reader->broken;
}

uint32_t trace_reader_keys(const struct trace_reader *reader)
{
	return reader->keys.count;
}

uint32_t trace_reader_apps(const struct trace_reader *reader)
{
	return reader->app_ids.count < TRACE_MAX_APPS ? reader->app_ids.count : TRACE_MAX_APPS;
}

const char *trace_reader_app_name(const struct trace_reader *reader, uint32_t app)
{
	return reader->apps[app].name;
}

uint64_t trace_reader_app_number(const struct trace_reader *reader, uint32_t app)
{
	return reader->apps[app].number;
}
