/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers with units, as an operator writes and reads them. Pure functions: any thread may call them.
 *
 * A number has no sign and no exponent. It may have decimals, and is rounded down ("1.5g").
 * Parsers return FS_OK, FS_EINVAL when the text has another form, or FS_ERANGE when the value doesn't fit 64 bits. They
 * write the value on FS_OK only.
 * units_format_... write the shortest exact form ("64m", "90s", "0"), units_show_size a rounded one, into the caller's
 * buffer, and return the buffer.
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

/*
 * A rate of writing is bytes per second, or a share of a flash whose size is not known here: then UNITS_RATE_DWPD is
 * set, and the rest is millionths of that size per day. As text it is one of
 *
 *   20m  20MB/s      a size in bytes, which "/s" may follow
 *   1200TBW/5y       so many terabytes in so many years of 365 days: 0.1 to 100
 *   1DWPD/1920g      the size of a drive, so many times per day: 0.000001 to 1000
 *   1DWPD            the same of the flash
 *
 * in either case. As in data sheets of drives, TB and the suffixes k m g t p of a drive's size are powers of 1000.
 */
#define UNITS_RATE_DWPD (1ull << 63)

/* Parses a rate. Also FS_ERANGE for an endurance outside its range, or of less than a byte per second. */
int units_parse_rate(const char *text, uint64_t *rate) FS_MUST_CHECK;

/* Returns how often per day the flash may be written whole; 0 if the rate is bytes per second. */
static inline double units_rate_dwpd(uint64_t rate)
{
	return rate & UNITS_RATE_DWPD ? (double)(rate & ~UNITS_RATE_DWPD) / 1e6 : 0;
}

/* Returns bytes per second; 0 if the rate is a share of the flash. */
static inline uint64_t units_rate_bytes(uint64_t rate)
{
	return rate & UNITS_RATE_DWPD ? 0 : rate;
}

/* Returns the rate of which units_rate_dwpd is dwpd, up to 1000, or where that is 0, of which units_rate_bytes is
   bytes_per_second. */
static inline uint64_t units_rate_of(uint64_t bytes_per_second, double dwpd)
{
	return dwpd > 0 ? UNITS_RATE_DWPD | (uint64_t)(dwpd * 1e6 + 0.5) : bytes_per_second;
}

/* Formats bytes, with the largest suffix that divides them: "64m". */
char *units_format_size(uint64_t bytes, char text[UNITS_TEXT_BYTES]);
/* Writes bytes for a reader, rounded: "1.50 GiB", "64.00 MiB", "512 bytes". */
char *units_show_size(uint64_t bytes, char text[UNITS_TEXT_BYTES]);
/* Formats microseconds, with the largest unit that divides them: "90s". */
char *units_format_time(uint64_t us, char text[UNITS_TEXT_BYTES]);
/* Formats a rate: "20m/s", "0.3DWPD", or "0". */
char *units_format_rate(uint64_t rate, char text[UNITS_TEXT_BYTES]);

#endif
