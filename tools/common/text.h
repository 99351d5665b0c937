/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers in the form in which a person reads them in a report, and the progress line.
 *
 * Each text_* function writes into the caller's buffer and returns it. Pure functions.
 */
#ifndef FS_TOOLS_COMMON_TEXT_H
#define FS_TOOLS_COMMON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#define TEXT_BYTES 32

char *text_count(double value, char out[TEXT_BYTES]); /* "845", "12.3 k", "3.78 M" */
char *text_size(double bytes, char out[TEXT_BYTES]); /* "257 B", "4.10 MiB" */
char *text_duration(double seconds, char out[TEXT_BYTES]); /* "12 us", "1.50 ms", "2.3 s", "1 h 04 min" */
char *text_grouped(uint64_t value, char out[TEXT_BYTES]); /* "3 778 763" */

/* Returns an option value for the daemon: the time rounded to three digits, in a unit it understands. */
char *text_option_time(double seconds, char out[TEXT_BYTES]); /* "12.3s", "350ms" */

/*
 * Progress on standard error. A terminal shows a bar, which is redrawn. Elsewhere each tenth prints a line once
 * the work has taken two seconds. Threads: one.
 */
struct progress {
	bool quiet;
	bool terminal;
	int last_tenth;
	int64_t start_s;
	int drawn_width;
};

/* quiet: nothing is shown. show takes the part that is done, from 0 to 1, or -1 if nobody knows: then the note stands
   alone, and on a terminal only. clear takes the bar away; call it before
   other output. */
void progress_init(struct progress *progress, bool quiet);
void progress_show(struct progress *progress, double fraction, const char *note);
void progress_clear(struct progress *progress);

#endif
