/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line of an answer to "stats", from bytes that may be anything.
 *
 * Threads: any, as the function is pure.
 */
#ifndef FS_TOOLS_TOP_ANSWER_H
#define FS_TOOLS_TOP_ANSWER_H

#include <stddef.h>

#include "base/error.h"

/* No known server sends longer lines or answers. */
#define ANSWER_LINE_BYTES 2048u
#define ANSWER_ROWS 8192u

enum answer {
	ANSWER_ROW, /* "STAT name value": both are set; value may be empty */
	ANSWER_END, /* the report is complete */
	ANSWER_REFUSED, /* "ERROR", "CLIENT_ERROR ...", "SERVER_ERROR ...": the server doesn't have this report */
	ANSWER_BAD, /* not from a memcached server */
};

/*
 * Cuts a line in place. It comes without its line end, terminated by a zero at line[length]. Whatever is returned, all
 * control characters and all bytes beyond ASCII have become '?', so that the line can be shown.
 */
FS_MUST_CHECK enum answer answer_line(char *line, size_t length, const char **name, const char **value);

#endif
