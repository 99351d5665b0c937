/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines to standard error: "level: text". With standard error connected to the journal
 * (JOURNAL_STREAM set) the sd-daemon priority prefix "<N>" replaces the level word.
 *
 * Threads: any; a line is written with one write(2). The level is an atomic.
 * Never called while a stripe lock is held (it may block).
 */
#ifndef FS_BASE_LOG_H
#define FS_BASE_LOG_H

#include <stdatomic.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level level);
extern _Atomic int log_threshold; /* log_set_level's alone */

/* Asked for before each command. */
static inline enum log_level log_level(void)
{
	return (enum log_level)atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
