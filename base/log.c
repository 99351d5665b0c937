/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LINE_BYTES 2048
#define HEAD_BYTES 16 /* "<N>", or the level word */
#define TIME_BYTES 32

/* The level words, and the priorities that sd-daemon(3) gives them. */
static const struct {
	const char *word;
	int priority;
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", 3 }, [LOG_LEVEL_WARN] = { "warning", 4 }, [LOG_LEVEL_NOTICE] = { "notice", 5 },
	[LOG_LEVEL_INFO] = { "info", 6 },   [LOG_LEVEL_DEBUG] = { "debug", 7 },
};

_Atomic int log_threshold = LOG_LEVEL_NOTICE;
static pthread_once_t journal_once = PTHREAD_ONCE_INIT;
static _Atomic bool to_journal, with_times;
typedef bool log_sink_fn(const struct log_record *record);
static log_sink_fn *_Atomic sink_in_use;

/* Children inherit JOURNAL_STREAM even if their standard error goes elsewhere, so it counts only if its device and
   inode are those of our own standard error (systemd.exec(5)). */
static void find_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	to_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
		     st.st_dev == device && st.st_ino == inode;
}

bool log_to_journal(void)
{
	pthread_once(&journal_once, find_journal);
	return to_journal;
}

void log_leave_journal(void)
{
	pthread_once(&journal_once, find_journal);
	to_journal = false;
	log_set_sink(NULL);
}

void log_set_times(bool shown)
{
	with_times = shown;
}

void log_set_sink(bool (*sink)(const struct log_record *record))
{
	atomic_store(&sink_in_use, sink);
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_threshold, (int)level, memory_order_relaxed);
}

/* ---- characters that can't be shown ---------------------------------------------------------- */

/* The number of bytes of the character at text if a line may show it as it is; 0 if it is to be escaped. */
static unsigned shown_as_is(const unsigned char *text)
{
	unsigned more = *text < 0x80 ? 0 : *text >= 0xf0 ? 3 : *text >= 0xe0 ? 2 : 1;

	if (*text < 0x20 || *text == 0x7f || (*text >= 0x80 && *text < 0xc2) || *text > 0xf4)
		return 0;
	if (*text == 0xc2 && text[1] < 0xa0)
		return 0; /* control characters of eight bits */
	if ((*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] >= 0xa0) ||
	    (*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] >= 0x90))
		return 0; /* too long a form, half of a surrogate pair, or beyond the last character */
	for (unsigned i = 1; i <= more; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return 1 + more;
}

/* Writes text to out, and returns its end there. Cuts it if it does not fit, but not inside of a character. */
static char *log_escape(char *out, const char *out_end, const char *text)
{
	while (*text) {
		unsigned as_is = shown_as_is((const unsigned char *)text);

		if (out_end - out < 5)
			break;
		if (as_is > 0) {
			out = mempcpy(out, text, as_is);
			text += as_is;
			continue;
		}
		if (*text == '\n' || *text == '\t')
			out += snprintf(out, 5, "\\%c", *text == '\n' ? 'n' : 't');
		else
			out += snprintf(out, 5, "\\x%02x", (unsigned char)*text);
		text++;
	}
	*out = 0;
	return out;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The time of day in UTC, with a blank behind it; "" where none is to be shown. */
static const char *time_text(char text[TIME_BYTES])
{
	struct timespec now;
	struct tm parts;
	size_t length;

	*text = 0;
	if (!with_times || clock_gettime(CLOCK_REALTIME, &now) != 0 || !gmtime_r(&now.tv_sec, &parts))
		return text;
	length = strftime(text, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + length, TIME_BYTES - length, ".%03ldZ ", now.tv_nsec / 1000000);
	return text;
}

static void log_write_line(enum log_level level, const char *text)
{
	char line[TIME_BYTES + HEAD_BYTES + LINE_BYTES + 2], time[TIME_BYTES];
	int length = log_to_journal()
			     ? snprintf(line, sizeof(line), "<%d>%s\n", levels[level].priority, text)
			     : snprintf(line, sizeof(line), "%s%s: %s\n", time_text(time), levels[level].word, text);

	if (write(STDERR_FILENO, line, (size_t)length) < 0) {
		/* There is nowhere left to report it. */
	}
}

/* left_out is 0 but for limited lines. errno is still the caller's, as format may have a %m. */
static void __attribute__((format(printf, 6, 0)))
log_write_formatted(const struct log_origin *origin, enum log_level level, const char *event,
		    const struct log_field *fields, uint64_t left_out, const char *format, va_list arguments)
{
	int saved_errno = errno; /* callers log first and then look at errno */
	char raw[LINE_BYTES], text[LINE_BYTES], *end;
	log_sink_fn *sink = atomic_load(&sink_in_use);
	const struct log_record record = { origin, levels[level].priority, text, event, fields };

	vsnprintf(raw, sizeof(raw), format, arguments);
	end = log_escape(text, text + sizeof(text), raw);
	if (left_out > 0)
		snprintf(end, (size_t)(text + sizeof(text) - end), " (%llu more like it were left out)",
			 (unsigned long long)left_out);
	if (!sink || !sink(&record))
		log_write_line(level, text);
	errno = saved_errno;
}

void log_write(const struct log_origin *origin, enum log_level level, const char *format, ...)
{
	va_list arguments;

	if (level > log_level())
		return;
	va_start(arguments, format);
	log_write_formatted(origin, level, NULL, NULL, 0, format, arguments);
	va_end(arguments);
}

void log_event_write(const struct log_origin *origin, enum log_level level, const char *event,
		     const struct log_field *fields, const char *format, ...)
{
	va_list arguments;

	if (level > log_level())
		return;
	va_start(arguments, format);
	log_write_formatted(origin, level, event, fields, 0, format, arguments);
	va_end(arguments);
}

/* ---- lines that may come again and again ----------------------------------------------------- */

bool log_rate_allows(struct log_rate *rate, uint64_t now_ms, uint64_t *left_out)
{
	uint64_t ends_ms = atomic_load(&rate->ends_ms);

	/* Of all threads that see the end of the period, one begins the next. */
	if (now_ms >= ends_ms && atomic_compare_exchange_strong(&rate->ends_ms, &ends_ms, now_ms + LOG_PERIOD_MS))
		atomic_store(&rate->written, 0);
	if (atomic_fetch_add(&rate->written, 1) < LOG_BURST) {
		*left_out = atomic_exchange(&rate->left_out, 0);
		return true;
	}
	atomic_fetch_add(&rate->left_out, 1);
	return false;
}

void log_write_limited(struct log_rate *rate, const struct log_origin *origin, enum log_level level, const char *format,
		       ...)
{
	int saved_errno = errno;
	uint64_t left_out;
	va_list arguments;

	if (level > log_level() || !log_rate_allows(rate, clk_now_ms(clk_boot()) + 1, &left_out))
		return;
	errno = saved_errno;
	va_start(arguments, format);
	log_write_formatted(origin, level, NULL, NULL, left_out, format, arguments);
	va_end(arguments);
}
