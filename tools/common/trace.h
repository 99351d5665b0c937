/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Request traces: one row per request, in four column formats, plain or gzip.
 *
 *   flashield   time_ms,app,op,key,key_size,value_size,ttl_s            (with this header line;
 *               app and key are any texts without a comma, but not -1)
 *   memcachier  time_s,app,type,key_size,value_size,key,hit             (no header)
 *   twitter     time_s,key,key_size,value_size,client,op,ttl_s          (no header)
 *   meta        op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase[,sub_usecase]
 *               (columns by its header line where there is one)
 *
 * An application is the app column, the usecase (meta), or the part of the key before its first ':'
 * (twitter: its clients share keys, so a client can't be the application).
 *
 * Threads: a reader has one owner. Errors: a reader skips and counts broken rows and keeps the first
 * reason; FS_EIO and FS_ECORRUPT say that the rest of the file is unreadable.
 */
#ifndef FS_TOOLS_COMMON_TRACE_H
#define FS_TOOLS_COMMON_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum trace_format { TRACE_AUTO, TRACE_FLASHIELD, TRACE_MEMCACHIER, TRACE_TWITTER, TRACE_META };

extern const char *const trace_format_names[]; /* indexed by trace_format, NULL at the end */

enum trace_op { TRACE_GET, TRACE_SET, TRACE_ADD, TRACE_DELETE, TRACE_INCR, TRACE_OTHER };

#define TRACE_MAX_VALUE_BYTES (1u << 30)
#define TRACE_MAX_APPS 65535
#define TRACE_WEEK_US 604800000000ll /* the span of a trace that does not know its times */

/* The fields of one line. The texts point into the line. */
struct trace_row {
	int64_t time_us; /* -1 = unknown */
	const char *key;
	const char *app;
	uint32_t key_length;
	uint32_t app_length;
	int32_t key_size; /* -1 = unknown */
	int32_t value_size; /* -1 = unknown */
	uint32_t ttl_s; /* 0 = none */
	uint32_t repeat; /* times that the request happened (meta's op_count), >= 1 */
	enum trace_op op;
};

/* The numbers of meta's columns, from its header line. */
struct trace_columns {
	int8_t op_time, key, key_size, op, op_count, size, ttl, usecase;
};

extern const struct trace_columns trace_meta_columns; /* the published order */

/* Reads a meta header line. FS_EINVAL if key, op or size is not among its names. */
int trace_parse_meta_header(const char *line, size_t length, struct trace_columns *columns) FS_MUST_CHECK;

/* Reads one line (no newline at its end). A broken line is FS_EINVAL with a reason in *why (static text). columns is
   for meta only. format must not be TRACE_AUTO. */
int trace_parse_row(enum trace_format format, const struct trace_columns *columns, const char *line, size_t length,
		    struct trace_row *row, const char **why) FS_MUST_CHECK;

/* Returns the format of a trace by its first line, TRACE_AUTO if it is unknown. *is_header says that the line is no
   request. */
enum trace_format trace_detect(const char *line, size_t length, bool *is_header);

/* A request with dense ids in place of texts: keys and applications count from 0, in the order of
   their first appearance. */
struct trace_request {
	int64_t time_us;
	uint32_t key;
	uint32_t app;
	int32_t key_size;
	int32_t value_size;
	uint32_t ttl_s;
	uint32_t repeat;
	enum trace_op op;
};

struct trace_reader;

/* Opens a trace, whose format TRACE_AUTO finds out. path "-" is standard input. Returns 0, or a negative error with a
   message for the user in error. The caller closes the reader. Blocks for I/O. */
int trace_reader_open(const char *path, enum trace_format format, struct trace_reader **out,
		      char error[256]) FS_MUST_CHECK;
void trace_reader_close(struct trace_reader *reader);

/* Returns 1 for a request, 0 at the end, FS_EIO or FS_ECORRUPT with a text in trace_reader_error. Blocks for I/O. */
int trace_reader_next(struct trace_reader *reader, struct trace_request *request) FS_MUST_CHECK;

/* Return the format in use, and the text of the last error, which belongs to the reader. */
enum trace_format trace_reader_format(const struct trace_reader *reader);
const char *trace_reader_error(const struct trace_reader *reader);

/* Returns the number of broken rows. *why and *line are the reason and the line number of the first of them. */
uint64_t trace_reader_broken(const struct trace_reader *reader, const char **why, uint64_t *line);

/* Return the numbers of keys and of applications so far. */
uint32_t trace_reader_keys(const struct trace_reader *reader);
uint32_t trace_reader_apps(const struct trace_reader *reader);

/* Return an application's name in the trace, and the number that stands for it in keys: the name itself where it is a
   number, otherwise its number in the order of appearance, from 1. */
const char *trace_reader_app_name(const struct trace_reader *reader, uint32_t app);
uint64_t trace_reader_app_number(const struct trace_reader *reader, uint32_t app);

#endif
