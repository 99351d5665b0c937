/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines to standard error: "level: text", behind the time if log_set_times asks for it. If standard error is connected to
 * the journal (JOURNAL_STREAM is set), the sd-daemon priority prefix "<N>" replaces both, or a sink takes the line instead,
 * with its origin in the source and the fields of an event. A sink may also be the system's log (server/process.h).
 *
 * A line stays one line: control characters and bytes that are no UTF-8 are written as \n, \t or \xNN, so that a
 * client's bytes can neither look like another line nor move a terminal's cursor.
 *
 * Threads: any. A line is written with one write(2), which
 * may block: never log while a stripe lock is held. errno stays, and is what %m shows. A line that can't be written is
 * lost.
 */
#ifndef FS_BASE_LOG_H
#define FS_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Lines above this level are left out; LOG_LEVEL_NOTICE before any call. */
void log_set_level(enum log_level level);
extern _Atomic int log_threshold; /* of log_set_level and log_level alone */

/* Returns the level. Inline, as each command asks for it. */
static inline enum log_level log_level(void)
{
	return (enum log_level)atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

/* The position in the source that made a line. It is read during the call only. */
struct log_origin {
	const char *file, *function;
	int line;
};
#define LOG_HERE (&(const struct log_origin){ __FILE__, __func__, __LINE__ })

/* Writes a line, which is cut after 2 KiB. For log_line and the macros below. */
void log_write(const struct log_origin *origin, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));
#define log_line(level, ...) log_write(LOG_HERE, level, __VA_ARGS__)

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* ---- events ---------------------------------------------------------------------------------- */

/* A field of an event. Names are upper case, digits and "_"; the journal shows FLASHIELD_NAME. */
struct log_field {
	const char *name;
	const char *text; /* NULL: the field is the number */
	uint64_t number;
};
#define LOG_TEXT(name, text) \
	{ \
		name, text, 0 \
	}
#define LOG_NUMBER(name, number) \
	{ \
		name, NULL, (uint64_t)(number) \
	}
/* The fields of log_event: at most LOG_FIELDS_MOST of the two above. */
#define LOG_FIELDS(...) ((const struct log_field[]){ __VA_ARGS__, { NULL, NULL, 0 } })
#define LOG_FIELDS_MOST 8

/*
 * Writes a line about an event that operators or programs wait for. They find it by its name (lower case and "_"),
 * which stays the same when the words change.
 *
 *	log_event(LOG_LEVEL_ERROR, "flash_offline", LOG_FIELDS(LOG_TEXT("REASON", reason)),
 *		  "flash is offline: %s", reason);
 *
 * fields may be NULL. Names are listed in packaging/systemd/README.md.
 */
void log_event_write(const struct log_origin *origin, enum log_level level, const char *event,
		     const struct log_field *fields, const char *format, ...)
	__attribute__((format(printf, 5, 6), cold));
#define log_event(level, event, fields, ...) log_event_write(LOG_HERE, level, event, fields, __VA_ARGS__)

/* ---- lines that may come again and again ----------------------------------------------------- */

#define LOG_BURST 5u /* most lines of one origin in a period */
#define LOG_PERIOD_MS 60000u

/* The state of one origin: zeroed at first, in static storage. */
struct log_rate {
	_Atomic uint64_t ends_ms; /* end of the period; 0: none has begun */
	_Atomic uint64_t written; /* lines of the period */
	_Atomic uint64_t left_out; /* lines left out since the last one that was written */
};

/* May a line be written now? If so, *left_out is the number of lines left out since the last one. now_ms is not 0. */
FS_MUST_CHECK bool log_rate_allows(struct log_rate *rate, uint64_t now_ms, uint64_t *left_out);

/* Writes like log_write, but at most LOG_BURST lines in LOG_PERIOD_MS. The first line after that tells how many were
   left out. For log_limited. */
void log_write_limited(struct log_rate *rate, const struct log_origin *origin, enum log_level level, const char *format,
		       ...) __attribute__((format(printf, 4, 5), cold));
#define log_limited(level, ...) \
	do { \
		static struct log_rate log_rate_here; \
		log_write_limited(&log_rate_here, LOG_HERE, level, __VA_ARGS__); \
	} while (0)

/* ---- where lines go -------------------------------------------------------------------------- */

/* A line for a sink, valid during the call. */
struct log_record {
	const struct log_origin *origin;
	int priority; /* syslog's */
	const char *text; /* without control characters or a line end */
	const char *event; /* NULL: none */
	const struct log_field *fields; /* NULL: none; else one without a name ends them */
};

/* Is standard error the journal? */
bool log_to_journal(void);
/* Standard error is the journal no more, as it was replaced. Takes the sink away. */
void log_leave_journal(void);
/* From now on lines that go to standard error, but not to the journal, begin with the time: "2026-11-23T16:59:01.123Z ". */
void log_set_times(bool shown);
/* Sets a sink for the lines that would go to standard error; NULL: none. A sink that could not take a line returns
   false, and the line goes to standard error after all. */
void log_set_sink(bool (*sink)(const struct log_record *record));

#endif
