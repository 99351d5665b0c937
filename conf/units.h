/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers with units, as an operator writes and reads them. Pure functions.
 *
 * Written without a sign or exponent, decimals allowed ("1.5g", rounded down). Parsers give FS_OK,
 * FS_EINVAL (not of this form) or FS_ERANGE (does not fit 64 bits), and leave *out alone on error.
 * Formatters write the shortest exact form ("64m", "90s", "0") into a buffer of UNITS_TEXT_BYTES
 * and return it.
 */
#ifndef FS_CONF_UNITS_H
#define FS_CONF_UNITS_H

#include <stdint.h>

#include "base/error.h"

#define UNITS_TEXT_BYTES 32

/* Bytes. Suffixes k m g t p, either case, powers of 1024, "b" or "ib" may follow ("4GiB"). bare is
   what a number without suffix is multiplied by. */
int units_parse_size(const char *text, uint64_t bare, uint64_t *bytes) FS_MUST_CHECK;

/* Microseconds. Suffixes us ms s m h d; without one, seconds. */
int units_parse_time(const char *text, uint64_t *us) FS_MUST_CHECK;

/* Bytes per second: a size, "/s" may follow ("20m", "20MB/s"). */
int units_parse_rate(const char *text, uint64_t *bytes_per_second) FS_MUST_CHECK;

char *units_format_size(uint64_t bytes, char text[UNITS_TEXT_BYTES]);
char *units_format_time(uint64_t us, char text[UNITS_TEXT_BYTES]);
char *units_format_rate(uint64_t bytes_per_second, char text[UNITS_TEXT_BYTES]);

#endif
