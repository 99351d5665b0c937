/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of a flash as words for people and as JSON. Keys and values come from clients: nothing of
 * them reaches a terminal unescaped.
 *
 * Threads: any. Ownership: text goes into the caller's buffers; JSON objects are the caller's.
 */
#ifndef FS_TOOLS_INSPECT_WORDS_H
#define FS_TOOLS_INSPECT_WORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/inspect/format.h"

#define WORDS_KEY_BYTES (4 * FORMAT_KEY_MAX + 1)
#define WORDS_TIME_BYTES 64
#define WORDS_UUID_BYTES (2 * FORMAT_UUID_BYTES + 1)

/* Text that a terminal shows as it is: UTF-8 without control characters; a value may have tabs and line
 * ends. */
bool words_are_text(const uint8_t *bytes, uint64_t length, bool line_ends);

/* A key: as it is, or with \xNN for what is not text and \\ for a backslash, as bash's $'...' reads it. */
char *words_key(const uint8_t *key, uint32_t length, char out[WORDS_KEY_BYTES]);

/* "2026-01-31 23:59:59", local time; "-" for 0. */
char *words_time(uint64_t seconds, char out[WORDS_TIME_BYTES]);

char *words_uuid(const uint8_t *uuid, char out[WORDS_UUID_BYTES]);

/* "never", the daemon's second; with a known uptime (else pass a negative one) "over" or "in 5.0 s". */
char *words_expiry(uint32_t expiry, int64_t uptime_s, char out[WORDS_TIME_BYTES]);

/* Has it expired, after so many seconds since the start of the daemon? */
bool words_expired(uint32_t expiry, int64_t uptime_s);

/* Rows of 16 bytes as hex and text, to standard output. */
void words_print_hex(const uint8_t *bytes, uint64_t length);

/* Sets "name", and "name_hex" in its place when the bytes are not UTF-8. */
void words_json_bytes(json_t *object, const char *name, const uint8_t *bytes, uint64_t length);

/* The fields of a record but for its value, as find, dump and segment give them. */
json_t *words_json_record(const struct format_record *record, uint32_t segment, bool good);

/* Prints it and frees it. */
void words_print_json(json_t *json);

#endif
