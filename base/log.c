/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 2048

/* The level words, and the priorities that sd-daemon(3) gives them. */
static const struct {
	const char *word;
	int priority;
} levels[] = {
	[LOG_LEVEL_ERROR] = {"error", 3}, [LOG_LEVEL_WARN] = {"warning", 4},
	[LOG_LEVEL_NOTICE] = {"notice", 5}, [LOG_LEVEL_INFO] = {"info", 6},
	[LOG_LEVEL_DEBUG] = {"debug", 7},
};

_Atomic int log_threshold = LOG_LEVEL_NOTICE;
static pthread_once_t journal_once = PTHREAD_ONCE_INIT;
static bool to_journal;

/* JOURNAL_STREAM is inherited by children whose standard error goes elsewhere, so that it only
   counts when its device and inode are those of our own standard error (systemd.exec(5)). */
static void find_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	to_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
		     fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_threshold, (int)level, memory_order_relaxed);
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[LINE_BYTES];
	int saved_errno = errno; /* callers log first and then look at errno */
	int head, body;
	size_t length;
	va_list arguments;

	if (level > log_level())
		return;
	pthread_once(&journal_once, find_journal);
	if (to_journal)
		head = snprintf(line, sizeof(line), "<%d>", levels[level].priority);
	else
		head = snprintf(line, sizeof(line), "%s: ", levels[level].word);
	va_start(arguments, format);
	errno = saved_errno; /* for %m */
	body = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, format, arguments);
	va_end(arguments);
	length = (size_t)head + (body > 0 ? (size_t)body : 0);
	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2; /* a longer line is cut */
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, length) < 0) {
		/* There is nowhere left to complain. */
	}
	errno = saved_errno;
}
