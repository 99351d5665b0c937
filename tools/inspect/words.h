/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of a flash as words for people and as JSON. Keys and values come from clients, so they reach a
 * terminal only in escaped form.
 *
 * Threads: any. Ownership: text goes into the caller's buffers; the caller owns JSON objects.
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

/* Returns whether a terminal can show the bytes unchanged: UTF-8 without control characters. With line_ends also tabs
   and line ends count as text. */
bool words_are_text(const uint8_t *bytes, uint64_t length, bool line_ends);

/* Returns the text of a key. Bytes that are not text become \xNN and a backslash becomes \\, which bash's $'...'
   reads. */
char *words_key(const uint8_t *key, uint32_t length, char out[WORDS_KEY_BYTES]);

/* Returns "2026-01-31 23:59:59" in local time; "-" for 0. */
char *words_time(uint64_t seconds, char out[WORDS_TIME_BYTES]);

/* Returns the bytes as hexadecimal digits. */
char *words_uuid(const uint8_t *uuid, char out[WORDS_UUID_BYTES]);

/* Returns "never" or the daemon's second; with a known uptime (a negative one is unknown) "over" or "in 5.0 s". */
char *words_expiry(uint32_t expiry, int64_t uptime_s, char out[WORDS_TIME_BYTES]);

/* Returns whether an object with this expiry has expired uptime_s seconds after the start of the daemon. */
bool words_expired(uint32_t expiry, int64_t uptime_s);

/* Prints rows of 16 bytes as hex and text to standard output. */
void words_print_hex(const uint8_t *bytes, uint64_t length);

/* Sets "name", or "name_hex" when the bytes are not UTF-8. */
void words_json_bytes(json_t *object, const char *name, const uint8_t *bytes, uint64_t length);

/* Returns the fields of a record without its value, for find, dump and segment. The caller owns the object. */
json_t *words_json_record(const struct format_record *record, uint32_t segment, bool good);

/* Prints the object and frees it. */
void words_print_json(json_t *json);

#endif
