/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tools/common/args.h"

#define MAX_KEY_BYTES 250

static FILE *temporary_file(void)
{
	const char *directory = getenv("TMPDIR");
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/flashield-trace-XXXXXX", directory && *directory ? directory : "/var/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		arg_die("%s: %s (set TMPDIR for another directory)", path, strerror(errno));
	unlink(path);
	return fdopen(fd, "w+");
}

/* Is this request played? Stats commands are never played, nor are incr and decr, whose values could not prove their
   version. */
static bool is_played(const struct spool_options *options, const struct trace_request *request)
{
	if (request->op == TRACE_OTHER || request->op == TRACE_INCR)
		return false;
	if (options->gets_only)
		return request->op == TRACE_GET && request->value_size >= 0;
	return true;
}

static struct spool_record to_record(struct spool *spool, const struct spool_options *options,
				     const struct trace_request *request, int64_t time_us)
{
	bool is_write = request->op == TRACE_SET || request->op == TRACE_ADD;
	int32_t key_size = request->key_size < 0 ? (int32_t)options->default_key_size : request->key_size;
	uint32_t value_size = request->value_size >= 0 ? (uint32_t)request->value_size
			      : is_write               ? options->default_value_size
						       : SPOOL_UNKNOWN_SIZE;

	spool->requests += request->repeat;
	return (struct spool_record){
		.time_app = (uint64_t)time_us << 16 | request->app,
		.key = request->key,
		.value_size = value_size,
		.ttl_s = request->ttl_s,
		.repeat = (uint16_t)request->repeat,
		.key_size = (uint8_t)(key_size > MAX_KEY_BYTES ? MAX_KEY_BYTES : key_size),
		.op = (uint8_t)request->op,
	};
}

/* Time since the first request, never going back. */
static int64_t relative_time(struct spool *spool, int64_t time_us, int64_t *first_us, int64_t last_us)
{
	if (time_us < 0) {
		spool->timeless = true;
		return last_us;
	}
	if (*first_us < 0)
		*first_us = time_us;
	time_us -= *first_us;
	if (time_us < last_us) {
		spool->backward++;
		return last_us;
	}
	return time_us;
}

static void show_reading(struct progress *progress, const struct spool *spool)
{
	char note[64], count[TEXT_BYTES];

	if (!progress->terminal)
		return;
	snprintf(note, sizeof(note), "reading the trace: %s requests", text_count((double)spool->requests, count));
	progress_show(progress, 0, note);
}

static void copy_requests(struct spool *spool, const struct spool_options *options, struct trace_reader *reader,
			  FILE *file, struct progress *progress)
{
	int64_t first_us = -1, last_us = 0;
	struct trace_request request;
	int code;

	while ((code = trace_reader_next(reader, &request)) == 1) {
		struct spool_record record;

		if (!is_played(options, &request)) {
			spool->left_out++;
			continue;
		}
		last_us = relative_time(spool, request.time_us, &first_us, last_us);
		record = to_record(spool, options, &request, last_us);
		if (fwrite(&record, sizeof(record), 1, file) != 1)
			arg_die("temporary file: %s (set TMPDIR for another directory)", strerror(errno));
		if ((++spool->count & 0x3ffff) == 0)
			show_reading(progress, spool);
		/* With unknown times the span depends on all rows, so all are read then. */
		if (spool->requests >= options->limit && !spool->timeless)
			break;
	}
	if (code < 0)
		arg_die("%s", trace_reader_error(reader));
	spool->span_us = last_us;
}

static void map_file(struct spool *spool, FILE *file)
{
	void *memory;

	if (fflush(file) != 0)
		arg_die("temporary file: %s (set TMPDIR for another directory)", strerror(errno));
	spool->mapped_bytes = spool->count * sizeof(struct spool_record);
	memory = mmap(NULL, spool->mapped_bytes, PROT_READ, MAP_SHARED, fileno(file), 0);
	if (memory == MAP_FAILED)
		arg_die("mapping the temporary file: %s", strerror(errno));
	spool->records = memory;
	fclose(file);
}

static void name_apps(struct spool *spool, const struct trace_reader *reader)
{
	spool->app_count = trace_reader_apps(reader);
	spool->apps = mem_must_zalloc(spool->app_count * sizeof(*spool->apps));
	for (uint32_t i = 0; i < spool->app_count; i++) {
		snprintf(spool->apps[i].name, sizeof(spool->apps[i].name), "%s", trace_reader_app_name(reader, i));
		spool->apps[i].number = trace_reader_app_number(reader, i);
	}
}

void spool_load(struct spool *spool, const struct spool_options *options, struct progress *progress)
{
	struct trace_reader *reader;
	FILE *file = temporary_file();
	char error[256];

	*spool = (struct spool){ 0 };
	if (trace_reader_open(options->path, options->format, &reader, error) != FS_OK)
		arg_die("%s", error);
	copy_requests(spool, options, reader, file, progress);
	spool->format = trace_reader_format(reader);
	spool->keys = trace_reader_keys(reader);
	spool->broken = trace_reader_broken(reader, &spool->broken_why, &spool->broken_line);
	if (spool->count == 0)
		arg_die("%s: no request to play in %s (%" PRIu64 " broken rows%s%s, %" PRIu64 " left out)",
			options->path, trace_format_names[spool->format], spool->broken, spool->broken ? ": " : "",
			spool->broken ? spool->broken_why : "", spool->left_out);
	spool->span_us = spool->timeless ? TRACE_WEEK_US : spool->span_us + spool->span_us / (int64_t)spool->count + 1;
	name_apps(spool, reader);
	map_file(spool, file);
	trace_reader_close(reader);
	progress_clear(progress);
}

void spool_unload(struct spool *spool)
{
	munmap((void *)(uintptr_t)spool->records, spool->mapped_bytes);
	mem_free(spool->apps);
}
