/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tracegen/output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "tools/common/args.h"

#define BUFFER_BYTES (1u << 17)
#define ROW_BYTES 160

struct output {
	const char *path;
	enum trace_format format;
	gzFile gzip;
	int fd;
	size_t used;
	char buffer[BUFFER_BYTES];
};

static void write_out(struct output *output)
{
	size_t done = 0;

	if (output->gzip && output->used &&
	    gzwrite(output->gzip, output->buffer, (unsigned)output->used) != (int)output->used)
		arg_die("%s: %s", output->path, strerror(errno));
	while (!output->gzip && done < output->used) {
		ssize_t written = write(output->fd, output->buffer + done, output->used - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			arg_die("%s: %s", output->path, strerror(errno));
		done += (size_t)written;
	}
	output->used = 0;
}

static int open_file(const char *path)
{
	int fd = strcmp(path, "-") == 0 ? dup(STDOUT_FILENO)
					: open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		arg_die("%s: %s", path, strerror(errno));
	return fd;
}

struct output *output_open(const char *path, enum trace_format format)
{
	int fd = open_file(path);
	struct output *output = mem_must_zalloc(sizeof(*output));
	size_t length = strlen(path);

	output->path = strcmp(path, "-") == 0 ? "standard output" : path;
	output->format = format;
	output->fd = fd;
	if (length > 3 && strcmp(path + length - 3, ".gz") == 0) {
		output->gzip = gzdopen(fd, "wb1");
		if (!output->gzip)
			arg_die("%s: no memory for compression", output->path);
	}
	if (format == TRACE_FLASHIELD)
		output->used = (size_t)snprintf(output->buffer, sizeof(output->buffer),
						"time_ms,app,op,key,key_size,value_size,ttl_s\n");
	return output;
}

static char *put_number(char *out, uint64_t value)
{
	char digits[20];
	int length = 0;

	do
		digits[length++] = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	while (length > 0)
		*out++ = digits[--length];
	return out;
}

static char *put_signed(char *out, int64_t value)
{
	if (value < 0) {
		*out++ = '-';
		value = -value;
	}
	return put_number(out, (uint64_t)value);
}

static char *put_word(char *out, const char *word)
{
	size_t length = strlen(word);

	memcpy(out, word, length);
	return out + length;
}

static char *flashield_row(char *out, const struct event *event, uint32_t app_id, uint64_t key)
{
	static const char *const words[EVENT_OPS] = { ",get,", ",set,", ",delete,", ",set," };

	out = put_number(out, (uint64_t)llround(event->time_s * 1000));
	*out++ = ',';
	out = put_number(out, app_id);
	out = put_word(out, words[event->op]);
	out = put_number(out, key);
	*out++ = ',';
	out = put_number(out, event->key_size);
	*out++ = ',';
	out = put_signed(out, event->value_size);
	return put_word(out, ",0\n");
}

/* time_s,app,type,key_size,value_size,key,hit; hit is 0 for gets that missed only. */
static char *memcachier_row(char *out, const struct event *event, uint32_t app_id, uint64_t key)
{
	static const char types[EVENT_OPS] = { '1', '2', '3', '4', '5', '6', '7' };
	uint64_t ms = (uint64_t)llround(event->time_s * 1000);

	out = put_number(out, ms / 1000);
	*out++ = '.';
	*out++ = (char)('0' + ms % 1000 / 100);
	*out++ = (char)('0' + ms % 100 / 10);
	*out++ = (char)('0' + ms % 10);
	*out++ = ',';
	out = put_number(out, app_id);
	*out++ = ',';
	*out++ = types[event->op];
	*out++ = ',';
	out = put_number(out, event->key_size);
	*out++ = ',';
	out = put_signed(out, event->value_size);
	*out++ = ',';
	out = put_number(out, key);
	return put_word(out, event->op == EVENT_GET && !event->hit ? ",0\n" : ",1\n");
}

bool output_takes(const struct output *output, enum event_op op)
{
	return output->format != TRACE_FLASHIELD || op <= EVENT_ADD;
}

void output_event(struct output *output, const struct event *event, uint32_t app_id, uint64_t key)
{
	char *out;

	if (output->used + ROW_BYTES > BUFFER_BYTES)
		write_out(output);
	out = output->buffer + output->used;
	out = output->format == TRACE_FLASHIELD ? flashield_row(out, event, app_id, key)
						: memcachier_row(out, event, app_id, key);
	output->used = (size_t)(out - output->buffer);
}

void output_close(struct output *output)
{
	write_out(output);
	if (output->gzip ? gzclose(output->gzip) != Z_OK : close(output->fd) != 0)
		arg_die("%s: %s", output->path, strerror(errno));
	mem_free(output);
}
