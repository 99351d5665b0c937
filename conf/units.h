/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers with units, as an operator writes and reads them. Pure functions: any thread may call them.
 *
 * A number has no sign and no exponent. It may have decimals, and is rounded down ("1.5g").
 * Parsers return FS_OK, FS_EINVAL when the text has another form, or FS_ERANGE when the value doesn't fit 64 bits. They
 * write the value on FS_OK only.
 * Formatters write the shortest exact form ("64m", "90s", "0") into the caller's buffer, and return the buffer.
 */
#ifndef FS_CONF_UNITS_H
#define FS_CONF_UNITS_H

#include <stdint.h>

#include "base/error.h"

#define UNITS_TEXT_BYTES 32

/* Parses bytes. The suffixes k m g t p, in either case, are powers of 1024; "b" or "ib" may follow ("4GiB"). A number
   without a suffix is multiplied by bare. */
int units_parse_size(const char *text, uint64_t bare, uint64_t *bytes) FS_MUST_CHECK;

/* Parses microseconds. The suffixes are us ms s m h d; a number without one is in seconds. */
int units_parse_time(const char *text, uint64_t *us) FS_MUST_CHECK;

/* Parses bytes per second: a size in bytes, which "/s" may follow ("20m", "20MB/s"). */
int units_parse_rate(const char *text, uint64_t *bytes_per_second) FS_MUST_CHECK;

/* Formats bytes, with the largest suffix that divides them: "64m". */
char *units_format_size(uint64_t bytes, char text[UNITS_TEXT_BYTES]);
/* Formats microseconds, with the largest unit that divides them: "90s". */
char *units_format_time(uint64_t us, char text[UNITS_TEXT_BYTES]);
/* Formats bytes per second: "20m/s", or "0". */
char *units_format_rate(uint64_t bytes_per_second, char text[UNITS_TEXT_BYTES]);

#endif
