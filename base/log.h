/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines to standard error: "level: text". With standard error connected to the journal
 * (JOURNAL_STREAM set) the sd-daemon priority prefix "<N>" replaces the level word; a sink may take such lines instead,
 * with where they come from and the fields of an event.
 *
 * A line is one line whatever is in it: control characters and bytes that are no UTF-8 are written as \n, \t or \xNN,
 * so that what a client sent can't look like another line, or move a terminal's cursor.
 *
 * Threads: any, but for log_set_sink; a line is written with one write(2). The level is an atomic. errno is kept, and
 * is what %m shows. Never called while a stripe lock is held (it may block).
 */
#ifndef FS_BASE_LOG_H
#define FS_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level level);
extern _Atomic int log_threshold; /* log_set_level's alone */

/* Asked for before each command. */
static inline enum log_level log_level(void)
{
	return (enum log_level)atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

/* What made a line. Static storage is not needed: it is read during the call only. */
struct log_place {
	const char *file, *function;
	int line;
};
#define LOG_HERE (&(const struct log_place){ __FILE__, __func__, __LINE__ })

void log_write(const struct log_place *place, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));
#define log_line(level, ...) log_write(LOG_HERE, level, __VA_ARGS__)

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* ---- events ---------------------------------------------------------------------------------- */

/* A figure of an event. Names are upper case, digits and "_": the journal has them as FLASHIELD_NAME. */
struct log_field {
	const char *name;
	const char *text; /* NULL: number counts */
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
/* Of log_event: at most LOG_FIELDS_MOST of the two above. */
#define LOG_FIELDS(...) ((const struct log_field[]){ __VA_ARGS__, { NULL, NULL, 0 } })
#define LOG_FIELDS_MOST 8

/*
 * A line about something that an operator waits for, or a program: it is found by its name (lower case and "_"), which
 * stays the same when the words change.
 *
 *	log_event(LOG_LEVEL_ERROR, "flash_offline", LOG_FIELDS(LOG_TEXT("REASON", reason)), "flash is offline: %s", reason);
 *
 * fields may be NULL. Names are listed in packaging/systemd/README.md.
 */
void log_event_write(const struct log_place *place, enum log_level level, const char *event,
		     const struct log_field *fields, const char *format, ...)
	__attribute__((format(printf, 5, 6), cold));
#define log_event(level, event, fields, ...) log_event_write(LOG_HERE, level, event, fields, __VA_ARGS__)

/* ---- what may come again and again ----------------------------------------------------------- */

#define LOG_BURST 5u /* lines of one place ... */
#define LOG_PERIOD_MS 60000u /* ... in so long a time */

/* Of one place. Zeroed at first, static storage. */
struct log_rate {
	_Atomic uint64_t ends_ms; /* of the period; 0: none has begun */
	_Atomic uint64_t written; /* in it */
	_Atomic uint64_t left_out; /* since the last one that was written */
};

/* May a line be written now? *left_out: how many were not since the last one. now_ms from any clock, not 0. */
bool log_rate_allows(struct log_rate *rate, uint64_t now_ms, uint64_t *left_out);

/* As log_write, LOG_BURST times in LOG_PERIOD_MS; the first line after that says how many were left out. */
void log_write_limited(struct log_rate *rate, const struct log_place *place, enum log_level level, const char *format,
		       ...) __attribute__((format(printf, 4, 5), cold));
#define log_limited(level, ...) \
	do { \
		static struct log_rate log_rate_here; \
		log_write_limited(&log_rate_here, LOG_HERE, level, __VA_ARGS__); \
	} while (0)

/* ---- where lines go -------------------------------------------------------------------------- */

/* Of one line, for a sink; all valid during the call. */
struct log_record {
	const struct log_place *place;
	int priority; /* syslog's */
	const char *text; /* no control characters, no line end */
	const char *event; /* NULL: none */
	const struct log_field *fields; /* NULL: none; else ended by one without name */
};

/* Is standard error the journal? */
bool log_to_journal(void);
/* Takes what would go to the journal by standard error. False: it could not, and the line goes there after all. Before
   other threads run; NULL: none. */
void log_set_sink(bool (*sink)(const struct log_record *record));

#endif
