/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/words.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/common/text.h"

#define HEX_ROW 16u
/* The daemon's second at its start, from which expiry times count (segments/FORMAT.md, Record). */
#define SECOND_ZERO 2

static bool is_utf8(const uint8_t *bytes, uint64_t length)
{
	json_t *string = json_stringn((const char *)bytes, length);
	bool good = string != NULL;

	json_decref(string);
	return good;
}

bool words_are_text(const uint8_t *bytes, uint64_t length, bool line_ends)
{
	for (uint64_t i = 0; i < length; i++) {
		bool allowed = line_ends && (bytes[i] == '\n' || bytes[i] == '\t' || bytes[i] == '\r');

		if ((bytes[i] < 0x20 || bytes[i] == 0x7f) && !allowed)
			return false;
		/* U+0080 to U+009f are control characters too. */
		if (bytes[i] == 0xc2 && i + 1 < length && bytes[i + 1] < 0xa0)
			return false;
	}
	return is_utf8(bytes, length);
}

char *words_key(const uint8_t *key, uint32_t length, char out[WORDS_KEY_BYTES])
{
	bool text = words_are_text(key, length, false);
	char *to = out;

	for (uint32_t i = 0; i < length; i++) {
		if (key[i] == '\\')
			to += snprintf(to, 3, "\\\\");
		else if (text || (key[i] < 0x7f && isgraph(key[i])))
			*to++ = (char)key[i];
		else
			to += snprintf(to, 5, "\\x%02x", key[i]);
	}
	*to = 0;
	return out;
}

char *words_time(uint64_t seconds, char out[WORDS_TIME_BYTES])
{
	time_t when = (time_t)seconds;
	struct tm parts;

	if (seconds == 0 || seconds > INT64_MAX || !localtime_r(&when, &parts) ||
	    strftime(out, WORDS_TIME_BYTES, "%Y-%m-%d %H:%M:%S", &parts) == 0)
		snprintf(out, WORDS_TIME_BYTES, "%s", seconds ? "out of range" : "-");
	return out;
}

char *words_uuid(const uint8_t *uuid, char out[WORDS_UUID_BYTES])
{
	for (unsigned i = 0; i < FORMAT_UUID_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", uuid[i]);
	return out;
}

bool words_expired(uint32_t expiry, int64_t uptime_s)
{
	return expiry != 0 && expiry <= uptime_s + SECOND_ZERO;
}

char *words_expiry(uint32_t expiry, int64_t uptime_s, char out[WORDS_TIME_BYTES])
{
	char duration[TEXT_BYTES];

	if (expiry == 0)
		snprintf(out, WORDS_TIME_BYTES, "never");
	else if (uptime_s < 0)
		snprintf(out, WORDS_TIME_BYTES, "at uptime %" PRId64 " s", (int64_t)expiry - SECOND_ZERO);
	else if (words_expired(expiry, uptime_s))
		snprintf(out, WORDS_TIME_BYTES, "over");
	else
		snprintf(out, WORDS_TIME_BYTES, "in %s",
			 text_duration((double)(expiry - uptime_s - SECOND_ZERO), duration));
	return out;
}

void words_print_hex(const uint8_t *bytes, uint64_t length)
{
	for (uint64_t at = 0; at < length; at += HEX_ROW) {
		unsigned count = length - at < HEX_ROW ? (unsigned)(length - at) : HEX_ROW;

		printf("  %08" PRIx64 " ", at);
		for (unsigned i = 0; i < HEX_ROW; i++)
			i < count ? printf(" %02x", bytes[at + i]) : printf("   ");
		printf("  ");
		for (unsigned i = 0; i < count; i++)
			putchar(bytes[at + i] < 0x7f && isprint(bytes[at + i]) ? bytes[at + i] : '.');
		putchar('\n');
	}
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *hex_string(const uint8_t *bytes, uint64_t length)
{
	static const char digits[] = "0123456789abcdef";
	char *text = mem_alloc(2 * length + 1);
	json_t *string;

	if (!text)
		arg_die("out of memory");
	for (uint64_t i = 0; i < length; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	string = json_stringn(text, 2 * length);
	mem_free(text);
	return string;
}

void words_json_bytes(json_t *object, const char *name, const uint8_t *bytes, uint64_t length)
{
	json_t *string = json_stringn((const char *)bytes, length);
	char hex_name[64];

	snprintf(hex_name, sizeof(hex_name), "%s_hex", name);
	if (string)
		json_object_set_new(object, name, string);
	else
		json_object_set_new(object, hex_name, hex_string(bytes, length));
}

json_t *words_json_record(const struct format_record *record, uint32_t segment, bool good)
{
	json_t *object = json_object();

	json_object_set_new(object, "segment", json_integer(segment));
	json_object_set_new(object, "offset", json_integer((json_int_t)record->offset));
	json_object_set_new(object, "check_ok", json_boolean(good));
	json_object_set_new(object, "extent", json_boolean(record->extent));
	words_json_bytes(object, "key", record->key, record->key_length);
	json_object_set_new(object, "value_bytes", json_integer(record->value_length));
	json_object_set_new(object, "cas", json_integer((json_int_t)record->cas));
	json_object_set_new(object, "client_flags", json_integer(record->client_flags));
	json_object_set_new(object, "item_flags", json_integer(record->item_flags));
	json_object_set_new(object, "expiry", json_integer(record->expiry));
	json_object_set_new(object, "classifier_hex", hex_string(record->classifier, FORMAT_CLASSIFIER_BYTES));
	return object;
}

void words_print_json(json_t *json)
{
	if (!json || json_dumpf(json, stdout, JSON_INDENT(2)) != 0)
		arg_die("the output can't be written");
	putchar('\n');
	json_decref(json);
}
