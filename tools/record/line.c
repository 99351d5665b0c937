/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/line.h"

#include <string.h>

struct word {
	const char *text;
	size_t length;
};

/* The values of a line's fields; NULL where it lacks one. */
struct fields {
	struct word ts, gid, type, key, status, cmd, ttl, cfd, size, from, skipped;
};

static bool is(struct word word, const char *text)
{
	return word.text && strlen(text) == word.length && memcmp(word.text, text, word.length) == 0;
}

/* False if it is no whole number of at most 18 digits. */
static bool number_of(struct word word, int64_t *out)
{
	bool negative = word.length > 0 && word.text[0] == '-';
	int64_t value = 0;

	if (word.length <= (negative ? 1 : 0) || word.length > 18)
		return false;
	for (size_t i = negative; i < word.length; i++) {
		unsigned digit = (unsigned)(word.text[i] - '0');

		if (digit > 9)
			return false;
		value = value * 10 + digit;
	}
	*out = negative ? -value : value;
	return true;
}

static bool time_of(struct word word, int64_t *out_us)
{
	const char *dot = word.text ? memchr(word.text, '.', word.length) : NULL;
	struct word whole = word, part;
	int64_t seconds, us;

	if (!dot)
		return false;
	whole.length = (size_t)(dot - word.text);
	part = (struct word){ dot + 1, word.length - whole.length - 1 };
	if (whole.length > 12 || part.length > 6 || !number_of(whole, &seconds) || !number_of(part, &us) || us < 0)
		return false;
	*out_us = seconds * 1000000 + us;
	return true;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
				      : -1;
}

/* Undoes the URI encoding. False if it is broken, or the key is empty or too long. */
static bool decode_key(struct word word, struct line *line)
{
	uint32_t length = 0;

	for (size_t i = 0; i < word.length; i++) {
		char byte = word.text[i];

		if (length == LINE_KEY_MAX)
			return false;
		if (byte == '%') {
			bool whole = i + 2 < word.length;
			int high = whole ? hex_digit(word.text[i + 1]) : -1,
			    low = whole ? hex_digit(word.text[i + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			byte = (char)(high << 4 | low);
			i += 2;
		}
		line->key[length++] = byte;
	}
	line->key_length = length;
	return length > 0;
}

/* Takes a field by its name; others are left out. */
static void take_field(struct fields *fields, struct word name, struct word value)
{
	const struct {
		const char *name;
		struct word *field;
	} known[] = {
		{ "ts", &fields->ts },     { "gid", &fields->gid },         { "type", &fields->type },
		{ "key", &fields->key },   { "cfd", &fields->cfd },         { "status", &fields->status },
		{ "size", &fields->size }, { "cmd", &fields->cmd },         { "ttl", &fields->ttl },
		{ "from", &fields->from }, { "skipped", &fields->skipped },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (name.text[0] == known[i].name[0] && is(name, known[i].name)) {
			*known[i].field = value;
			return;
		}
	}
}

static void split(const char *text, size_t length, struct fields *fields)
{
	const char *end = text + length;

	while (text < end) {
		const char *space = memchr(text, ' ', (size_t)(end - text));
		const char *stop = space ? space : end;
		const char *equals = memchr(text, '=', (size_t)(stop - text));

		if (equals && equals > text)
			take_field(fields, (struct word){ text, (size_t)(equals - text) },
				   (struct word){ equals + 1, (size_t)(stop - equals - 1) });
		text = stop + 1;
	}
}

static enum line_kind kind_of_store(const struct fields *fields, struct line *line)
{
	struct word command = fields->cmd;

	line->found = is(fields->status, "stored");
	line->fills = is(command, "set") || is(command, "add");
	if (is(command, "gat"))
		return LINE_IGNORED; /* the get has a line too */
	if (is(command, "incr") || is(command, "decr") || is(command, "touch")) {
		line->found = is(fields->status, "found");
		return LINE_UPDATE;
	}
	return LINE_STORE;
}

static enum line_kind kind_of(const struct fields *fields, struct line *line)
{
	if (is(fields->type, "item_get")) {
		line->found = is(fields->status, "found");
		line->tells_tier = fields->from.text != NULL;
		if (fields->cmd.text && !is(fields->cmd, "get"))
			return LINE_IGNORED; /* the look-up of another command */
		return fields->status.text ? LINE_GET : LINE_BROKEN;
	}
	if (is(fields->type, "item_store"))
		return fields->status.text && fields->cmd.text ? kind_of_store(fields, line) : LINE_BROKEN;
	if (is(fields->type, "item_delete")) {
		line->found = is(fields->status, "deleted");
		return LINE_DELETE;
	}
	if (is(fields->type, "deleted")) {
		line->found = true;
		return fields->from.text ? LINE_IGNORED : LINE_DELETED; /* Flashield has item_delete too */
	}
	return fields->type.text ? LINE_IGNORED : LINE_BROKEN;
}

/* Sizes and times of an object. False if one of them is out of range. */
static bool take_numbers(const struct fields *fields, struct line *line)
{
	int64_t gid = 0, connection = -1;

	if (fields->gid.text && (!number_of(fields->gid, &gid) || gid < 0))
		return false;
	if (fields->cfd.text && !number_of(fields->cfd, &connection))
		return false;
	if (fields->size.text && (!number_of(fields->size, &line->size) || line->size < 0 || line->size > INT32_MAX))
		return false;
	if (fields->ttl.text && (!number_of(fields->ttl, &line->ttl_s) || line->ttl_s < 0 || line->ttl_s > UINT32_MAX))
		return false;
	/* memcached writes a negative rest as a number of 32 bits without a sign. */
	if (line->ttl_s > INT32_MAX)
		line->ttl_s = -1;
	line->gid = (uint64_t)gid;
	/* memcached writes any number here when it has refused a value. */
	line->connection = connection < 0 || connection > INT32_MAX ? -1 : (int32_t)connection;
	return true;
}

void line_parse(const char *text, size_t length, struct line *line)
{
	struct fields fields = { 0 };
	bool whole;

	line->kind = LINE_BROKEN;
	line->found = line->fills = line->tells_tier = false;
	line->size = -1;
	line->ttl_s = 0;
	split(text, length, &fields);
	if (fields.skipped.text && !fields.type.text) {
		if (number_of(fields.skipped, &line->size) && line->size >= 0)
			line->kind = LINE_SKIPPED;
		return;
	}
	line->kind = kind_of(&fields, line);
	if (line->kind == LINE_BROKEN || line->kind == LINE_IGNORED)
		return;
	whole = time_of(fields.ts, &line->time_us) && decode_key(fields.key, line) && take_numbers(&fields, line);
	if (!whole)
		line->kind = LINE_BROKEN;
}
